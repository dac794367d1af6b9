"""Finds the dense layers of an exported graph: the products of an activation with a stored weight."""

from dataclasses import dataclass

import onnx_ir


@dataclass(frozen=True, slots=True)
class DenseNode:
    """A `Gemm` of x (N, in) with a weight (out, in), plus a bias (out,) or none."""

    node: onnx_ir.Node
    x: onnx_ir.Value
    weight: onnx_ir.Value
    bias: onnx_ir.Value | None
    output: onnx_ir.Value


def dense_nodes(graph: onnx_ir.Graph) -> list[DenseNode]:
    """Return the dense layers in the order of the graph.

    Raises:
        ValueError: a `Gemm` is of another form than `export.graphs` writes.
    """
    found = []
    for node in graph:
        if node.op_type != "Gemm":
            continue
        x, weight, bias = (*node.inputs, None)[:3]
        if x is None or weight is None or weight.const_value is None:
            raise ValueError(f"{node.name} multiplies no stored weight.")
        attributes = {name: attribute.value for name, attribute in node.attributes.items()}
        if {"alpha": 1.0, "beta": 1.0, "transA": 0, "transB": 1} | attributes != {
            "alpha": 1.0, "beta": 1.0, "transA": 0, "transB": 1
        }:  # fmt: skip
            raise ValueError(f"{node.name} has attributes {attributes}, expected x W^T + b.")
        found.append(DenseNode(node, x, weight, bias, node.outputs[0]))
    return found
