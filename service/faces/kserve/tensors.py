"""KServe's one-dimensional tensors: reading and writing elements of raw or typed contents."""

import struct
from collections.abc import Sequence
from typing import Any

from service.domain.errors import InvalidRequest, Path, Public, Unimplemented, counted
from service.domain.translation import MAX_TEXTS
from service.faces.fields import check_count
from service.faces.grpc.counts import checked_fields
from service.faces.grpc.pb.inference import grpc_service_pb2 as pb

BYTES = "BYTES"
FP32 = "FP32"

# The tensors of every model.
TEXT, SOURCE, TARGET = "text", "source_language", "target_language"
INPUTS = {TEXT: BYTES, SOURCE: BYTES, TARGET: BYTES}
TRANSLATION, SCORE, FINISH_REASON = "translation", "score", "finish_reason"
OUTPUTS = {TRANSLATION: BYTES, SCORE: FP32, FINISH_REASON: BYTES}
_LENGTH = struct.Struct("<I")


def texts_of(tensor: pb.ModelInferRequest.InferInputTensor, raw: bytes | None) -> list[str]:
    """Return the elements of a BYTES tensor, from its own contents if `raw` is None; for its shape see `num_elements`.

    Raise `InvalidRequest` if datatype, shape, contents or UTF-8 are wrong, `Unimplemented` for shared memory.
    """
    name = tensor.name
    checked_fields(tensor, f"inputs[{name[:60]}].")
    check_parameters(name, tensor.parameters)
    if tensor.datatype != BYTES:
        raise _invalid(name, "is of datatype {datatype}", datatype=tensor.datatype, advice=f"expected {BYTES}")
    number = num_elements(tensor.shape)
    if number is None:
        raise _invalid(name, f"has shape {list(tensor.shape[:8])}", advice="expected one dimension, [n], or [n, 1]")
    check_count(f"inputs[{name[:60]}]", number, MAX_TEXTS)
    elements = _typed(tensor) if raw is None else elements_of(name, raw, number)
    if len(elements) != number:
        shape = list(tensor.shape)
        raise _invalid(name, f"has shape {shape} and {counted(len(elements), 'element')}", advice="give as many")
    texts: list[str] = []
    try:
        for element in elements:
            texts.append(element.decode())  # how many there are tells which is wrong
    except UnicodeDecodeError:
        raise _invalid(name, f"element {len(texts)} is not valid UTF-8.") from None
    return texts


def num_elements(shape: Sequence[int]) -> int | None:
    """Return n of a shape [n], or of [n, 1] or [1, n], as clients that batch send it; `None` of any other."""
    lengths = [length for length in shape if length != 1]
    if not 1 <= len(shape) <= 2 or len(lengths) > 1 or min(shape) < 0:
        return None
    return lengths[0] if lengths else 1


def check_parameters(name: str, parameters: object) -> None:
    """Raise `Unimplemented` for parameters that change a tensor's meaning: shared memory, classification."""
    for parameter in parameters:  # type: ignore[attr-defined]  # the stubs' maps are Any
        if parameter.startswith("shared_memory_") or parameter == "classification":
            raise Unimplemented(
                "tensor {tensor}: {parameter} is not supported",
                tensor=name,
                parameter=parameter,
                advice="send and take plain contents",
            )


def elements_of(name: str, raw: bytes, num_elements: int) -> list[bytes]:
    """Return the elements of raw contents, each with its length before it, four bytes, little-endian.

    Raise `InvalidRequest` if the contents end within an element, or continue after `num_elements`.
    """
    elements: list[bytes] = []
    position = 0
    while position < len(raw):
        if len(elements) == num_elements:
            raise _invalid(
                name,
                f"has {counted(len(raw) - position, 'byte')} of raw contents after its "
                f"{counted(num_elements, 'element')}.",
            )
        start = position + _LENGTH.size
        position = start + (_LENGTH.unpack_from(raw, position)[0] if start <= len(raw) else 0)
        if position > len(raw):
            raise _invalid(name, f"ends within element {len(elements)} of its raw contents.")
        elements.append(raw[start:position])
    return elements


def raw_of(elements: Sequence[bytes]) -> bytes:
    return b"".join(_LENGTH.pack(len(element)) + element for element in elements)


def raw_of_floats(values: Sequence[float]) -> bytes:
    return struct.pack(f"<{len(values)}f", *values)


def _typed(tensor: pb.ModelInferRequest.InferInputTensor) -> Sequence[bytes]:
    fields = [field.name for field, _ in tensor.contents.ListFields()]
    if others := [field for field in fields if field != "bytes_contents"]:
        raise _invalid(tensor.name, f"has {others[0]}", advice="expected bytes_contents")
    return tensor.contents.bytes_contents


def _invalid(name: str, problem: str, advice: str = "", **given: Any) -> InvalidRequest:
    """Return the error for a tensor of the model, whose name is safe to quote: it is not from the caller."""
    path, tensor = Path(f"inputs[{name[:60]}]"), Public(repr(name))
    return InvalidRequest("tensor {tensor} " + problem, path, advice=advice, tensor=tensor, **given)
