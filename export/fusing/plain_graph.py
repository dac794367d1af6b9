"""Reads what a plain quantized graph computes: its dense layers, norms, embedding, attention and activation."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import onnx_ir
from numpy import typing as npt

from service.bundle import graph_io

_DENSE, _ATTENTION = "MatMulIntegerToFloat", "MultiHeadAttention"
_ACTIVATIONS = {frozenset[str](): "identity", frozenset({"Relu"}): "relu", frozenset({"Gelu"}): "gelu"}
_ACTIVATIONS |= {frozenset({"Sigmoid", "Mul"}): "silu"}

Array = npt.NDArray[np.generic]


class FusingError(Exception):
    """A graph is not of the form that `export.graphs` and `export.quantization` write."""


@dataclass(frozen=True, slots=True)
class Dense:
    """A dense layer: weight (out, in) int8, scales and bias (out,), and its input's scale and zero point, both ()."""

    name: str
    weight: Array
    scales: Array
    bias: Array | None
    input_scale: Array
    zero_point: Array


@dataclass(frozen=True, slots=True)
class Norm:
    """A layer norm's gain and bias, (d,) or, if scalar, (1,)."""

    gain: Array
    bias: Array
    epsilon: float
    is_scalar: bool


@dataclass(frozen=True, slots=True)
class Embedding:
    """Tokens (V, d) int8, their scales (V, 1), which contain the factor sqrt(d), and positions (P, d)."""

    tokens: Array
    scales: Array
    positions: Array


class PlainGraph:
    """A quantized encoder or decoder step graph.

    Dense layers are found by the names of their weights, and norms by their order, as equal small values are stored
    once, under one name.
    """

    def __init__(self, model: onnx_ir.Model) -> None:
        self._graph = model.graph
        self._dense = {name: node for node in model.graph.all_nodes() if (name := _dense_name(node))}
        self.norms = list(self._norms())
        attention = next((node for node in model.graph if node.op_type == _ATTENTION), None)
        if attention is None:
            raise FusingError(f"The graph has no {_ATTENTION}.")
        self.num_heads = attention.attributes["num_heads"].as_int()
        self.scale = attention.attributes["scale"].as_float()

    def has_dense(self, name: str) -> bool:
        """Return whether there is a dense layer of that name, such as `layers.0.self_attention.output`."""
        return name in self._dense

    def count(self, pattern: str) -> int:
        """Return how many dense layers there are whose name is the pattern with 0, 1, ... in it."""
        index = 0
        while pattern.format(index) in self._dense:
            index += 1
        return index

    def dense(self, name: str) -> Dense:
        """Return the dense layer of that name."""
        if name not in self._dense:
            raise FusingError(f"The graph has no dense layer {name}.")
        return self._read_dense(name, self._dense[name])

    def projection(self) -> Dense:
        """Return the layer that computes the logits; its weight may have the embedding's name."""
        for value in self._graph.outputs:
            node = value.producer()
            if value.name == graph_io.LOGITS and node is not None and node.op_type == _DENSE:
                return self._read_dense("projection", node)
        raise FusingError(f"The graph has no output {graph_io.LOGITS} that a dense layer computes.")

    def embedding(self) -> Embedding:
        """Return the tables of the token embedding."""
        node = next((node for node in self._graph if node.op_type == "Gather" and _is_int8(node.inputs[0])), None)
        if node is None:
            raise FusingError("The graph has no embedding in 8 bits.")
        product = _consumer(_consumer(node, "Cast"), "Mul")
        scales = [each for each in _producers(product) if each.op_type == "Gather"]
        positions = [each for each in _producers(_consumer(product, "Add")) if each is not product]
        if not scales or not positions:
            raise FusingError("The embedding is not a sum of scaled tokens and positions.")
        return Embedding(_array(node.inputs[0]), _array(scales[0].inputs[0]), _array(positions[0].inputs[0]))

    def activation(self) -> str:
        """Return the activation between the feed-forward layers."""
        inner, outer = (self._dense[f"layers.0.feed_forward.{name}"] for name in ("inner", "outer"))
        between: set[str] = set()
        waiting = _producers(_producers(outer)[0])  # of the first input's QuantizeLinear
        while waiting:
            node = waiting.pop()
            if node is not inner:
                between.add(node.op_type)
                waiting.extend(_producers(node))
        activation = _ACTIVATIONS.get(frozenset(between))
        if activation is None:
            raise FusingError(f"The feed-forward layers have an unknown activation, of {sorted(between)}.")
        return activation

    def is_pre_norm(self) -> bool:
        """Return whether the first layer normalizes its input."""
        for node in self._graph:
            if node.op_type in ("LayerNormalization", "Sqrt", _DENSE):
                return node.op_type != _DENSE
        raise FusingError("The graph has neither norms nor dense layers.")

    def _read_dense(self, name: str, node: onnx_ir.Node) -> Dense:
        transpose = node.inputs[1].producer() if node.inputs[1] is not None else None
        if transpose is None:
            raise FusingError(f"The weight of {name} is not the transpose of a stored one.")
        bias = _array(node.inputs[6]) if len(node.inputs) > 6 and node.inputs[6] is not None else None
        weight, scales, input_scale, zero_point = (
            _array(value) for value in (transpose.inputs[0], node.inputs[3], node.inputs[2], node.inputs[4])
        )
        return Dense(name, weight, scales, bias, input_scale, zero_point)

    def _norms(self) -> Iterator[Norm]:
        for node in self._graph:
            if node.op_type == "LayerNormalization":
                gain = _array(node.inputs[1])
                bias = _array(node.inputs[2]) if len(node.inputs) > 2 else np.zeros_like(gain)
                yield Norm(gain, bias, node.attributes["epsilon"].as_float(), is_scalar=False)
            elif node.op_type == "Sqrt":
                yield self._scalar_norm(node)

    def _scalar_norm(self, root: onnx_ir.Node) -> Norm:
        """Read a `ScalarLayerNorm`: its epsilon and gain were multiplied by sqrt(d - 1) when it was traced."""
        norm_per_std = math.sqrt(self.embedding().tokens.shape[1] - 1)
        node, epsilon = _with_constant(root, "Add", 0.0)
        node, gain = _with_constant(_consumer(_consumer(node, "Reciprocal"), "Mul"), "Mul", 1.0)
        _, bias = _with_constant(node, "Add", 0.0)
        own_gain = np.array([float(gain.item()) / norm_per_std], np.float32)
        own_bias = bias.astype(np.float32).reshape(1)
        return Norm(own_gain, own_bias, float(epsilon.item()) / norm_per_std, is_scalar=True)


