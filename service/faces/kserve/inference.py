"""Requests to infer and their answers: JSON, and binary data after it.

See `inference_rest.md` of the Open Inference Protocol and Triton's `extension_binary_data.md`. The header
Inference-Header-Content-Length tells where the JSON ends.
"""

from collections.abc import Sequence
from http import HTTPStatus
from itertools import chain
from typing import Any

from service.domain.errors import InvalidRequest, Path, Public, Quoted
from service.domain.translation import MAX_TEXTS
from service.faces.counts import check_count
from service.faces.http.answers import in_json
from service.faces.http.application import HttpAnswer, HttpRequest
from service.faces.json_text import shown_as_json
from service.faces.kserve.bodies import InferBody, InputBody, parsed
from service.faces.kserve.plain_data import InputTensor, OutputTensor, Parameters
from service.faces.kserve.tensors import BYTES, elements_of, num_elements

BINARY = "application/octet-stream"
JSON_LENGTH = "Inference-Header-Content-Length"

_MAX_DIGITS = 18
_SIZE = "binary_data_size"


def infer_body_of(request: HttpRequest) -> tuple[InferBody, bytes]:
    """Return the JSON of a request, and the binary data after it.

    Raises:
        InvalidRequest: the body is compressed, its JSON is not such a request or names another model than the URL, or
            the header is wrong.
    """
    whole = request.body
    length = _json_length(request, len(whole))
    body = parsed(whole[:length], InferBody)
    for field, own, part in (("model_name", body.model_name, "name"), ("model_version", body.model_version, "version")):
        named = request.parts.get(part, "")
        if own and own != named:
            raise InvalidRequest("{path} is {own}, and {named} in the URL", Path(field), own=own, named=named)
    return body, whole[length:]


def input_tensors(body: InferBody, data: bytes) -> list[InputTensor]:
    """Return the inputs of a request; `data` follow its JSON.

    Raises:
        InvalidRequest: the data don't match the inputs, or an element is not a text.
    """
    tensors: list[InputTensor] = []
    position = 0
    for tensor in body.inputs:
        size = _binary_size(tensor, len(data) - position)
        if size is None:
            elements = _elements_in_json(tensor)
        else:
            elements = _elements_in_binary(tensor, data[position : position + size])
            position += size
        tensors.append(InputTensor(tensor.name, tensor.datatype, tensor.shape, tensor.given, elements))
    if position != len(data):
        raise InvalidRequest(
            "the body has {number} bytes after the data of its inputs",
            number=len(data) - position,
            advice=f"parameter '{_SIZE}' of an input is the size of its data",
        )
    return tensors


class WantedOutputs:
    """The outputs that a caller wants, and how."""

    def __init__(self, body: InferBody) -> None:
        """Read a request.

        Raises:
            InvalidRequest: a parameter that tells whether data are wanted in binary is neither true nor false.
        """
        self.named: list[tuple[str, Parameters]] = [(each.name, each.given) for each in body.outputs or ()]
        self._all = _flag(body.given, "binary_data_output", "", default=False)
        self._binary = {
            name: _flag(given, "binary_data", f"outputs[{name[:60]}].", default=self._all) for name, given in self.named
        }

    def is_binary(self, name: str) -> bool:
        return self._binary.get(name, self._all)


def answer_of(model: tuple[str, str], identifier: str, tensors: Sequence[OutputTensor]) -> HttpAnswer:
    """Return an answer; raw contents follow its JSON. `model` is a name and a version."""
    listed: list[dict[str, Any]] = []
    raw: list[bytes] = []
    for tensor in tensors:
        about: dict[str, Any] = {"name": tensor.name, "datatype": tensor.datatype, "shape": tensor.shape}
        if isinstance(tensor.data, bytes):
            raw.append(tensor.data)
            about["parameters"] = {_SIZE: len(tensor.data)}
        else:
            about["data"] = tensor.data
        listed.append(about)
    document = {"model_name": model[0], "model_version": model[1], "outputs": listed}
    answer = in_json({"id": identifier, **document} if identifier else document)
    if not raw:
        return answer
    headers = {JSON_LENGTH: str(len(answer.body))}
    return HttpAnswer(HTTPStatus.OK, BINARY, b"".join((answer.body, *raw)), headers)


def _json_length(request: HttpRequest, whole: int) -> int:
    """Return where the JSON ends in a body of `whole` bytes."""
    given = request.headers.get(JSON_LENGTH.lower())
    if given is None:
        return whole
    is_number = given.isascii() and given.isdecimal() and len(given) <= _MAX_DIGITS
    if not is_number or not 1 <= int(given) <= whole:
        raise InvalidRequest(
            "{header} is {given}",
            header=Public(JSON_LENGTH),
            given=given,
            allowed=f"1 to {whole}",
            advice="give the size of the JSON in bytes; data may follow it",
        )
    return int(given)


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
        raise InvalidRequest(
            "{path} is {size}",
            f"{where}.parameters[{_SIZE}]",
            size=Quoted(shown_as_json(size)),
            allowed=f"0 to {available}",
            advice=f"data follow the JSON, which ends where {JSON_LENGTH} says",
        )
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
        raise InvalidRequest(
            "{path} is {value}",
            f"{within}parameters[{name}]",
            value=Quoted(shown_as_json(value)),
            allowed="true or false",
        )
    return value
