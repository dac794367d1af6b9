"""The common parts of transformers' Marian, M2M100, mBART, BART and PLBart: BART's settings and names of weights."""

import dataclasses
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from export.architecture import ModelConfig, PositionConfig
from export.architecture.config import Activation
from export.architecture.positions import sinusoidal_table
from export.architecture.stored import Array, as_float32
from export.importers.huggingface.config_fields import TokenIds, check_neutral, choice, size
from export.importers.huggingface.tables import TABLE_NAMES, place_tables

ACTIVATIONS: Mapping[str, Activation] = {"relu": "relu", "gelu": "gelu", "swish": "silu", "silu": "silu"}
# Keys that would change the model, with the values at which they don't.
_NEUTRAL: Mapping[str, tuple[Any, ...]] = {
    "is_decoder": (False,),
    "add_cross_attention": (False, True),
    "is_encoder_decoder": (True,),
    "position_embedding_type": ("absolute", "sinusoidal"),
    "is_gated_act": (False,),
    "add_bias_logits": (False, True),  # the bias itself is among the weights
    "quantization_config": (),
}
_MAX_POSITION_ERROR = 1e-4

_PARTS = {
    "self_attn.q_proj": "self_attention.query",
    "self_attn.k_proj": "self_attention.key",
    "self_attn.v_proj": "self_attention.value",
    "self_attn.out_proj": "self_attention.output",
    "self_attn_layer_norm": "self_attention_residual.norm",
    "encoder_attn.q_proj": "cross_attention.query",
    "encoder_attn.k_proj": "cross_attention.key",
    "encoder_attn.v_proj": "cross_attention.value",
    "encoder_attn.out_proj": "cross_attention.output",
    "encoder_attn_layer_norm": "cross_attention_residual.norm",
    "fc1": "feed_forward.inner",
    "fc2": "feed_forward.outer",
    "final_layer_norm": "feed_forward_residual.norm",
}
_LAYER = re.compile(r"(encoder|decoder)\.layers\.(\d+)\.(.+)\.(weight|bias)")
_NORM = re.compile(r"(encoder|decoder)\.(layer_norm|layernorm_embedding)\.(weight|bias)")
_NORMS = {"layer_norm": "final_norm", "layernorm_embedding": "embedding.norm"}
_POSITIONS = re.compile(r"(encoder|decoder)\.embed_positions\.weights?")
_IGNORED = ("encoder.version", "decoder.version")  # fairseq's numbers, which transformers ignores, too
_FIRST_POSITION = 2  # fairseq's tables start with rows for padding


