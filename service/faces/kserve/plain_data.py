"""KServe's messages from and to plain data, for a face that sends them in JSON."""

from collections.abc import Callable, Mapping, Sequence, Sized
from dataclasses import dataclass
from typing import Any

from google.protobuf.message import Message

from service.domain.errors import InvalidRequest, Path
from service.faces.counts import check_count
from service.faces.grpc.counts import MAXIMA
from service.faces.grpc.pb.inference import grpc_service_pb2 as pb
from service.faces.kserve.tensors import FP32, raw_of, raw_of_floats

Parameters = Mapping[str, object]

_CHOICES = {bool: "bool_param", int: "int64_param", float: "double_param", str: "string_param"}
_INT64 = range(-(2**63), 2**63)


@dataclass(frozen=True, slots=True)
class InputTensor:
    """An input and its elements, which only a BYTES tensor has."""

    name: str
    datatype: str
    shape: Sequence[int]
    parameters: Parameters
    elements: Sequence[bytes]


@dataclass(frozen=True, slots=True)
class OutputTensor:
    """An output; its data are raw contents, or texts or numbers."""

    name: str
    datatype: str
    shape: Sequence[int]
    data: bytes | Sequence[str] | Sequence[float]


def infer_request(
    model: tuple[str, str],
    identifier: str,
    parameters: Parameters,
    inputs: Sequence[InputTensor],
    outputs: Sequence[tuple[str, Parameters]],
) -> pb.ModelInferRequest:
    """Return a request with typed contents; `model` is a name and a version, an output its name and parameters.

    Raises:
        InvalidRequest: the value of a parameter has a type that messages don't have, or there are too many entries.
    """
    message = pb.ModelInferRequest(model_name=model[0], model_version=model[1], id=identifier)
    _check_counts(message, parameters=parameters, inputs=inputs, outputs=outputs)
    _fill(message.parameters, parameters)
    for given in inputs:
        within = f"inputs[{given.name[:60]}]."
        tensor = message.inputs.add(name=given.name, datatype=given.datatype)
        _check_counts(tensor, within, shape=given.shape, parameters=given.parameters)
        tensor.shape.extend(given.shape)
        tensor.contents.bytes_contents.extend(given.elements)
        _fill(tensor.parameters, given.parameters, within)
    for name, own in outputs:
        within = f"outputs[{name[:60]}]."
        output = message.outputs.add(name=name)
        _check_counts(output, within, parameters=own)
        _fill(output.parameters, own, within)
    return message


def parameters_of_request(parameters: Parameters) -> pb.ModelInferRequest:
    """Return a request that has these parameters and nothing else.

    Raises:
        InvalidRequest: as for `infer_request`.
    """
    return infer_request(("", ""), "", parameters, (), ())


def output_tensors(response: pb.ModelInferResponse, is_raw: Callable[[str], bool]) -> list[OutputTensor]:
    """Return the outputs of an answer with typed contents; `is_raw` tells of which the data are made raw."""
    tensors = []
    for tensor in response.outputs:
        data: bytes | list[str] | list[float]
        if tensor.datatype == FP32:
            numbers = list(tensor.contents.fp32_contents)
            data = raw_of_floats(numbers) if is_raw(tensor.name) else numbers
        else:
            elements = tensor.contents.bytes_contents
            data = raw_of(elements) if is_raw(tensor.name) else [element.decode() for element in elements]
        tensors.append(OutputTensor(tensor.name, tensor.datatype, list(tensor.shape), data))
    return tensors


def document_of(message: Message) -> dict[str, Any]:
    """Return a message as Triton writes it in JSON.

    Fields have the names of the .proto, and 64-bit numbers are numbers, unlike in protobuf's own JSON. Numbers, texts
    and lists are there even if they are empty; other messages and members of a `oneof` only if they are set.
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


def _check_counts(message: Message, within: str = "", **given: Sized) -> None:
    """Check lists before they become those of a message, as `check_counts` does afterwards."""
    for field, entries in given.items():
        check_count(f"{within}{field}", len(entries), *MAXIMA[type(message)][field])


def _fill(into: Any, given: Parameters, within: str = "") -> None:
    """Set parameters of a message; those that are null in JSON count as left out."""
    for name, value in given.items():
        if value is None:
            continue
        choice = _CHOICES.get(type(value))
        if choice is None or (type(value) is int and value not in _INT64):
            where = Path(f"{within}parameters[{name[:60]}]")
            raise InvalidRequest("{path} can't be sent", where, allowed="a text, true or false, or a number of 64 bits")
        setattr(into[name], choice, value)