def _dense_name(node: onnx_ir.Node) -> str:
    """Return the name of a dense layer's weight without its endings; empty for other nodes."""
    transpose = node.inputs[1].producer() if node.op_type == _DENSE and node.inputs[1] is not None else None
    weight = transpose.inputs[0] if transpose is not None else None
    return str(weight.name).removesuffix(".int8").removesuffix(".weight") if weight is not None else ""


def _array(value: onnx_ir.Value | None) -> Array:
    if value is None or value.const_value is None:
        raise FusingError(f"{value.name if value is not None else 'An input'} is not a stored value.")
    return value.const_value.numpy()


def _is_int8(value: onnx_ir.Value | None) -> bool:
    return value is not None and value.const_value is not None and value.const_value.dtype == onnx_ir.DataType.INT8


def _producers(node: onnx_ir.Node) -> list[onnx_ir.Node]:
    return [producer for value in node.inputs if value is not None and (producer := value.producer()) is not None]


def _consumer(node: onnx_ir.Node, op_type: str) -> onnx_ir.Node:
    found = [each for each in node.outputs[0].consumers() if each.op_type == op_type]
    if len(found) != 1:
        raise FusingError(f"{node.op_type} {node.name} leads to {len(found)} nodes {op_type}, expected one.")
    return found[0]


def _with_constant(node: onnx_ir.Node, op_type: str, neutral: float) -> tuple[onnx_ir.Node, Array]:
    """Return the next node of that type and its stored operand; if tracing has removed it, this node and `neutral`."""
    for following in node.outputs[0].consumers():
        for value in following.inputs:
            if following.op_type == op_type and value is not None and value.const_value is not None:
                return following, _array(value)
    return node, np.array(neutral, np.float32)
