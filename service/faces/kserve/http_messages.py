"""KServe's messages in JSON, and binary data after Inference-Header-Content-Length bytes; Content-Type does not matter.

See `inference_rest.md` of the Open Inference Protocol and Triton's `extension_binary_data.md`.
"""

from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus
from itertools import chain
from typing import Annotated, Any, TypeVar

from google.protobuf.message import Message
from pydantic import BaseModel, ConfigDict, Field

from service.domain.errors import InvalidRequest, Path, Public, counted
from service.domain.translation import MAX_TEXTS
from service.faces.fields import check_count
from service.faces.grpc.counts import MAX_DIMENSIONS, MAX_PARAMETERS, MAX_TENSORS
from service.faces.grpc.pb.inference import grpc_service_pb2 as pb
from service.faces.http.answers import in_json
from service.faces.http.application import HttpAnswer, HttpRequest
from service.faces.http.bodies import from_json
from service.faces.http.bounded import Anything, AtMost, Name
from service.faces.json_text import wrong_value
from service.faces.kserve.tensors import BYTES, FP32, elements_of, num_elements, raw_of, raw_of_floats

BINARY = "application/octet-stream"
JSON_LENGTH = "Inference-Header-Content-Length"

_SIZE = "binary_data_size"
_CHOICES = {bool: "bool_param", int: "int64_param", float: "double_param", str: "string_param"}
_INT64 = range(-(2**63), 2**63)

Parameters = Mapping[str, object]
B = TypeVar("B", bound=BaseModel)


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class _WithParameters(_Body):
    parameters: Annotated[dict[Name, Anything], AtMost(MAX_PARAMETERS)] | None = None

    @property
    def given(self) -> Parameters:
        return self.parameters or {}


class InputBody(_WithParameters):
    """A tensor: its elements are in `data`, or follow the JSON."""

    name: Name
    datatype: Name
    shape: Annotated[list[Annotated[int, Field(ge=-(2**63), lt=2**63)]], AtMost(MAX_DIMENSIONS)]
    data: Annotated[list[Anything], AtMost(MAX_TEXTS)] | None = None


class OutputBody(_WithParameters):
    """A tensor that the caller wants."""

    name: Name


class InferBody(_WithParameters):
    """A request to infer. The URL names the model; some clients name it here, too."""

    model_name: Name | None = None
    model_version: Name | None = None
    id: Name | None = None
    inputs: Annotated[list[InputBody], AtMost(MAX_TENSORS)]
    outputs: Annotated[list[OutputBody], AtMost(MAX_TENSORS)] | None = None


class IndexBody(_Body):
    """A request for the list of models."""

    ready: bool = False


class ModelBody(_WithParameters):
    """A request to load or unload a model."""


def parsed(document: bytes, kind: type[B]) -> B:
    """Read JSON, where nothing at all counts as an empty object; raises as `from_json`."""
    return from_json(document or b"{}", kind)


def infer_body_of(request: HttpRequest) -> tuple[InferBody, bytes]:
    """Return the JSON of a request, and the binary data after it.

    Raise `InvalidRequest` if the body is compressed, is no such request or names another model than the URL, or the
    header is wrong.
    """
    whole = request.body
    length = _json_length(request, len(whole))
    body = parsed(whole[:length], InferBody)
    for field, own, part in (("model_name", body.model_name, "name"), ("model_version", body.model_version, "version")):
        named = request.parts.get(part, "")
        if own and own != named:
            raise InvalidRequest("{path} is {own}, and {named} in the URL", Path(field), own=own, named=named)
    return body, whole[length:]


def infer_request(model: tuple[str, str], body: InferBody, data: bytes) -> pb.ModelInferRequest:
    """Return a request with typed contents; `model` is a name and a version, `data` follow the JSON.

    Raise `InvalidRequest` if data and inputs don't match, an element is not a text, or a parameter has a wrong type.
    """
    elements = _elements(body.inputs, data)
    message = pb.ModelInferRequest(model_name=model[0], model_version=model[1], id=body.id or "")
    fill(message.parameters, body.given)
    for given, contents in zip(body.inputs, elements, strict=True):
        tensor = message.inputs.add(name=given.name, datatype=given.datatype, shape=given.shape)
        tensor.contents.bytes_contents.extend(contents)
        fill(tensor.parameters, given.given, f"inputs[{given.name[:60]}].")
    for wanted in body.outputs or ():
        fill(message.outputs.add(name=wanted.name).parameters, wanted.given, f"outputs[{wanted.name[:60]}].")
    return message


def fill(into: Any, given: Parameters, within: str = "") -> None:
    """Set parameters, but for those that are null; raise `InvalidRequest` for a type that messages don't have."""
    for name, value in given.items():
        if value is None:
            continue
        choice = _CHOICES.get(type(value))
        if choice is None or (type(value) is int and value not in _INT64):
            where = Path(f"{within}parameters[{name[:60]}]")
            raise InvalidRequest("{path} can't be sent", where, allowed="a text, true or false, or a number of 64 bits")
        setattr(into[name], choice, value)


def binary_outputs(body: InferBody) -> Callable[[str], bool]:
    """Return which outputs' data are binary, by name; raise `InvalidRequest` for a flag that is no truth value."""
    of_all = _flag(body.given, "binary_data_output", "", default=False)
    of_one = {
        each.name: _flag(each.given, "binary_data", f"outputs[{each.name[:60]}].", default=of_all)
        for each in body.outputs or ()
    }
    return lambda name: of_one.get(name, of_all)


