"""Check of the operators and weight files that a graph's file refers to, before ONNX Runtime opens it.

ONNX Runtime executes parts of a graph while opening it (constants are folded), where nothing can interrupt it: an
infinite loop would load forever. It also maps whatever file a tensor names. So a graph may contain only operators that
terminate, and weights only in files that have a checksum.

Operators of fused graphs check their inputs, and write to them. Another node, such as `Reshape`, could alias two
inputs, and change what was checked. So a fused graph is one node, with the graph's inputs and outputs, and constants.

The file is ONNX's ModelProto, of which only these parts are read.
"""

import os
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path, PurePosixPath

from service.bundle.errors import CONVERT_AGAIN, BundleError
from service.bundle.protobuf import LENGTH, NotReadable, fields, last_part, parts, text
from service.bundle.regular_file import open_regular
from service.domain.errors import counted, shown

# Of plain graphs, by domain: those that export writes, and no others. All compute tensors from tensors and terminate;
# none loops, reads files, calls other code or draws numbers. That alone would not do. ONNX Runtime's `Einsum` ends the
# process if an input has fewer dimensions than labels, as does its `Div` of the least integer by -1.
OPERATORS: Mapping[str, frozenset[str]] = {
    "": frozenset(
        """
        Add ArgMax Cast Clip Concat Exp Expand Gather GatherND Gelu Gemm IsNaN LayerNormalization Less MatMul
        Mul Not Range Reciprocal ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceSum Relu Reshape
        ScatterElements Shape Sigmoid Slice Softmax Sqrt Squeeze Sub TopK Transpose Unsqueeze Where
        """.split()  # noqa: SIM905  # a word a name: forty lines of quotes otherwise
    ),
    "com.microsoft": frozenset({"GroupQueryAttention", "MultiHeadAttention"}),
}
# Of fused graphs: the operators of `kernels/`; `fused_io` has their interface.
FUSED_DOMAIN, ENCODE, DECODE = "dragoman", "Encode", "Decode"

_MAX_FIELDS = 1_000_000  # about twenty times the number in models with 48 layers
_MAX_DEPTH = 100  # protobuf's own limit
_MAX_BYTES = 2**31 - 1  # protobuf's own limit, too

# onnx.proto: message -> field -> the message type in it; other fields are not read.
_HOLDS: Mapping[str, Mapping[int, str]] = {
    "ModelProto": {7: "GraphProto", 20: "TrainingInfoProto", 25: "FunctionProto"},
    "TrainingInfoProto": {1: "GraphProto", 2: "GraphProto"},
    "GraphProto": {1: "NodeProto", 5: "TensorProto", 15: "SparseTensorProto"},
    "NodeProto": {5: "AttributeProto"},
    "AttributeProto": {
        5: "TensorProto",
        6: "GraphProto",
        10: "TensorProto",
        11: "GraphProto",
        22: "SparseTensorProto",
        23: "SparseTensorProto",
    },
    "SparseTensorProto": {1: "TensorProto", 2: "TensorProto"},
    "TensorProto": {13: "StringStringEntryProto"},
}
_INPUT, _OUTPUT, _OP_TYPE, _ATTRIBUTE, _DOMAIN = 1, 2, 4, 5, 7  # of NodeProto
_KEY, _VALUE = 1, 2  # of StringStringEntryProto
_GRAPH = 7  # of ModelProto
_NODE, _CONSTANT, _GRAPH_INPUT, _GRAPH_OUTPUT = 1, 5, 11, 12  # of GraphProto
_VALUE_NAME, _TENSOR_NAME = 1, 8  # of ValueInfoProto, TensorProto
# What a fused graph has none of. In the model: training, functions; graph: sparse constants; attribute: graphs.
_NOT_IN_FUSED = {"model": (20, 25), "graph": (15,), "attribute": (6, 11)}


