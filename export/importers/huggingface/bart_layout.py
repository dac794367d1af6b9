"""The common parts of transformers' Marian and M2M100: BART's names in `config.json` and in the weights."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from export.architecture import ModelConfig, PositionConfig
from export.architecture.config import MAX_SIZE, Activation
from export.architecture.positions import sinusoidal_table
from export.importers.huggingface.tables import TABLE_NAMES, place_tables

ACTIVATIONS: Mapping[str, Activation] = {"relu": "relu", "gelu": "gelu", "swish": "silu", "silu": "silu"}
# Keys that would change the model, with the values at which they don't.
_NEUTRAL: Mapping[str, tuple[Any, ...]] = {
    "normalize_embedding": (False,),
    "extra_pos_embeddings": (0,),
    "layernorm_embedding": (False,),
    "is_decoder": (False,),
    "add_cross_attention": (False, True),
    "is_encoder_decoder": (True,),
    "static_position_embeddings": (True,),
    "position_embedding_type": ("absolute", "sinusoidal"),
    "is_gated_act": (False,),
    "add_bias_logits": (False, True),  # the bias itself is among the weights
    "quantization_config": (),
}
_STRANGE = re.compile(r"rope|rotary|relative|alibi|expert|sliding_window|mamba|adapter|lora", re.IGNORECASE)
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
_POSITIONS = re.compile(r"(encoder|decoder)\.embed_positions\.weights?")


@dataclass(frozen=True, slots=True)
class Family:
    """Differences between the architectures that share the layout; `Family.normalize_before` is pre-norm.

    `may_separate`: `share_encoder_decoder_embeddings` applies; other families ignore it and have one table for both
    sides.
    """

    name: str
    normalize_before: bool
    final_norm: bool
    may_separate: bool
    positions: PositionConfig


MARIAN = Family(
    "Marian",
    normalize_before=False,
    final_norm=False,
    may_separate=True,
    positions=PositionConfig(layout="halves"),
)
M2M100 = Family(
    "M2M100",
    normalize_before=True,
    final_norm=True,
    may_separate=False,
    positions=PositionConfig(layout="halves", fairseq_exponent=True, offset=2),
)


@dataclass(frozen=True, slots=True)
class TokenIds:
    """The special tokens of a model's target side."""

    pad: int
    eos: int
    unk: int
    decoder_start: int


def read_architecture(
    document: Mapping[str, Any], family: Family, ids: TokenIds, has_logits_bias: bool, problems: list[str]
) -> ModelConfig | None:
    """Return our configuration for `config.json`; everything unsupported is added to `problems`."""
    found = len(problems)
    neutral = {
        **_NEUTRAL,
        "normalize_before": (family.normalize_before,),
        "add_final_layer_norm": (family.final_norm,),
    }
    for name, allowed in neutral.items():
        value = document.get(name)
        if value is not None and value not in allowed:
            problems.append(f"{name} is {value!r}; {family.name} models have {allowed[0] if allowed else 'none'}")
    for name, value in sorted(document.items()):
        if _STRANGE.search(name) and value not in (None, False, 0, "", [], {}):
            problems.append(f"{name} is {str(value)[:60]!r}; {family.name} models have no such thing")
    activation = document.get("activation_function")
    if not isinstance(activation, str) or activation not in ACTIVATIONS:
        problems.append(f"activation_function is {activation!r}; supported are {', '.join(ACTIVATIONS)}")
    sizes = {name: _size(document, name, problems) for name in ("d_model", "vocab_size", "max_position_embeddings")}
    num_heads = _same_in_both(document, "attention_heads", problems)
    widths = {side: _size(document, f"{side}_ffn_dim", problems) for side in ("encoder", "decoder")}
    layers = {side: _size(document, f"{side}_layers", problems) for side in ("encoder", "decoder")}
    scales = _choice(document, "scale_embedding", family is M2M100, problems)
    ties = _choice(document, "tie_word_embeddings", True, problems)
    shares = not family.may_separate or _choice(document, "share_encoder_decoder_embeddings", True, problems)
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
            norm="pre" if family.normalize_before else "post",
            final_norm=family.final_norm,
            scale_embeddings=scales,
            share_embeddings=shares,
            tie_projection=ties,
            projection_bias=has_logits_bias,
            positions=family.positions,
            pad_id=ids.pad,
            eos_id=ids.eos,
            unk_id=ids.unk,
            decoder_start_id=ids.decoder_start,
        )
    except ValueError as error:
        problems.append(str(error))
        return None


def our_weights(
    given: Mapping[str, Tensor], config: ModelConfig, problems: list[str]
) -> tuple[ModelConfig, dict[str, Tensor]]:
    """Return the weights under our names, as stored, and the configuration with the tables that they have.

    Weights that have no name in our model, or contradict each other, are added to `problems`.
    """
    ours: dict[str, Tensor] = {}
    tables: dict[str, Tensor] = {}
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
        elif name in (
            "encoder.layer_norm.weight",
            "encoder.layer_norm.bias",
            "decoder.layer_norm.weight",
            "decoder.layer_norm.bias",
        ):
            ours[name.replace("layer_norm", "final_norm")] = value
        elif _POSITIONS.fullmatch(name):
            problems += _position_problems(full_name, value, config)
        elif name == "final_logits_bias":
            if config.projection_bias:
                ours["projection.bias"] = value.flatten()
        elif name in TABLE_NAMES:
            tables[name] = value
        else:
            problems.append(f"{full_name} is a weight that the architecture does not have")
    config, placed = place_tables(tables, config, problems)
    return config, ours | placed


def has_logits_bias(given: Mapping[str, Tensor]) -> bool:
    """Return whether there is a `final_logits_bias` that is not all zeros."""
    bias = given.get("final_logits_bias")
    return bias is not None and bool(bias.count_nonzero())


def _position_problems(name: str, table: Tensor, config: ModelConfig) -> list[str]:
    """Return a problem if a stored position table differs from the computed one, which is what our models use."""
    start = 2 if config.positions.offset else 0  # fairseq's table starts with rows for padding
    given = table[start : start + config.max_source_positions].float()
    expected = torch.from_numpy(sinusoidal_table(len(given), config.d_model, config.positions))
    if table.dim() != 2 or given.shape != expected.shape:
        return [f"{name} has shape {tuple(table.shape)}, expected positions of width {config.d_model}"]
    if float((given - expected).abs().max()) > _MAX_POSITION_ERROR:
        return [f"{name} is not the sinusoidal table; learned positions are not supported"]
    return []


def _size(document: Mapping[str, Any], name: str, problems: list[str]) -> int:
    value = document.get(name)
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MAX_SIZE:
        problems.append(f"{name} is {value!r}; expected a positive number")
        return 1
    return value


def _choice(document: Mapping[str, Any], name: str, default: bool, problems: list[str]) -> bool:
    value = document.get(name, default)
    if not isinstance(value, bool):
        problems.append(f"{name} is {value!r}; expected true or false")
        return default
    return value


def _same_in_both(document: Mapping[str, Any], name: str, problems: list[str]) -> int:
    encoder, decoder = (_size(document, f"{side}_{name}", problems) for side in ("encoder", "decoder"))
    if encoder != decoder:
        problems.append(f"encoder_{name} is {encoder} and decoder_{name} {decoder}; supported is the same in both")
    return encoder


def _target_size(document: Mapping[str, Any], default: int) -> int:
    value = document.get("decoder_vocab_size")
    return value if isinstance(value, int) and value > 0 else default
