"""CTranslate2's variables under our names: fused layers of attention come apart, and a start of zeros gets a row."""

import numpy as np

from export.architecture import ModelConfig
from export.architecture.names import DECODER_TABLE, ENCODER_TABLE, PROJECTION
from export.importers.ctranslate2.architecture import embedding_name, silu_factor
from export.importers.ctranslate2.container import Floats
from export.importers.ctranslate2.positions import table_name
from export.importers.ctranslate2.variables import Variables

_SELF = {"linear_0": ("query", "key", "value"), "linear_1": ("output",)}
_CROSS = {"linear_0": ("query",), "linear_1": ("key", "value"), "linear_2": ("output",)}


def our_weights(
    variables: Variables, config: ModelConfig, problems: list[str], *, adds_start: bool
) -> dict[str, Floats]:
    """Return the weights by our names, each once; `adds_start` adds a start of zeros to the target's vocabulary."""
    reader = _Reader(variables, config, problems)
    for side, count in (("encoder", config.num_encoder_layers), ("decoder", config.num_decoder_layers)):
        for index in range(count):
            reader.layer(side, index)
        reader.ends(side)
    reader.tables(int(adds_start))
    return reader.ours


class _Reader:
    def __init__(self, variables: Variables, config: ModelConfig, problems: list[str]) -> None:
        self._variables, self._config, self._problems = variables, config, problems
        self.ours: dict[str, Floats] = {}

    def layer(self, side: str, index: int) -> None:
        config, theirs, ours = self._config, f"{side}/layer_{index}", f"{side}.layers.{index}"
        parts = {"self_attention": ("self_attention", _SELF)}
        if side == "decoder":
            parts["attention"] = ("cross_attention", _CROSS)
        for part, (name, linears) in parts.items():
            self._norm(f"{theirs}/{part}/layer_norm", f"{ours}.{name}_residual.norm")
            for linear, names in linears.items():
                has_bias = config.has_attention_output_bias if names == ("output",) else config.attention_bias
                self._linear(f"{theirs}/{part}/{linear}", [f"{ours}.{name}.{each}" for each in names], has_bias)
        self._norm(f"{theirs}/ffn/layer_norm", f"{ours}.feed_forward_residual.norm")
        first, second = ("gate", "inner") if config.gated else ("inner", "")
        linears_of_ffn = {"linear_0": first, "linear_0_noact": second, "linear_1": "outer"}
        for linear, name in linears_of_ffn.items():
            if name:
                self._linear(f"{theirs}/ffn/{linear}", [f"{ours}.feed_forward.{name}"], config.feed_forward_bias)
        if (factor := silu_factor(self._variables, side)) != 1.0:
            self._scale([f"{ours}.feed_forward.{first}.{end}" for end in ("weight", "bias")], factor)
            self._scale([f"{ours}.feed_forward.outer.weight"], 1.0 / factor)
        bias = f"{theirs}/self_attention/relative_attention_bias"
        if config.relative_bias is not None:
            self._variables.mark(bias)
            if index == 0 or config.relative_bias.per_layer:
                self._put(f"{side}.relative_biases.{index}.weight", bias)

    def ends(self, side: str) -> None:
        config = self._config
        if config.embedding_norm:
            self._norm(f"{side}/layernorm_embedding", f"{side}.embedding.norm")
        if config.positions.layout == "learned":
            self._put(f"{side}.embedding.position_table.weight", table_name(side))
        if config.final_norm:
            scale = self._variables.number("decoder/scale_outputs") if side == "decoder" else None
            self._norm(f"{side}/layer_norm", f"{side}.final_norm", 1.0 if scale is None else scale)
        elif side == "decoder" and self._variables.number("decoder/scale_outputs") not in (None, 1.0):
            self._problems.append("decoder/scale_outputs is supported after a final norm, which it lacks")

    def tables(self, num_added: int) -> None:
        config, name = self._config, embedding_name(self._variables, "decoder")
        end = ((0, num_added), (0, 0))
        self._put(ENCODER_TABLE, embedding_name(self._variables, "encoder"))
        if config.share_embeddings:
            self._variables.mark(name, f"{name}_scale")
        else:
            self._put(DECODER_TABLE, name)
        projection = "decoder/projection"
        if config.tie_projection:
            self._variables.mark(f"{projection}/weight", f"{projection}/weight_scale")
        else:
            self._put(PROJECTION, f"{projection}/weight")
        if config.projection_bias:
            self._put("projection.bias", f"{projection}/bias")
        for ours, pad in (
            (ENCODER_TABLE if config.share_embeddings else DECODER_TABLE, end),
            (PROJECTION, end),
            ("projection.bias", end[:1]),
        ):
            if num_added and ours in self.ours:
                self.ours[ours] = np.pad(self.ours[ours], pad)

    def _norm(self, theirs: str, ours: str, scale: float = 1.0) -> None:
        ends = {"gamma": "weight"} | ({} if self._config.layer_norm == "rms" else {"beta": "bias"})
        for end, name in ends.items():
            self._put(f"{ours}.{name}", f"{theirs}/{end}", scale)

    def _linear(self, theirs: str, ours: list[str], has_bias: bool) -> None:
        weight = self._floats(f"{theirs}/weight")
        if weight is None:
            return
        bias = None
        if has_bias:
            is_given = self._variables.has(f"{theirs}/bias")
            bias = self._floats(f"{theirs}/bias") if is_given else np.zeros(len(weight), weight.dtype)
        for end, values in (("weight", weight), ("bias", bias)):
            if values is None:
                continue
            if values.ndim == 0 or len(values) % len(ours):
                self._problems.append(f"{theirs}/{end} has shape {values.shape}, expected {len(ours)} equal parts")
                return
            for name, part in zip(ours, np.split(values, len(ours)), strict=True):
                self.ours[f"{name}.{end}"] = part

    def _scale(self, names: list[str], factor: float) -> None:
        self.ours |= {name: self.ours[name] * np.float32(factor) for name in names if name in self.ours}

    def _put(self, ours: str, theirs: str, scale: float = 1.0) -> None:
        values = self._floats(theirs)
        if values is not None:
            self.ours[ours] = values if scale == 1.0 else values * np.float32(scale)

    def _floats(self, name: str) -> Floats | None:
        try:
            return self._variables.floats(name)
        except ValueError as error:
            self._problems.append(str(error))
            return None
