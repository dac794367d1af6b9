"""Rewrites a traced graph into fewer and cheaper nodes for ONNX Runtime's CPU: they are the cost of small batches.

Each node costs about a microsecond however little it computes; a step of the shipped model has 93 of them as traced.
SkipLayerNormalization for each Add and LayerNormalization is not used, because it is slower at every batch above a few
rows: its CPU kernel is not vectorised (80 against 40 microseconds for 32 rows of 256).
"""

from collections.abc import Iterable, Sequence

import numpy as np
import onnx_ir

from service.bundle import graph_io

_MICROSOFT = "com.microsoft"
_ATTENTION = ("GroupQueryAttention", "MultiHeadAttention")
_PROJECTION = ("Gemm", "MatMulIntegerToFloat", "QuantizeLinear", "Slice")
_SCORES = (graph_io.NEXT_LOG_PROBS, graph_io.CANDIDATE_IDS, graph_io.CANDIDATE_LOG_PROBS, graph_io.LOG_TOTALS)


def keep_token_axis(graph: onnx_ir.Graph) -> None:
    """Keep a step's rows (B, 1, d) throughout, as attention expects, instead of adding the axis repeatedly.

    For graphs whose dense layers accept more than two axes: the quantized ones.
    """
    tokens = graph.inputs[0]
    if tokens.name != graph_io.TOKEN_IDS:
        raise ValueError(f"The graph's first input is {tokens.name}, expected {graph_io.TOKEN_IDS}.")
    axis = constant(graph, "token_axis", np.array([1], np.int64))
    for node in list(graph):
        adds, drops = node.op_type == "Unsqueeze", node.op_type == "Squeeze"
        if (adds and _feeds_attention(node)) or (drops and _producer(node) in _ATTENTION):
            _bypass(graph, node)
    for name in (graph_io.TOKEN_IDS, graph_io.LENGTHS):
        ids = next(value for value in graph.inputs if value.name == name)
        for node in [use.node for use in ids.uses() if use.node.op_type == "Gather"]:
            column = insert(graph, node, "Unsqueeze", [ids, axis])
            node.replace_input_with(1, column)
    hidden = _hidden(graph)
    producer = hidden.producer()
    assert producer is not None
    uses = [(use.node, use.idx) for use in hidden.uses()]
    squeeze = onnx_ir.Node("", "Squeeze", [hidden, axis])
    graph.insert_after(producer, squeeze)
    for node, index in uses:
        node.replace_input_with(index, squeeze.outputs[0])


def branch_scores(graph: onnx_ir.Graph) -> None:
    """Compute log-probabilities and candidates in a branch that runs only if the number of candidates is above 0."""
    wanted = [value for value in graph.outputs if value.name in _SCORES]
    others = [value for value in graph.outputs if value.name not in _SCORES]
    only_for_scores = _ancestors(wanted) - _ancestors(others)
    moved = [node for node in graph if node in only_for_scores]
    count = next(value for value in graph.inputs if value.name == graph_io.NUM_CANDIDATES)
    is_wanted = insert(graph, moved[0], "Greater", [count, constant(graph, "none_wanted", np.array([0], np.int64))])
    results = []
    for value in wanted:
        results.append(onnx_ir.Value(name=value.name, type=value.type, shape=value.shape))
        graph.outputs[list(graph.outputs).index(value)] = results[-1]
        value.name = f"{value.name}.computed"
    graph.remove(moved)
    computed = onnx_ir.Graph([], wanted, nodes=moved, name="with_scores")
    nothing = [_nothing(value) for value in wanted]
    skipped = onnx_ir.Graph([], [node.outputs[0] for node in nothing], nodes=nothing, name="without_scores")
    branches = [onnx_ir.AttrGraph("then_branch", computed), onnx_ir.AttrGraph("else_branch", skipped)]
    graph.append(onnx_ir.Node("", "If", [is_wanted], branches, outputs=results))


def constant(
    graph: onnx_ir.Graph, name: str, array: "np.ndarray[tuple[int, ...], np.dtype[np.generic]]"
) -> onnx_ir.Value:
    """Return a stored value of the graph, created on first use of its name."""
    if name not in graph.initializers:
        graph.initializers[name] = onnx_ir.Value(name=name, const_value=onnx_ir.tensor(array, name=name))
    return graph.initializers[name]


def insert(
    graph: onnx_ir.Graph,
    before: onnx_ir.Node,
    op_type: str,
    inputs: Sequence[onnx_ir.Value | None],
    attributes: Iterable[onnx_ir.Attr] = (),
    domain: str = "",
) -> onnx_ir.Value:
    """Insert a node with one output before another and return the output."""
    node = onnx_ir.Node(domain, op_type, inputs, attributes)
    graph.insert_before(before, node)
    return node.outputs[0]


def replace(graph: onnx_ir.Graph, node: onnx_ir.Node, value: onnx_ir.Value) -> None:
    """Replace a node's first output by `value`, under its name, and remove the node."""
    old = node.outputs[0]
    value.name = old.name
    if any(output is old for output in graph.outputs):
        value.type, value.shape = old.type, old.shape
    onnx_ir.convenience.replace_all_uses_with(old, value, replace_graph_outputs=True)
    graph.remove(node, safe=True)


def _bypass(graph: onnx_ir.Graph, node: onnx_ir.Node) -> None:
    source = node.inputs[0]
    assert source is not None
    onnx_ir.convenience.replace_all_uses_with(node.outputs[0], source)
    graph.remove(node, safe=True)


def _feeds_attention(node: onnx_ir.Node) -> bool:
    return any(use.node.op_type in _ATTENTION and use.idx == 0 for use in node.outputs[0].uses())


def _producer(node: onnx_ir.Node) -> str:
    producer = node.inputs[0].producer() if node.inputs[0] is not None else None
    return producer.op_type if producer is not None else ""


def _hidden(graph: onnx_ir.Graph) -> onnx_ir.Value:
    """Return the projection's input, found upwards from the choice of the best token."""
    value = next(node.inputs[0] for node in graph if node.op_type == "TopK")
    while value is not None and (node := value.producer()) is not None and node.op_type in _PROJECTION:
        value = node.inputs[0]
    assert value is not None
    return value


def _ancestors(values: Iterable[onnx_ir.Value]) -> set[onnx_ir.Node]:
    """Return all nodes that the values depend on."""
    found: set[onnx_ir.Node] = set()
    open_ = [node for value in values if (node := value.producer()) is not None]
    while open_:
        node = open_.pop()
        if node not in found:
            found.add(node)
            open_.extend(p for value in node.inputs if value is not None and (p := value.producer()) is not None)
    return found


def _nothing(value: onnx_ir.Value) -> onnx_ir.Node:
    """Return a node that produces an empty output."""
    assert value.dtype is not None
    assert value.shape is not None
    empty = np.zeros([0] * len(value.shape), value.dtype.numpy())
    output = onnx_ir.Value(name=f"{value.name}.nothing", type=value.type)
    return onnx_ir.Node("", "Constant", [], [onnx_ir.AttrTensor("value", onnx_ir.tensor(empty))], outputs=[output])