@dataclass(frozen=True, slots=True)
class BartLayout:
    """Differences between architectures of this layout; `normalize_before` is pre-norm.

    `may_separate`: `share_encoder_decoder_embeddings` applies, else both share; `scales_embeddings` is
    `scale_embedding`'s default.
    """

    name: str
    normalize_before: bool
    final_norm: bool
    may_separate: bool
    positions: PositionConfig
    embedding_norm: bool = False
    scales_embeddings: bool = False

    def fixed(self) -> dict[str, tuple[Any, ...]]:
        """Return settings that transformers ignores, with the values that describe what it does."""
        is_learned = self.positions.layout == "learned"
        return {
            "normalize_before": (self.normalize_before,),
            "add_final_layer_norm": (self.final_norm,),
            "normalize_embedding": (self.embedding_norm,),
            "layernorm_embedding": (self.embedding_norm,),
            "static_position_embeddings": (not is_learned,),
            "extra_pos_embeddings": (_FIRST_POSITION,) if is_learned else (0,),
        }

    def read_architecture(
        self, document: Mapping[str, Any], ids: TokenIds, weights: Mapping[str, Array], problems: list[str]
    ) -> ModelConfig | None:
        found = len(problems)
        check_neutral(document, self.name, {**_NEUTRAL, **self.fixed()}, problems)
        activation = document.get("activation_function")
        if not isinstance(activation, str) or activation not in ACTIVATIONS:
            problems.append(f"activation_function is {activation!r}; supported: {', '.join(ACTIVATIONS)}")
        sizes = {name: size(document, name, problems) for name in ("d_model", "vocab_size", "max_position_embeddings")}
        num_heads = _same_in_both(document, "attention_heads", problems)
        widths = {side: size(document, f"{side}_ffn_dim", problems) for side in ("encoder", "decoder")}
        layers = {side: size(document, f"{side}_layers", problems) for side in ("encoder", "decoder")}
        scales = choice(document, "scale_embedding", self.scales_embeddings, problems)
        ties = choice(document, "tie_word_embeddings", True, problems)
        shares = not self.may_separate or choice(document, "share_encoder_decoder_embeddings", True, problems)
        if len(problems) > found:
            return None
        target_size = sizes["vocab_size"] if shares else _target_size(document, sizes["vocab_size"])
        try:
            return ModelConfig(
                source_vocabulary_size=sizes["vocab_size"],
                target_vocabulary_size=target_size,
                d_model=sizes["d_model"],
                d_ff=widths["encoder"],
                decoder_d_ff=None if widths["decoder"] == widths["encoder"] else widths["decoder"],
                num_heads=num_heads,
                num_encoder_layers=layers["encoder"],
                num_decoder_layers=layers["decoder"],
                max_source_positions=sizes["max_position_embeddings"],
                max_target_positions=sizes["max_position_embeddings"],
                activation=ACTIVATIONS[str(activation)],
                norm="pre" if self.normalize_before else "post",
                final_norm=self.final_norm,
                embedding_norm=self.embedding_norm,
                scale_embeddings=scales,
                share_embeddings=shares,
                tie_projection=ties,
                projection_bias=_has_logits_bias(weights),
                positions=self.positions,
                pad_id=ids.pad,
                eos_id=ids.eos,
                unk_id=ids.unk,
                decoder_start_id=ids.decoder_start,
            )
        except ValueError as error:
            problems.append(str(error))
            return None

    def our_weights(
        self, _document: Mapping[str, Any], given: Mapping[str, Array], config: ModelConfig, problems: list[str]
    ) -> tuple[ModelConfig, dict[str, Array]]:
        ours: dict[str, Array] = {}
        tables: dict[str, Array] = {}
        seen: set[str] = set()
        for full_name, value in given.items():
            name = full_name.removeprefix("model.")
            if name in seen:
                problems.append(f"model.{name} and {name} are one weight; keep one")
                continue
            seen.add(name)
            layer = _LAYER.fullmatch(name)
            if layer and layer[3] in _PARTS:
                ours[f"{layer[1]}.layers.{layer[2]}.{_PARTS[layer[3]]}.{layer[4]}"] = value
            elif norm := _NORM.fullmatch(name):
                ours[f"{norm[1]}.{_NORMS[norm[2]]}.{norm[3]}"] = value
            elif (positions := _POSITIONS.fullmatch(name)) and config.positions.layout == "learned":
                ours[f"{positions[1]}.embedding.position_table.weight"] = (
                    value[_FIRST_POSITION:] if value.ndim else value
                )
            elif positions:
                problems += _position_problems(full_name, value, config)
            elif name == "final_logits_bias":
                if config.projection_bias:
                    ours["projection.bias"] = value.ravel()
            elif name in TABLE_NAMES:
                tables[name] = value
            elif name not in _IGNORED:
                problems.append(f"{full_name} is a weight that the architecture does not have")
        config, placed = place_tables(tables, config, problems)
        return config, ours | placed


MARIAN = BartLayout(
    "Marian",
    normalize_before=False,
    final_norm=False,
    may_separate=True,
    positions=PositionConfig(layout="halves"),
)
MARIANS_OWN = PositionConfig(layout="halves", fairseq_exponent=True)  # in Marian, which transformers misreads
M2M100 = BartLayout(
    "M2M100",
    normalize_before=True,
    final_norm=True,
    may_separate=False,
    positions=PositionConfig(layout="halves", fairseq_exponent=True, offset=2),
    scales_embeddings=True,
)
MBART = BartLayout(
    "mBART",
    normalize_before=True,
    final_norm=True,
    may_separate=False,
    positions=PositionConfig(layout="learned"),
    embedding_norm=True,
)
BART = dataclasses.replace(MBART, name="BART", normalize_before=False, final_norm=False)
PLBART = dataclasses.replace(BART, name="PLBart", scales_embeddings=True)


def _has_logits_bias(given: Mapping[str, Array]) -> bool:
    bias = given.get("final_logits_bias")
    return bias is not None and bool(np.any(bias))


def _position_problems(name: str, table: Array, config: ModelConfig) -> list[str]:
    """Return a problem if a stored position table differs from the computed one, which is what our models use."""
    start = _FIRST_POSITION if config.positions.offset else 0
    given = as_float32(table[start : start + config.max_source_positions])
    expected = sinusoidal_table(len(given), config.d_model, config.positions)
    if table.ndim != 2 or given.shape != expected.shape:
        return [f"{name} has shape {tuple(table.shape)}, expected positions of width {config.d_model}"]
    if float(np.abs(given - expected).max()) > _MAX_POSITION_ERROR:
        return [f"{name} is not the sinusoidal table; its kind has no learned positions"]
    return []


def _same_in_both(document: Mapping[str, Any], name: str, problems: list[str]) -> int:
    encoder, decoder = (size(document, f"{side}_{name}", problems) for side in ("encoder", "decoder"))
    if encoder != decoder:
        problems.append(f"encoder_{name} is {encoder} and decoder_{name} {decoder}; they must be the same")
    return encoder


def _target_size(document: Mapping[str, Any], default: int) -> int:
    value = document.get("decoder_vocab_size")
    return value if isinstance(value, int) and value > 0 else default