def answer_of(response: pb.ModelInferResponse, is_binary: Callable[[str], bool]) -> HttpAnswer:
    """Return an answer; data of outputs for which `is_binary` is true follow its JSON."""
    listed: list[dict[str, Any]] = []
    raw: list[bytes] = []
    for tensor in response.outputs:
        about: dict[str, Any] = {"name": tensor.name, "datatype": tensor.datatype, "shape": list(tensor.shape)}
        numbers, texts = tensor.contents.fp32_contents, tensor.contents.bytes_contents
        if is_binary(tensor.name):
            raw.append(raw_of_floats(numbers) if tensor.datatype == FP32 else raw_of(texts))
            about["parameters"] = {_SIZE: len(raw[-1])}
        else:
            about["data"] = list(numbers) if tensor.datatype == FP32 else [text.decode() for text in texts]
        listed.append(about)
    document = {"model_name": response.model_name, "model_version": response.model_version, "outputs": listed}
    answer = in_json({"id": response.id, **document} if response.id else document)
    if not raw:
        return answer
    headers = {JSON_LENGTH: str(len(answer.body))}
    return HttpAnswer(HTTPStatus.OK, BINARY, b"".join((answer.body, *raw)), headers)


def document_of(message: Message) -> dict[str, Any]:
    """Return a message as JSON in Triton's form.

    Names are the .proto's, and 64-bit numbers are numbers, unlike in protobuf's JSON. Scalars and lists may be empty;
    messages and members of a `oneof` are there only if set.
    """
    return {
        field.name: _plain(field, getattr(message, field.name))
        for field in message.DESCRIPTOR.fields
        if field.is_repeated or not field.has_presence or message.HasField(field.name)
    }


def _plain(field: Any, value: Any) -> Any:
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        entry = field.message_type.fields_by_name["value"]
        return {key: _plain(entry, value[key]) for key in sorted(value)}
    if field.is_repeated:
        return [_plain_one(field, each) for each in value]
    return _plain_one(field, value)


def _plain_one(field: Any, value: Any) -> Any:
    if field.message_type is not None:
        return document_of(value)
    if field.enum_type is not None:
        return field.enum_type.values_by_number[value].name
    return value


def _json_length(request: HttpRequest, whole: int) -> int:
    given = request.headers.get(JSON_LENGTH.lower())
    if given is None:
        return whole
    is_number = given.isascii() and given.isdecimal() and len(given) <= 18
    if not is_number or not 1 <= int(given) <= whole:
        raise InvalidRequest(
            "{header} is {given}",
            header=Public(JSON_LENGTH),
            given=given,
            allowed=f"1 to {whole}",
            advice="give the size of the JSON in bytes; data may follow it",
        )
    return int(given)


def _elements(inputs: Sequence[InputBody], data: bytes) -> list[Sequence[bytes]]:
    found: list[Sequence[bytes]] = []
    position = 0
    for tensor in inputs:
        size = _binary_size(tensor, len(data) - position)
        if size is None:
            found.append(_elements_in_json(tensor))
        else:
            found.append(_elements_in_binary(tensor, data[position : position + size]))
            position += size
    if position != len(data):
        raise InvalidRequest(
            "the body has {rest} after the data of its inputs",
            rest=Public(counted(len(data) - position, "byte")),
            advice=f"parameter '{_SIZE}' of an input is the size of its data",
        )
    return found


def _binary_size(tensor: InputBody, available: int) -> int | None:
    """Return how many bytes of binary data are a tensor's; None if its elements are in the JSON."""
    size = tensor.given.get(_SIZE)
    if size is None:
        return None
    where = f"inputs[{tensor.name[:60]}]"
    if tensor.data is not None:
        raise InvalidRequest(
            "{path} has data, and parameter {name}", where, name=Public(repr(_SIZE)), advice="give one of the two"
        )
    if type(size) is not int or not 0 <= size <= available:
        advice = f"data follow the JSON, which ends where {JSON_LENGTH} says"
        raise wrong_value(f"{where}.parameters[{_SIZE}]", size, f"0 to {available}", advice)
    return size


def _elements_in_binary(tensor: InputBody, data: bytes) -> Sequence[bytes]:
    number = num_elements(tensor.shape)
    if tensor.datatype != BYTES or number is None or number > MAX_TEXTS:
        return ()  # `texts_of` rejects it
    return elements_of(tensor.name, data, number)


def _elements_in_json(tensor: InputBody) -> Sequence[bytes]:
    if tensor.datatype != BYTES or tensor.data is None:
        return ()  # `texts_of` rejects it
    where = f"inputs[{tensor.name[:60]}].data"
    data = tensor.data
    if len(tensor.shape) > 1 and all(isinstance(row, list) for row in data):  # nested as the shape says, or flat
        data = list(chain.from_iterable(data))
        check_count(where, len(data), MAX_TEXTS)
    for index, element in enumerate(data):
        if not isinstance(element, str):
            raise InvalidRequest("{path} is not a text", Path(where, index), advice=f"a {BYTES} tensor has texts")
    return [element.encode() for element in data]


def _flag(parameters: Parameters, name: str, within: str, *, default: bool) -> bool:
    value = parameters.get(name)
    if value is None:
        return default
    if not isinstance(value, bool):
        raise wrong_value(f"{within}parameters[{name}]", value, "true or false")
    return value
