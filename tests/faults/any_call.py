"""Calls of every method of a server, as data: what to send, how to send it, and how to judge the answer."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import grpc
from google.protobuf import message_factory
from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.message import Message
from grpc_health.v1 import health_pb2
from grpc_reflection.v1alpha import reflection_pb2

from service.faces.grpc.pb.dragoman.v1 import translation_pb2
from service.faces.grpc.pb.google.cloud.translation.v3 import translation_service_pb2
from service.faces.grpc.pb.inference import grpc_service_pb2
from tests.patience import patient

LIMIT_SECONDS = patient(60.0)  # a call that takes longer hangs
_SHORT_SECONDS = 5.0  # a deadline no longer than this may expire on a slow machine
_MAX_ANSWERS = 200
_FILES = (translation_pb2, translation_service_pb2, grpc_service_pb2, health_pb2, reflection_pb2)
_REFUSED = {
    grpc.StatusCode.INVALID_ARGUMENT,
    grpc.StatusCode.NOT_FOUND,
    grpc.StatusCode.RESOURCE_EXHAUSTED,
    grpc.StatusCode.UNIMPLEMENTED,
    grpc.StatusCode.FAILED_PRECONDITION,
}

METHODS: dict[str, MethodDescriptor] = {
    f"/{service.full_name}/{method.name}": method
    for file in _FILES
    for service in file.DESCRIPTOR.services_by_name.values()
    for method in service.methods
}


@dataclass(frozen=True, slots=True)
class Call:
    """A call whose `messages` are sent unchanged; a method without a request stream gets only the first."""

    method: str
    messages: tuple[bytes, ...]
    deadline_seconds: float | None = None
    metadata: tuple[tuple[str, str | bytes], ...] = ()


def judge(channel: grpc.Channel, call: Call) -> str:
    """Make a call; return its status.

    Raises:
        AssertionError: it hung, or the answer is not one that a caller may get.
    """
    timeout = min(call.deadline_seconds or LIMIT_SECONDS, LIMIT_SECONDS)
    answers: list[bytes] = []
    try:
        for answer in _answers(channel, call, timeout):
            answers.append(answer)
    except grpc.RpcError as raised:
        error: Any = raised
        code, details = error.code(), error.details()
        if code is grpc.StatusCode.CANCELLED and len(answers) == _MAX_ANSWERS:
            code = grpc.StatusCode.OK
        late = code is grpc.StatusCode.DEADLINE_EXCEEDED and timeout <= _SHORT_SECONDS
        assert late or code in _REFUSED | {grpc.StatusCode.OK}, (call, code, details)
        assert details.strip(), (call, code)
        assert "\n" not in details, (call, details)
        return str(code.name)
    method = METHODS.get(call.method)
    assert method is not None, f"{call.method} was answered"
    kind = message_factory.GetMessageClass(method.output_type)
    for each in map(kind.FromString, answers):
        _check_error_in(each)
    return "OK"


def _check_error_in(answer: Message) -> None:
    """Check errors sent as answers, as on KServe's streams."""
    error = getattr(answer, "error_message", "")
    assert not error.startswith(("INTERNAL", "UNKNOWN")), error
    assert "\n" not in error, error


def _bytes(data: bytes) -> bytes:
    return data


def _answers(channel: grpc.Channel, call: Call, timeout: float) -> Iterator[bytes]:
    method = METHODS.get(call.method)
    metadata = call.metadata
    if method is None or not (method.server_streaming or method.client_streaming):
        yield channel.unary_unary(call.method, _bytes, _bytes)(call.messages[0], timeout=timeout, metadata=metadata)
        return
    if method.client_streaming:
        stream: Any = channel.stream_stream(call.method, _bytes, _bytes)(
            iter(call.messages), timeout=timeout, metadata=metadata
        )
    else:
        stream = channel.unary_stream(call.method, _bytes, _bytes)(call.messages[0], timeout=timeout, metadata=metadata)
    for number, answer in enumerate(stream):
        yield answer
        if method.name == "Watch" or number + 1 == _MAX_ANSWERS:  # a watch has no end
            stream.cancel()
            return
