"""T5's names in `config.json` and in the weights, as transformers 5.23 reads them.

`models/t5`, `models/mt5` and `models/umt5` differ in the scale of outputs, the default feed-forward network, and
whether layers share biases.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from export.architecture import ModelConfig, PositionConfig, RelativeBiasConfig
from export.architecture.config import Activation
from export.architecture.stored import Array, as_float32
from export.importers.huggingface.config_fields import TokenIds, check_neutral, choice, size
from export.importers.huggingface.tables import T5_TABLE_NAMES, place_tables

# transformers' names of activations; its "gelu_new" and "gelu_pytorch_tanh" are one function.
ACTIVATIONS: Mapping[str, Activation] = {
    "relu": "relu",
    "gelu": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "silu": "silu",
    "swish": "silu",
}
_NEUTRAL: Mapping[str, tuple[Any, ...]] = {
    "is_decoder": (False,),
    "is_encoder_decoder": (True,),
    "quantization_config": (),
}
_BUCKETS, _MAX_DISTANCE = "relative_attention_num_buckets", "relative_attention_max_distance"
_MAX_TOKENS = 512  # of a source, and of an output: there are no positions that would bound them
_ATTENTION = {"q": "query", "k": "key", "v": "value", "o": "output"}
_FEED_FORWARD = {"wi": "inner", "wi_0": "gate", "wi_1": "inner", "wo": "outer"}
_LAYER = re.compile(r"(encoder|decoder)\.block\.(\d+)\.layer\.(\d)\.(?:(\w+)\.)?(\w+)\.weight")
_PARTS = {
    "SelfAttention": ("self_attention", _ATTENTION),
    "EncDecAttention": ("cross_attention", _ATTENTION),
    "DenseReluDense": ("feed_forward", _FEED_FORWARD),
}
_BLOCKS = {"encoder": ("SelfAttention", "DenseReluDense"), "decoder": tuple(_PARTS)}  # the layers of a block
_FINAL_NORM = re.compile(r"(encoder|decoder)\.final_layer_norm\.weight")
_LAST_NORM = "decoder.final_norm.weight"
# Files of the first T5 have biases of cross-attention, which no model uses.
_UNUSED = "decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight"


@dataclass(frozen=True, slots=True)
class T5Layout:
    """A `Layout`.

    `feed_forward_proj` is what a file that doesn't say means. `scales_output`: what the projection reads is multiplied
    by d^-1/2, as in the first T5; `None` if files say.
    """

    name: str
    scales_output: bool | None
    feed_forward_proj: str = "gated-gelu"
    bias_per_layer: bool = False

    def read_architecture(
        self, document: Mapping[str, Any], ids: TokenIds, _weights: Mapping[str, Array], problems: list[str]
    ) -> ModelConfig | None:
        found = len(problems)
        check_neutral(document, self.name, _NEUTRAL, problems, known=(_BUCKETS, _MAX_DISTANCE))
        activation, is_gated = self._feed_forward(document, problems)
        names = ("vocab_size", "d_model", "d_kv", "d_ff", "num_heads", "num_layers")
        sizes = {name: size(document, name, problems) for name in names}
        num_decoder_layers = size(document, "num_decoder_layers", problems, default=sizes["num_layers"])
        num_buckets, max_distance = size(document, _BUCKETS, problems, 32), size(document, _MAX_DISTANCE, problems, 128)
        self._scales(document, problems)
        if len(problems) > found:
            return None
        try:
            return ModelConfig(
                source_vocabulary_size=sizes["vocab_size"],
                target_vocabulary_size=sizes["vocab_size"],
                d_model=sizes["d_model"],
                d_ff=sizes["d_ff"],
                num_heads=sizes["num_heads"],
                d_head=sizes["d_kv"],
                num_encoder_layers=sizes["num_layers"],
                num_decoder_layers=num_decoder_layers,
                max_source_positions=_MAX_TOKENS,
                max_target_positions=_MAX_TOKENS,
                activation=activation,
                gated=is_gated,
                feed_forward_bias=False,
                norm="pre",
                final_norm=True,
                layer_norm="rms",
                layer_norm_epsilon=document.get("layer_norm_epsilon", 1e-6),
                attention_bias=False,
                score_scale="none",
                scale_embeddings=False,
                share_embeddings=True,
                tie_projection=True,
                positions=PositionConfig(layout="none"),
                relative_bias=RelativeBiasConfig(num_buckets, max_distance, per_layer=self.bias_per_layer),
                pad_id=ids.pad,
                eos_id=ids.eos,
                unk_id=ids.unk,
                decoder_start_id=ids.decoder_start,
            )
        except ValueError as error:
            problems.append(str(error))
            return None

    def our_weights(
        self, document: Mapping[str, Any], given: Mapping[str, Array], config: ModelConfig, problems: list[str]
    ) -> tuple[ModelConfig, dict[str, Array]]:
        """The scale of the output becomes one of the decoder's last norm."""
        ours: dict[str, Array] = {}
        tables: dict[str, Array] = {}
        for name, value in given.items():
            if name in T5_TABLE_NAMES:
                tables[name] = value
            elif own := _own_name(name):
                ours[own] = value
            elif name != _UNUSED:
                problems.append(f"{name} is a weight that the architecture does not have")
        config, placed = place_tables(tables, config, problems, T5_TABLE_NAMES)
        if _LAST_NORM in ours and self._scales(document, []):
            ours[_LAST_NORM] = as_float32(ours[_LAST_NORM]) * np.float32(config.d_model**-0.5)
        return config, ours | placed

    def _scales(self, document: Mapping[str, Any], problems: list[str]) -> bool:
        if self.scales_output is not None:
            return self.scales_output
        return choice(document, "scale_decoder_outputs", document.get("tie_word_embeddings") is not False, problems)

    def _feed_forward(self, document: Mapping[str, Any], problems: list[str]) -> tuple[Activation, bool]:
        proj = document.get("feed_forward_proj", self.feed_forward_proj)
        given = proj if isinstance(proj, str) else ""
        implied = "gelu_new" if given == "gated-gelu" else given.removeprefix("gated-")
        activation = document.get("dense_act_fn", implied)
        if not isinstance(activation, str) or activation not in ACTIVATIONS:
            problems.append(
                f"feed_forward_proj is {str(proj)[:60]!r}, with the activation {str(activation)[:60]!r}; "
                f"supported: {', '.join(ACTIVATIONS)}, by themselves or after 'gated-'"
            )
            return "relu", False
        return ACTIVATIONS[activation], choice(document, "is_gated_act", given.startswith("gated-"), problems)


T5 = T5Layout("T5", scales_output=None, feed_forward_proj="relu")
MT5 = T5Layout("mT5", scales_output=False)
UMT5 = T5Layout("UMT5", scales_output=True, bias_per_layer=True)


def _own_name(name: str) -> str | None:
    if norm := _FINAL_NORM.fullmatch(name):
        return f"{norm[1]}.final_norm.weight"
    found = _LAYER.fullmatch(name)
    if found is None or int(found[3]) >= len(_BLOCKS[found[1]]):
        return None
    side, number, layer, part, weight = found.groups()
    kind = _BLOCKS[side][int(layer)]
    own, weights = _PARTS[kind]
    if part is None and weight == "layer_norm":
        return f"{side}.layers.{number}.{own}_residual.norm.weight"
    if part == "SelfAttention" == kind and weight == "relative_attention_bias":
        return f"{side}.relative_biases.{number}.weight"
    return f"{side}.layers.{number}.{own}.{weights[weight]}.weight" if part == kind and weight in weights else None
