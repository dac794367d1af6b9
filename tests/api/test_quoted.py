"""Callers' input appears nowhere in the log or on the status page: each field of each request of each API in turn."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

import grpc
import pytest
from google.protobuf.descriptor import Descriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from service.faces.grpc.pb.dragoman.v1 import translation_pb2
from service.faces.grpc.pb.google.cloud.translation.v3 import translation_service_pb2
from service.faces.grpc.pb.inference import grpc_service_pb2
from service.observe import recent_errors
from tests.log_lines import lines
from tests.patience import patient
from tests.servers import Serve, eventually

SECRET = "zwetschgenkuchen"
# In every form from which a message might be built.
MARKS = (SECRET, SECRET.capitalize(), f"shared_memory_{SECRET}", f"x'y\" {SECRET}", f"projects/{SECRET}/locations/a b")
KNOWN_PARAMETERS = ("mime_type", "seed", "source_language", "priority", "strict")
APIS = (translation_pb2, translation_service_pb2, grpc_service_pb2)
_LOCATION = {"parent": "projects/p/locations/l", "name": "projects/p/locations/l/glossaries/g"}
_PAIR = {"source_language_code": "en", "target_language_code": "de"}
VALUES: dict[str, dict[str, Any]] = {
    "dragoman.v1.TranslateRequest": _PAIR | {"texts": ["Hello"]},
    "google.cloud.translation.v3.TranslateTextRequest": _PAIR | {"parent": "projects/p", "contents": ["Hello"]},
    "inference.ModelInferRequest": {"model_name": "tiny"},
}


def good(kind: Any) -> Any:
    """Return a request that is accepted, or rejected only because it refers to something that does not exist."""
    request = kind(**VALUES.get(kind.DESCRIPTOR.full_name, {}))
    for name, value in _LOCATION.items():
        if name in kind.DESCRIPTOR.fields_by_name and "google" in kind.DESCRIPTOR.full_name:
            setattr(request, name, value)
    if kind.DESCRIPTOR.full_name == "inference.ModelInferRequest":
        request.inputs.add(name="text", datatype="BYTES", shape=[1]).contents.bytes_contents.append(b"Hello")
    return request


def ways(kind: Descriptor, mark: str, depth: int = 0) -> Iterator[Callable[[Any], object]]:
    """Iterate over every way to put the mark into one of a message's fields."""
    for field in kind.fields:
        if field.message_type is None:
            if field.type in (field.TYPE_STRING, field.TYPE_BYTES):
                data = mark if field.type == field.TYPE_STRING else mark.encode()
                yield partial(append if field.is_repeated else put, name=field.name, data=data)
        elif not field.message_type.GetOptions().map_entry:
            if depth < 4:
                for way in ways(field.message_type, mark, depth + 1):
                    yield partial(inside, name=field.name, is_repeated=field.is_repeated, way=way)
        elif field.message_type.fields_by_name["value"].message_type is None:
            for entry in ({mark: "v"}, {"k": mark}, {mark: "No Label!"}):
                yield partial(update, name=field.name, entry=entry)
        else:
            for key in (mark, *KNOWN_PARAMETERS):
                yield partial(set_parameter, name=field.name, key=key, mark=mark)


def put(message: Any, name: str, data: Any) -> None:
    setattr(message, name, data)


def append(message: Any, name: str, data: Any) -> None:
    getattr(message, name).append(data)


def update(message: Any, name: str, entry: dict[str, str]) -> None:
    getattr(message, name).update(entry)


def set_parameter(message: Any, name: str, key: str, mark: str) -> None:
    getattr(message, name)[key].string_param = mark


def inside(message: Any, name: str, is_repeated: bool, way: Callable[[Any], object]) -> None:
    held = getattr(message, name)
    way(held if not is_repeated else held[0] if len(held) else held.add())


def requests_of(kind: Any) -> Iterator[Message]:
    for mark in MARKS:
        for way in ways(kind.DESCRIPTOR, mark):
            request = good(kind)
            way(request)
            yield request


def test_no_field_is_told(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recent_errors, "NUM_KEPT", 100_000)
    failed: Counter[str] = Counter()
    with lines() as log:
        server = serve(access_log_ratio=1.0)
        with grpc.insecure_channel(server.address, options=[("grpc.enable_retries", 0)]) as channel:
            for method in (each for module in APIS for api in services(module) for each in api.methods):
                name = f"{method.containing_service.full_name}/{method.name}"
                for request in requests_of(GetMessageClass(method.input_type)):
                    failed[name] += fails(channel, name, method, request)
        eventually(lambda: len(server.server.errors.latest()) >= 0.9 * failed.total())
    told = {error.message for error in server.server.errors.latest() if SECRET in error.message.lower()}
    assert told == set()
    assert [line for line in log.lines if SECRET in line.lower()] == []
    assert len(+failed) > 10, failed


def services(module: Any) -> Iterable[Any]:
    services: Iterable[Any] = module.DESCRIPTOR.services_by_name.values()
    return services


def fails(channel: grpc.Channel, name: str, method: Any, request: Message) -> bool:
    serialize = type(request).SerializeToString
    try:
        if method.client_streaming:
            list(channel.stream_stream(f"/{name}", serialize, bytes)(iter([request]), timeout=patient(30)))
        elif method.server_streaming:
            list(channel.unary_stream(f"/{name}", serialize, bytes)(request, timeout=patient(30)))
        else:
            channel.unary_unary(f"/{name}", serialize, bytes)(request, timeout=patient(30))
    except grpc.RpcError:
        return True
    return False
