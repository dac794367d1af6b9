"""A model as it is stored: its configuration and its weights, arrays by our names; without torch where it can be."""

from collections.abc import Iterator, Mapping, MutableMapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np
from numpy import typing as npt

from export.architecture.config import ModelConfig
from export.architecture.names import DECODER_TABLE, ENCODER_TABLE, PROJECTION

if TYPE_CHECKING:
    from torch import Tensor

Array = npt.NDArray[Any]  # of float32, float16 or ml_dtypes' bfloat16
_MAX_LISTED = 40


@dataclass(frozen=True, slots=True)
class StoredModel:
    """A model's configuration, and its weights as `weight_shapes` names them, possibly mapped from files."""

    config: ModelConfig
    weights: MutableMapping[str, Array]

    @property
    def num_weights(self) -> int:
        return sum(each.size for each in self.weights.values())

    def in_float32(self) -> "StoredModel":
        """Return the model with its weights as float32; those that are share their memory."""
        return StoredModel(self.config, {name: as_float32(value) for name, value in self.weights.items()})


def as_float32(array: Array) -> npt.NDArray[np.float32]:
    """Return an array as float32, itself if it is."""
    return array.astype(np.float32, copy=False)


def as_tensor(array: Array) -> "Tensor":
    """Return an array as a tensor that shares its memory."""
    import torch

    if array.dtype == ml_dtypes.bfloat16:
        return torch.from_numpy(array.view(np.uint16)).view(torch.bfloat16)
    return torch.from_numpy(array)


def as_array(tensor: "Tensor") -> Array:
    """Return a tensor as an array that shares its memory."""
    import torch

    if tensor.dtype == torch.bfloat16:
        return tensor.detach().view(torch.uint16).numpy().view(ml_dtypes.bfloat16)
    return tensor.detach().numpy()


def misfits(config: ModelConfig, weights: Mapping[str, Any]) -> str:
    """Return how names and shapes differ from the configuration's, the first ones if they are many; or nothing."""
    expected = weight_shapes(config)
    problems = [f"{name} is missing" for name in sorted(expected.keys() - weights.keys())]
    problems += [f"{name} is unexpected" for name in sorted(weights.keys() - expected.keys())]
    problems += [
        f"{name} has shape {tuple(weights[name].shape)}, the configuration asks for {expected[name]}"
        for name in sorted(expected.keys() & weights.keys())
        if tuple(weights[name].shape) != expected[name]
    ]
    if not problems:
        return ""
    listed = problems[:_MAX_LISTED]
    if len(problems) > _MAX_LISTED:
        listed.append(f"and {len(problems) - _MAX_LISTED} more")
    return "The weights do not fit the model: " + "; ".join(listed) + "."


def weight_shapes(config: ModelConfig) -> dict[str, tuple[int, ...]]:
    """Return names and shapes of all weights, each once: what is shared has the name of its first user."""
    return dict(_weights(config))


def _weights(config: ModelConfig) -> Iterator[tuple[str, tuple[int, ...]]]:
    width = config.of("decoder").d_model
    yield from _stack(config, "encoder", config.num_encoder_layers, config.max_source_positions)
    yield ENCODER_TABLE, (config.source_vocabulary_size, config.d_model)
    yield from _stack(config, "decoder", config.num_decoder_layers, config.max_target_positions)
    if not config.share_embeddings:
        yield DECODER_TABLE, (config.target_vocabulary_size, width)
    if not config.tie_projection:
        yield PROJECTION, (config.target_vocabulary_size, width)
    if config.projection_bias:
        yield "projection.bias", (config.target_vocabulary_size,)


def _stack(
    config: ModelConfig, side: str, num_layers: int, num_positions: int
) -> Iterator[tuple[str, tuple[int, ...]]]:
    memory_width, config = config.d_model, config.of(side)
    if config.positions.layout == "learned":
        yield f"{side}.embedding.position_table.weight", (num_positions, config.d_model)
    if config.embedding_norm:
        yield from _norm(config, f"{side}.embedding.norm")
    for index in range(num_layers):
        yield from _layer(config, f"{side}.layers.{index}", memory_width if side == "decoder" else 0)
    bias = config.relative_bias
    for index in range(0 if bias is None else num_layers if bias.per_layer else 1):
        yield f"{side}.relative_biases.{index}.weight", (0 if bias is None else bias.num_buckets, config.num_heads)
    if config.final_norm:
        yield from _norm(config, f"{side}.final_norm")


def _layer(config: ModelConfig, layer: str, memory_width: int) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Yield the weights of a decoder's layer, which reads a memory of that width, or of an encoder's (0)."""
    width, inner = config.d_model, config.d_ff
    if memory_width and config.state_size:
        yield f"{layer}.recurrence.candidate.weight", (width, width)
        yield from _dense(f"{layer}.recurrence.gate", width, width, has_bias=True)
        yield from _residual(config, f"{layer}.recurrence")
    else:
        yield from _attention(config, f"{layer}.self_attention", width)
    if memory_width:
        yield from _attention(config, f"{layer}.cross_attention", memory_width)
    for name in ("gate", "inner") if config.gated else ("inner",):
        yield from _dense(f"{layer}.feed_forward.{name}", inner, width, has_bias=config.feed_forward_bias)
    yield from _dense(f"{layer}.feed_forward.outer", width, inner, has_bias=config.feed_forward_bias)
    yield from _residual(config, f"{layer}.feed_forward")


def _residual(config: ModelConfig, name: str) -> Iterator[tuple[str, tuple[int, ...]]]:
    for norm in residual_norms(config, name):
        yield from _norm(config, norm)


def residual_norms(config: ModelConfig, name: str) -> list[str]:
    has = {
        "norm": True,
        "output_norm": config.norm == "sandwich",
        "block_norm": config.block_norm and name.endswith(".feed_forward"),
    }
    return [f"{name}_residual.{norm}" for norm in has if has[norm]]


def _attention(config: ModelConfig, name: str, keys_width: int) -> Iterator[tuple[str, tuple[int, ...]]]:
    for part, num_inputs in (("query", config.d_model), ("key", keys_width), ("value", keys_width)):
        yield from _dense(f"{name}.{part}", config.attention_width, num_inputs, has_bias=config.attention_bias)
    if config.qk_norm != "none":
        parts = ("weight",) if config.qk_norm == "rms" else ("weight", "bias")
        yield from ((f"{name}.{side}_norm.{part}", (config.head_size,)) for side in ("query", "key") for part in parts)
    if config.attention_output != "none":
        has_bias = config.has_attention_output_bias
        yield from _dense(f"{name}.output", config.d_model, config.attention_width, has_bias=has_bias)
    yield from _residual(config, name)


def _dense(name: str, num_outputs: int, num_inputs: int, *, has_bias: bool) -> Iterator[tuple[str, tuple[int, ...]]]:
    yield f"{name}.weight", (num_outputs, num_inputs)
    if has_bias:
        yield f"{name}.bias", (num_outputs,)


def _norm(config: ModelConfig, name: str) -> Iterator[tuple[str, tuple[int, ...]]]:
    if config.layer_norm == "scalar":
        yield from ((f"{name}.gain", (1,)), (f"{name}.bias", (1,)))
    else:
        yield f"{name}.weight", (config.d_model,)
        if config.layer_norm == "vector":
            yield f"{name}.bias", (config.d_model,)
