"""The two fused nodes: attributes and constants in the order of `kernels/README.md`, from the plain graphs."""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy import typing as npt

from export.fusing.plain_graph import Array, Dense, FusingError, PlainGraph
from service.bundle import fused_io

Constants = list[tuple[str, Array]]  # names for people, and values


@dataclass(frozen=True, slots=True)
class FusedNode:
    """The operator, the attributes and the constant inputs of one node."""

    operator: str
    attributes: dict[str, Any]  # numbers and texts
    constants: Constants


def encode_node(plain: PlainGraph) -> FusedNode:
    """Return the node `Encode` for a plain encoder graph.

    Raises:
        FusingError: the graph is of another form.
    """
    num_layers, num_decoder_layers = plain.count("layers.{}.feed_forward.inner"), plain.count("cross.{}.key")
    reader = _Reader(plain, num_layers, norms_per_layer=2)
    constants = [*reader.embedding()]
    for index in range(num_layers):
        layer = f"layers.{index}"
        constants += reader.next_norm(f"{layer}.self_attention_residual.norm")
        for part in ("query", "key", "value"):
            constants += reader.heads(f"{layer}.self_attention.{part}")
        constants += reader.output(f"{layer}.self_attention.output")
        constants += reader.next_norm(f"{layer}.feed_forward_residual.norm")
        constants += reader.feed_forward(layer)
    constants += reader.final_norm()
    for index in range(num_decoder_layers):
        constants += reader.heads(f"cross.{index}.key")
        constants += reader.heads(f"cross.{index}.value")
    return FusedNode(fused_io.ENCODE, {**reader.attributes(), "num_decoder_layers": num_decoder_layers}, constants)


def decode_node(plain: PlainGraph, suppressed_ids: Sequence[int], *, renormalizes: bool) -> FusedNode:
    """Return the node `Decode` for a plain decoder step graph, which was traced with the same arguments.

    Raises:
        FusingError: the graph is of another form.
    """
    num_layers = plain.count("layers.{}.feed_forward.inner")
    reader = _Reader(plain, num_layers, norms_per_layer=3)
    constants = [*reader.embedding()]
    for index in range(num_layers):
        layer = f"layers.{index}"
        constants += reader.next_norm(f"{layer}.self_attention_residual.norm")
        constants += reader.heads(f"{layer}.self_attention.packed", num_parts=3)
        constants += reader.output(f"{layer}.self_attention.output")
        constants += reader.next_norm(f"{layer}.cross_attention_residual.norm")
        constants += reader.heads(f"{layer}.cross_attention.query")
        constants += reader.output(f"{layer}.cross_attention.output")
        constants += reader.next_norm(f"{layer}.feed_forward_residual.norm")
        constants += reader.feed_forward(layer)
    constants += reader.final_norm()
    constants += reader.projection(sorted(set(suppressed_ids)))
    return FusedNode(fused_io.DECODE, {**reader.attributes(), "renormalizes": int(renormalizes)}, constants)


class _Reader:
    """Reads the parts of a plain graph in the order of the model, and undoes what only ONNX Runtime's kernels need."""

    def __init__(self, plain: PlainGraph, num_layers: int, norms_per_layer: int) -> None:
        self._plain, self._num_layers = plain, num_layers
        self._embedding = plain.embedding()
        self._norms = iter(plain.norms)
        self._width = self._embedding.tokens.shape[1]
        self._head_size = self._width // plain.num_heads
        self._has_final_norm = len(plain.norms) == num_layers * norms_per_layer + 1
        if num_layers < 1 or len(plain.norms) - self._has_final_norm != num_layers * norms_per_layer:
            raise FusingError(f"The graph has {len(plain.norms)} norms and {num_layers} layers.")

    def attributes(self) -> dict[str, Any]:
        plain, norm = self._plain, self._plain.norms[0]
        return {
            "num_layers": self._num_layers,
            "num_heads": plain.num_heads,
            "head_size": self._head_size,
            "pre_norm": int(plain.is_pre_norm()),
            "scalar_norm": int(norm.is_scalar),
            "final_norm": int(self._has_final_norm),
            "output_projection": int(plain.has_dense("layers.0.self_attention.output")),
            "epsilon": norm.epsilon,
            "scale": plain.scale,
            "activation": plain.activation(),
        }

    def embedding(self) -> Constants:
        tables = self._embedding
        return [
            ("embedding.tokens", tables.tokens),
            ("embedding.scales", tables.scales),
            ("embedding.positions", tables.positions),
        ]

    def next_norm(self, name: str) -> Constants:
        norm = next(self._norms)
        return [(f"{name}.gain", norm.gain), (f"{name}.bias", norm.bias)]

    def final_norm(self) -> Constants:
        return self.next_norm("final_norm") if self._has_final_norm else []

    def feed_forward(self, layer: str) -> Constants:
        parts = (self._plain.dense(f"{layer}.feed_forward.{part}") for part in ("inner", "outer"))
        return [constant for dense in parts for constant in _constants(dense)]

    def heads(self, name: str, num_parts: int = 1) -> Constants:
        """Return a layer that computes `num_parts` (of queries, keys, values) side by side, without heads' padding."""
        dense = self._plain.dense(name)
        kept = self._without_padding(len(dense.scales), num_parts)
        bias = None if dense.bias is None else dense.bias[kept]
        return _constants(dataclasses.replace(dense, weight=dense.weight[kept], scales=dense.scales[kept], bias=bias))

    def output(self, name: str) -> Constants:
        """Return the output layer of an attention, which reads heads without their padding; nothing if it has none."""
        if not self._plain.has_dense(name):
            return []
        dense = self._plain.dense(name)
        kept = self._without_padding(dense.weight.shape[1], num_parts=1)
        return _constants(dataclasses.replace(dense, weight=dense.weight[:, kept]))

    def projection(self, suppressed_ids: Sequence[int]) -> Constants:
        """Return the projection with the model's own bias, which the plain graph replaces by minus infinity."""
        dense = self._plain.projection()
        if suppressed_ids:
            own = self._plain.dense("projection.suppressed_weight")
            if dense.bias is None or len(own.scales) != len(suppressed_ids):
                raise FusingError(f"The projection suppresses {len(own.scales)} ids, not {len(suppressed_ids)}.")
            bias = dense.bias.copy()
            bias[suppressed_ids] = 0.0 if own.bias is None else own.bias
            dense = dataclasses.replace(dense, bias=bias)
        return [*_constants(dense), ("suppressed_ids", np.array(suppressed_ids, np.int64))]

    def _without_padding(self, num_padded: int, num_parts: int) -> slice | npt.NDArray[np.int64]:
        """Return which components of padded heads, side by side, are the heads' own."""
        padded, rest = divmod(num_padded, num_parts * self._plain.num_heads)
        if rest or padded < self._head_size:
            raise FusingError(f"A layer has {num_padded} components for {self._plain.num_heads} heads.")
        if padded == self._head_size:
            return slice(None)
        return np.arange(num_padded).reshape(-1, padded)[:, : self._head_size].ravel()


def _constants(dense: Dense) -> Constants:
    bias = np.zeros_like(dense.scales) if dense.bias is None else dense.bias
    return [
        (f"{dense.name}.weight", dense.weight),
        (f"{dense.name}.scales", dense.scales),
        (f"{dense.name}.bias", bias),
        (f"{dense.name}.input_scale", dense.input_scale),
        (f"{dense.name}.zero_point", dense.zero_point),
    ]
