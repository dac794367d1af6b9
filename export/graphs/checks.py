"""Checks that a written graph is what the service will bind: names, dtypes, shapes, operators, no weights inside."""

from pathlib import Path

import onnx

from export.graphs.weights_file import INLINE_BYTES, WEIGHTS
from service.bundle import graph_io
from service.bundle.graph_file import OPERATORS
from service.bundle.manifest_parts import ModelShape
from service.domain.errors import counted

BOOL, INT32, INT64 = onnx.TensorProto.BOOL, onnx.TensorProto.INT32, onnx.TensorProto.INT64
FLOAT, FLOAT16 = onnx.TensorProto.FLOAT, onnx.TensorProto.FLOAT16
_DTYPES = {
    graph_io.SOURCE_IDS: INT64,
    graph_io.SOURCE_LENGTHS: INT32,
    graph_io.TOKEN_IDS: INT64,
    graph_io.LENGTHS: INT32,
    graph_io.TOTAL_LENGTH: INT32,
    graph_io.NUM_CANDIDATES: INT64,
    graph_io.NEXT_IDS: INT64,
    graph_io.CANDIDATE_IDS: INT64,
    graph_io.NEXT_LOG_PROBS: FLOAT,
    graph_io.CANDIDATE_LOG_PROBS: FLOAT,
    graph_io.LOGITS: FLOAT,
    graph_io.LOG_TOTALS: FLOAT,
    graph_io.TARGET_IDS: INT64,
    graph_io.ATTENTION: FLOAT,
    graph_io.LISTED: BOOL,
}
_SHAPES: dict[str, list[str | int]] = {
    graph_io.SOURCE_IDS: ["B", "S"],
    graph_io.TOTAL_LENGTH: [1],
    graph_io.NUM_CANDIDATES: [1],
    graph_io.CANDIDATE_IDS: ["B", "K"],
    graph_io.CANDIDATE_LOG_PROBS: ["B", "K"],
    graph_io.TARGET_IDS: ["B", "T"],
    graph_io.ATTENTION: ["B", "T", "S"],
}


class GraphError(Exception):
    """An exported graph is not what the service expects; the message lists every problem."""


def check_encoder(path: Path, shape: ModelShape, precision: str = "float32") -> None:
    outputs = graph_io.source_names(shape.num_decoder_layers, has_shortlists=shape.has_shortlists)
    _check(path, shape, graph_io.encoder_inputs(), outputs, {"MultiHeadAttention"}, precision)


def check_decoder_step(path: Path, shape: ModelShape, precision: str = "float32") -> None:
    layers = shape.num_decoder_layers
    operators = {"MultiHeadAttention"} if shape.is_recurrent else {"GroupQueryAttention", "MultiHeadAttention"}
    inputs = graph_io.step_inputs(layers, is_recurrent=shape.is_recurrent, has_shortlists=shape.has_shortlists)
    outputs = [*graph_io.step_outputs(layers, is_recurrent=shape.is_recurrent), *graph_io.SCORE_OUTPUTS]
    _check(path, shape, inputs, outputs, operators, precision)
    graph = onnx.load(path, load_external_data=False).graph
    problems = [
        f"{counted(len(nodes), f'{operator} node')}, expected one per decoder layer ({layers})"
        for operator in sorted(operators)
        if len(nodes := [node for node in graph.node if node.op_type == operator]) != layers
    ]
    _raise_if(path, problems)


def check_alignment(path: Path, shape: ModelShape, layer: int, precision: str = "float32") -> None:
    inputs = graph_io.alignment_inputs(layer)
    _check(path, shape, inputs, [graph_io.ATTENTION], {"MultiHeadAttention"}, precision)


def _check(
    path: Path, shape: ModelShape, inputs: list[str], outputs: list[str], operators: set[str], precision: str
) -> None:
    try:
        onnx.checker.check_model(path)
    except onnx.checker.ValidationError as error:
        raise GraphError(f"{path.name} is not a valid ONNX model: {error}.") from error
    graph = onnx.load(path, load_external_data=False).graph
    quantized, memory_dtype = precision == "int8", FLOAT16 if precision == "float16" else FLOAT
    problems = [
        *_interface_problems("inputs", list(graph.input), inputs, shape, memory_dtype),
        *_interface_problems("outputs", list(graph.output), outputs, shape, memory_dtype),
        *_operator_problems(graph, operators | ({"MatMulIntegerToFloat"} if quantized else set()), quantized),
        *_inline_problems(graph),
    ]
    _raise_if(path, problems)


def _raise_if(path: Path, problems: list[str]) -> None:
    if problems:
        raise GraphError(f"{path.name}: {'; '.join(problems)}.")


def _interface_problems(
    kind: str, values: list[onnx.ValueInfoProto], expected: list[str], shape: ModelShape, memory_dtype: int
) -> list[str]:
    names = [value.name for value in values]
    if names != expected:
        return [f"{kind} are {names}, expected {expected}"]
    problems = []
    for value in values:
        tensor = value.type.tensor_type
        dtype, wanted_dtype = tensor.elem_type, _DTYPES.get(value.name, memory_dtype)
        if dtype != wanted_dtype:
            type_name = onnx.TensorProto.DataType.Name
            problems.append(f"{value.name} is {type_name(dtype)}, expected {type_name(wanted_dtype)}")
        dims = [dim.dim_param or dim.dim_value for dim in tensor.shape.dim]
        if dims != (wanted := _expected_dims(value.name, shape)):
            problems.append(f"{value.name} has shape {dims}, expected {wanted}")
    return problems


def _expected_dims(name: str, shape: ModelShape) -> list[str | int]:
    if name.startswith("cross_"):
        return ["B", shape.num_heads, "S", shape.head_size]
    if name.startswith(("past_state", "present_state")):
        return ["B", shape.state_size]
    if name.startswith(("past_", "present_")):
        return ["B", shape.num_heads, "C", shape.head_size]
    if name == graph_io.LISTED:
        return ["B", graph_io.listed_width(shape.vocabulary_size)]
    if name == graph_io.LOGITS:
        return ["B", shape.vocabulary_size]
    return _SHAPES.get(name, ["B"])


def _operator_problems(graph: onnx.GraphProto, allowed: set[str], quantized: bool) -> list[str]:
    """Return a problem for each operator other than ONNX's permitted ones and `allowed` ones of ONNX Runtime.

    A quantized graph runs on the CPU and may branch; in others, branches would rule out CUDA graphs.
    """
    problems = []
    of_onnx = OPERATORS[""] if quantized else OPERATORS[""] - {"If"}
    known = {"": of_onnx, "ai.onnx": of_onnx, "com.microsoft": allowed}
    for node in graph.node:
        if node.op_type not in known.get(node.domain, ()):
            problems.append(f"node {node.name} is {node.domain or 'ai.onnx'}::{node.op_type}, which is not allowed")
    return problems


def _inline_problems(graph: onnx.GraphProto) -> list[str]:
    """Return weights in the graph itself as problems: what several graphs need is stored once, in the weights' file."""
    return [
        f"{tensor.name} is in the graph instead of {WEIGHTS}"
        for tensor in graph.initializer
        if len(tensor.raw_data) >= INLINE_BYTES
    ]