def check_graph(path: Path, files: Collection[str], fused: str = "") -> None:
    """Check that a graph has only `OPERATORS`, no functions of its own, and weights only in itself and in `files`.

    `files` are names in the graph's folder. With `fused`, the graph must be one node of this operator instead.
    """
    try:
        with open_regular(path) as file:
            size = os.fstat(file.fileno()).st_size
            if size > _MAX_BYTES:
                raise NotReadable(f"it is larger than {_MAX_BYTES} bytes")
            data = file.read(size)
        problems = [problem for problem in _problems(data, files, fused) if problem]
    except OSError as error:
        raise BundleError(f"{path} can't be read: {error.strerror}.") from error
    except NotReadable as error:
        raise BundleError(f"{path} is not an ONNX graph: {error}; {CONVERT_AGAIN}.") from error
    if problems:
        named = "; ".join(sorted(set(problems))[:3])
        raise BundleError(f"{path} is not allowed in a bundle: {named}; {CONVERT_AGAIN}.")


def _problems(data: bytes, files: Collection[str], fused: str) -> Iterator[str]:
    allowed = {FUSED_DOMAIN: frozenset({fused})} if fused else OPERATORS
    for message, texts in _messages(data):
        if message == "NodeProto":
            yield _operator_problem(text(texts.get(_DOMAIN)), text(texts.get(_OP_TYPE)), allowed)
        elif message == "FunctionProto":
            yield "it defines functions"
        elif message == "StringStringEntryProto" and texts.get(_KEY) == b"location":
            yield _location_problem(text(texts.get(_VALUE)), files)
    if fused:
        yield _fused_problem(data)


def _operator_problem(domain: str, operator: str, allowed: Mapping[str, frozenset[str]]) -> str:
    if operator in allowed.get("" if domain == "ai.onnx" else domain, ()):
        return ""
    return f"operator {shown(f'{domain}::{operator}' if domain else operator)}"


def _fused_problem(data: bytes) -> str:
    """Return what a graph is beyond one node between the graph's inputs and outputs."""
    model = parts(data)
    graphs = model[_GRAPH]
    graph = parts(graphs[0]) if graphs else model
    nodes = graph[_NODE]
    if len(graphs) != 1 or len(nodes) != 1:
        return f"{counted(len(nodes), 'node')} in {counted(len(graphs), 'graph')}; allowed: one node in one graph"
    node = parts(nodes[0])
    where = {"model": [model], "graph": [graph], "attribute": [parts(each) for each in node[_ATTRIBUTE]]}
    if any(part[number] for kind, numbers in _NOT_IN_FUSED.items() for number in numbers for part in where[kind]):
        return "graphs, functions or sparse constants beside its node"
    given = [text(last_part(each, _VALUE_NAME)) for each in graph[_GRAPH_INPUT]]
    results = [text(last_part(each, _VALUE_NAME)) for each in graph[_GRAPH_OUTPUT]]
    constants = {text(last_part(each, _TENSOR_NAME)) for each in graph[_CONSTANT]}
    reads, writes = list(map(text, node[_INPUT])), list(map(text, node[_OUTPUT]))
    if reads[: len(given)] != given or writes != results or len({*given, *results}) != len(given) + len(results):
        return "inputs or outputs that are not, each once and in order, those of its node"
    others = sorted({*reads[len(given) :]} - constants) + sorted(constants & {*given, *results})
    return f"{shown(others[0])}, which its node needs as a constant, and which is not one" if others else ""


def _location_problem(location: str, files: Collection[str]) -> str:
    # Plain names only: ONNX Runtime interprets some strings that are not paths as addresses in memory.
    if location and location in files and PurePosixPath(location).name == location:
        return ""
    return f"weights in {shown(location)}, which is not a file of the bundle with a checksum"


def _messages(data: bytes) -> Iterator[tuple[str, dict[int, bytes]]]:
    """Yield every message reachable through `_HOLDS`, with its text fields by number; of equal ones the last."""
    left = _MAX_FIELDS
    waiting = [("ModelProto", 0, len(data), 0)]
    while waiting:
        message, start, end, depth = waiting.pop()
        if depth > _MAX_DEPTH:
            raise NotReadable(f"it is nested more than {_MAX_DEPTH} deep")
        holds = _HOLDS.get(message, {})
        texts: dict[int, bytes] = {}
        for number, kind, begin, stop in fields(data, start, end):
            left -= 1
            if left < 0:
                raise NotReadable(f"it has more than {_MAX_FIELDS} fields")
            if kind != LENGTH:
                continue
            if number in holds:
                waiting.append((holds[number], begin, stop, depth + 1))
            elif message in ("NodeProto", "StringStringEntryProto"):
                texts[number] = data[begin:stop]
        yield message, texts
