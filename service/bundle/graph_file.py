"""Check of the operators and weight files that a graph's file refers to, before ONNX Runtime opens it.

ONNX Runtime executes a graph, in part already while opening it (constants are folded), where nothing can interrupt it:
an infinite loop would load forever. It also maps whatever file a tensor names. So a graph may contain only operators
that terminate, and weights only in files that have a checksum.

The file is ONNX's ModelProto, of which only these parts are read: protobuf's wire format is a list of fields, each a
number, a type and a value (protobuf.dev/programming-guides/encoding); other fields are skipped.
"""

from collections.abc import Collection, Iterator, Mapping
from pathlib import Path, PurePosixPath

from service.bundle.errors import BundleError
from service.domain.errors import shown

# By domain. All compute tensors from tensors and terminate; none loops, reads files, calls other code or draws numbers.
OPERATORS: Mapping[str, frozenset[str]] = {
    "": frozenset(
        """
        Abs Add And ArgMax ArgMin Cast CastLike Ceil Clip Concat Constant ConstantOfShape Cos CumSum
        DequantizeLinear Div DynamicQuantizeLinear Einsum Elu Equal Erf Exp Expand Flatten Floor Gather
        GatherElements GatherND Gelu Gemm Greater GreaterOrEqual HardSigmoid HardSwish Identity If IsInf IsNaN
        LayerNormalization LeakyRelu Less LessOrEqual Log LogSoftmax MatMul MatMulInteger Max Mean Min Mish Mod
        Mul Neg NonZero Not OneHot Or PRelu Pad Pow QLinearMatMul QuantizeLinear RMSNormalization Range
        Reciprocal ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd
        ReduceSum ReduceSumSquare Relu Reshape Round ScatterElements ScatterND Selu Shape Sigmoid Sign Sin Size
        Slice Softmax Softplus Split Sqrt Squeeze Sub Sum Swish Tanh Tile TopK Transpose Trilu Unsqueeze Where
        Xor
        """.split()  # noqa: SIM905  # a word a name: a hundred lines of quotes otherwise
    ),
    "com.microsoft": frozenset({"GroupQueryAttention", "MatMulIntegerToFloat", "MultiHeadAttention"}),
    "dragoman": frozenset({"Encode", "Decode"}),  # of `kernels/`; `fused_io` has their interface
}

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
_OP_TYPE, _DOMAIN = 4, 7  # of NodeProto
_KEY, _VALUE = 1, 2  # of StringStringEntryProto
_VARINT, _FIXED_64, _LENGTH, _FIXED_32 = 0, 1, 2, 5
_FIXED_BYTES = {_FIXED_64: 8, _FIXED_32: 4}


class _NotReadable(Exception):
    """The bytes are not valid fields, or too many."""


def check_graph(path: Path, files: Collection[str]) -> None:
    """Check that a graph has only `OPERATORS`, no functions of its own, and weights only in itself and in `files`.

    `files` are names in the graph's folder.

    Raises:
        BundleError: it has others, or can't be read.
    """
    try:
        with path.open("rb") as file:
            data = file.read(_MAX_BYTES + 1)
        if len(data) > _MAX_BYTES:
            raise _NotReadable(f"it is larger than {_MAX_BYTES} bytes")
        problems = [problem for problem in _problems(data, files) if problem]
    except OSError as error:
        raise BundleError(f"{path} can't be read: {error.strerror}.") from error
    except _NotReadable as error:
        raise BundleError(f"{path} is not an ONNX graph: {error}. Export it again with 'make export'.") from error
    if problems:
        named = "; ".join(sorted(set(problems))[:3])
        raise BundleError(f"{path} is not what a bundle may hold: {named}. Export it again with 'make export'.")


def _problems(data: bytes, files: Collection[str]) -> Iterator[str]:
    for message, fields in _messages(data):
        if message == "NodeProto":
            yield _operator_problem(_text(fields.get(_DOMAIN)), _text(fields.get(_OP_TYPE)))
        elif message == "FunctionProto":
            yield "it has functions of its own"
        elif message == "StringStringEntryProto" and fields.get(_KEY) == b"location":
            yield _location_problem(_text(fields.get(_VALUE)), files)


def _operator_problem(domain: str, operator: str) -> str:
    if operator in OPERATORS.get("" if domain == "ai.onnx" else domain, ()):
        return ""
    return f"operator {shown(f'{domain}::{operator}' if domain else operator)}"


def _location_problem(location: str, files: Collection[str]) -> str:
    # Plain names only: ONNX Runtime interprets some strings that are not paths as addresses in memory.
    if location and location in files and PurePosixPath(location).name == location:
        return ""
    return f"weights in {shown(location)}, which is not a file of the bundle with a checksum"


def _messages(data: bytes) -> Iterator[tuple[str, dict[int, bytes]]]:
    """Yield every message of a model reachable through `_HOLDS`, with its text fields by number.

    If a field occurs twice the last one counts, as in protobuf.
    """
    left = _MAX_FIELDS
    waiting = [("ModelProto", 0, len(data), 0)]
    while waiting:
        message, start, end, depth = waiting.pop()
        if depth > _MAX_DEPTH:
            raise _NotReadable(f"it is nested more than {_MAX_DEPTH} deep")
        holds = _HOLDS.get(message, {})
        texts: dict[int, bytes] = {}
        for number, begin, stop in _fields(data, start, end):
            left -= 1
            if left < 0:
                raise _NotReadable(f"it has more than {_MAX_FIELDS} fields")
            if number in holds:
                waiting.append((holds[number], begin, stop, depth + 1))
            elif message in ("NodeProto", "StringStringEntryProto"):
                texts[number] = data[begin:stop]
        yield message, texts


def _fields(data: bytes, start: int, end: int) -> Iterator[tuple[int, int, int]]:
    """Yield the length-delimited fields between two positions, such as messages and texts: number, begin and end.

    Other fields have the number 0, so that they are counted.
    """
    at = start
    while at < end:
        tag, at = _varint(data, at, end)
        number, kind = tag >> 3, tag & 7
        if not 0 < number < 2**29:
            raise _NotReadable(f"at byte {at} there is no field")
        if kind == _LENGTH:
            length, begin = _varint(data, at, end)
            at = begin + length
            place = (number, begin, at)
        elif kind == _VARINT:
            _, at = _varint(data, at, end)
            place = (0, at, at)
        elif kind in _FIXED_BYTES:
            at += _FIXED_BYTES[kind]
            place = (0, at, at)
        else:
            raise _NotReadable(f"at byte {at} there is no field")
        if at > end:
            raise _NotReadable("it is truncated")
        yield place


def _varint(data: bytes, at: int, end: int) -> tuple[int, int]:
    """Decode a number of seven bits a byte, the lowest first; return it and its end."""
    value = 0
    for shift in range(0, 70, 7):
        if at >= end:
            raise _NotReadable("it is truncated")
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
    raise _NotReadable(f"at byte {at} there is no number")


def _text(value: bytes | None) -> str:
    return (value or b"").decode("utf-8", "backslashreplace")
