"""Rewrites a float32 graph into its int8 form: dense layers compute in 8 bits, embeddings are stored in 8 bits."""

from collections.abc import Mapping

import numpy as np
import onnx_ir

from export.graphs.fusion import constant, insert, replace
from export.quantization.dense_nodes import DenseNode, dense_nodes
from export.quantization.ranges import Range
from export.quantization.weights import quantize_rows

_MICROSOFT = "com.microsoft"
_TO_FLOAT = onnx_ir.AttrInt64("to", onnx_ir.DataType.FLOAT)


def quantize_graph(model: onnx_ir.Model, ranges: Mapping[str, Range]) -> None:
    """Rewrite in place. `ranges` maps the name of every dense layer's input to the range that its 8 bits cover.

    x W^T + b becomes MatMulIntegerToFloat(QuantizeLinear(x), W, b), whose products and sums are exact integers, so that
    a row's result can't depend on its neighbours. A gathered table is gathered in 8 bits and scaled afterwards. A
    weight shared by several nodes is stored once.
    """
    _Rewriting(model.graph, ranges).run()


class _Rewriting:
    def __init__(self, graph: onnx_ir.Graph, ranges: Mapping[str, Range]) -> None:
        self._graph = graph
        self._ranges = ranges
        self._activations: dict[str, tuple[onnx_ir.Value, onnx_ir.Value, onnx_ir.Value]] = {}
        self._weights: dict[str, tuple[onnx_ir.Value, onnx_ir.Value]] = {}  # by name: int8 (out, in), scales (out,)

    def run(self) -> None:
        dense = dense_nodes(self._graph)
        for each in dense:
            self._replace_dense(each)
        embeddings = [node for node in self._graph if node.op_type == "Gather" and self._is_table(node.inputs[0])]
        for node in embeddings:
            self._replace_gather(node)
        for name in self._weights:
            self._graph.initializers.pop(name)

    def _is_table(self, value: onnx_ir.Value | None) -> bool:
        """Return whether the value is a stored float32 matrix of token embeddings, tied or separate."""
        if value is None or value.name not in self._graph.initializers:
            return False
        return value.name in self._weights or str(value.name).endswith("tokens.weight")

    def _replace_dense(self, dense: DenseNode) -> None:
        graph, node = self._graph, dense.node
        levels, x_scale, x_zero_point = self._quantized(dense)
        weight, scales = self._stored(dense.weight)
        # The transpose of a constant is computed once, when the graph is loaded; the file holds the weight in the
        # layout for tables.
        transposed = insert(graph, node, "Transpose", [weight], [onnx_ir.AttrInt64s("perm", [1, 0])])
        inputs = [levels, transposed, x_scale, scales, x_zero_point, None]
        if dense.bias is not None:
            inputs.append(dense.bias)
        replace(graph, node, insert(graph, node, "MatMulIntegerToFloat", inputs, domain=_MICROSOFT))

    def _replace_gather(self, node: onnx_ir.Node) -> None:
        """Gather in 8 bits and multiply by the rows' scales, which absorb a factor that follows (sqrt(d))."""
        graph, (table, ids) = self._graph, node.inputs
        assert table is not None
        weight, scales = self._stored(table)
        assert scales.const_value is not None
        column = scales.const_value.numpy()[:, None]
        last = node
        following = node.outputs[0].consumers()
        if len(following) == 1 and following[0].op_type == "Mul":
            factor = next(value for value in following[0].inputs if value is not node.outputs[0])
            if factor is not None and factor.const_value is not None and factor.const_value.size == 1:
                column = column * factor.const_value.numpy()
                last = following[0]
        factors = constant(graph, f"{table.name}.row_scales", np.asarray(column, np.float32))
        axis = onnx_ir.AttrInt64("axis", 0)
        rows = insert(graph, node, "Cast", [insert(graph, node, "Gather", [weight, ids], [axis])], [_TO_FLOAT])
        product = insert(graph, node, "Mul", [rows, insert(graph, node, "Gather", [factors, ids], [axis])])
        replace(graph, last, product)
        if last is not node:
            graph.remove(node, safe=True)

    def _quantized(self, dense: DenseNode) -> tuple[onnx_ir.Value, onnx_ir.Value, onnx_ir.Value]:
        """Return a dense layer's input in 8 bits; layers with the same input share it."""
        x = dense.node.inputs[0]  # not `dense.x`: the layer that computed it may have been replaced
        assert x is not None
        name = str(x.name)
        if name not in self._activations:
            covered = self._ranges[name]
            scale = constant(self._graph, f"{name}.scale", np.array(covered.scale()))
            zero_point = constant(self._graph, f"{name}.zero_point", np.array(covered.zero_point()))
            levels = insert(self._graph, dense.node, "QuantizeLinear", [x, scale, zero_point])
            self._activations[name] = levels, scale, zero_point
        return self._activations[name]

    def _stored(self, weight: onnx_ir.Value) -> tuple[onnx_ir.Value, onnx_ir.Value]:
        name = str(weight.name)
        if name not in self._weights:
            assert weight.const_value is not None
            quantized, scales = quantize_rows(weight.const_value.numpy())
            self._weights[name] = (
                constant(self._graph, f"{name}.int8", quantized),
                constant(self._graph, f"{name}.scales", scales),
            )
        return self._weights[name]
