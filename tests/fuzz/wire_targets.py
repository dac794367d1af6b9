"""Targets: input by gRPC's metadata and messages, by HTTP, and in lines to the command line."""

import functools
import re
import socket
from contextlib import suppress
from http import HTTPStatus
from typing import TypeVar
from unittest.mock import patch

from google.protobuf.message import DecodeError, Message

from dragoman_client import target_of
from service.calls.pipeline import api_key_in, request_id_in
from service.domain.call import Call
from service.domain.errors import InvalidRequest, Path, ServiceError
from service.domain.translation import TranslationRequest
from service.faces.admin.server import refusal
from service.faces.dragoman import messages
from service.faces.google import messages as google_messages
from service.faces.google import names as google_names
from service.faces.grpc.json_messages import message_from_json
from service.faces.grpc.pb.dragoman.v1 import translation_pb2
from service.faces.grpc.pb.google.cloud.translation.v3 import translation_service_pb2
from service.faces.grpc.pb.inference import grpc_service_pb2
from service.faces.http.application import PLAIN, HttpAnswer, HttpRequest, application
from service.faces.http.listener import HttpListener
from service.faces.kserve.messages import _outputs_from_pb, _parameters_from_pb, _tensors_from_pb
from service.faces.kserve.tensors import elements_of, raw_of
from service.observe.access_log import is_sampled
from service.observe.recent_errors import RecentErrors
from service.observe.tracing import Tracing
from service.translation.checks import check_request
from tests.fuzz.source import Source

M = TypeVar("M", bound=Message)

_MAX_MESSAGE = 2000
_TRACEPARENT = re.compile(r"00-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-01")


def kserve_tensors(data: bytes) -> None:
    """Check that raw contents are rejected, or consist of their elements and nothing else."""
    source = Source(data)
    num_elements = source.number() % 8
    raw = source.bytes()
    try:
        elements = elements_of("TEXT", raw, num_elements)
    except InvalidRequest as error:
        _check(error)
        return
    assert raw_of(elements) == raw and len(elements) <= num_elements


def requests(data: bytes) -> None:
    """Check that messages of the three APIs, and JSON of the status page, are requests or rejected in one line."""
    source = Source(data)
    read = source.pick((_ours, _googles, _kserves, _ours_in_json))
    body = source.bytes()
    try:
        read(body)
    except DecodeError:
        return
    except ServiceError as error:
        _check(error)


def _ours(body: bytes) -> None:
    _check_request(messages.request_from_pb(_message(translation_pb2.TranslateRequest(), body), 0.0))


def _ours_in_json(body: bytes) -> None:
    _check_request(messages.request_from_pb(message_from_json(body, translation_pb2.TranslateRequest), 0.0))


def _googles(body: bytes) -> None:
    message = _message(translation_service_pb2.TranslateTextRequest(), body)
    _check_request(google_messages.request_from_pb(message, 0.0))


def _kserves(body: bytes) -> None:
    message = _message(grpc_service_pb2.ModelInferRequest(), body)
    _outputs_from_pb(message)
    _parameters_from_pb(message)
    tensors, _ = _tensors_from_pb(message)
    assert all(isinstance(text, str) for texts in tensors.values() for text in texts)


def _message(message: M, body: bytes) -> M:
    message.ParseFromString(body)
    return message


def _check_request(request: TranslationRequest) -> None:
    check_request(request, 1000)
    assert request.texts and all(request.texts) is not None


def metadata(data: bytes) -> None:
    """Check that API keys, request ids and trace contexts are used if valid, and otherwise ignored."""
    source = Source(data)
    names = ("authorization", "x-api-key", "x-goog-api-key", "x-request-id", "traceparent", "tracestate", "other")
    pairs: list[tuple[str, str | bytes]] = []
    for _ in range(source.number() % 8):
        name, line = source.pick(names), source.line()
        pairs.append((name, line if source.number() % 8 else line.encode()))
    key = api_key_in(pairs)
    assert key == "" or any(key in value for _, value in pairs if isinstance(value, str))
    identifier = request_id_in(pairs)
    assert re.fullmatch(r"[\x21-\x7e]{1,128}", identifier)
    is_sampled(identifier, 0.5)
    call = Call("/dragoman.v1.TranslationService/Translate", identifier)
    span = _tracing().begin(call, tuple(pairs))
    good = [value for name, value in pairs if name == "traceparent" and isinstance(value, str)]
    if len(good) == 1 and (found := _TRACEPARENT.fullmatch(good[0])):
        assert span is not None and call.trace_id == found[1]
    assert span is None or re.fullmatch("[0-9a-f]{32}", call.trace_id)


@functools.cache
def _tracing() -> Tracing:
    """Return a tracing whose spans never end, so that none is sent."""
    with patch.dict("os.environ", clear=True):
        return Tracing("http://127.0.0.1:1", 0.0, "1")


_ASKED: list[HttpRequest] = []


@functools.cache
def _http_port() -> int:
    """Return the port of a listener that answers while this process lives, and records what it was asked."""

    async def answer(request: HttpRequest) -> HttpAnswer:
        _ASKED.append(request)
        refused = refusal(request.method, request.headers, "status.example")
        return HttpAnswer(HTTPStatus.FORBIDDEN if refused else HTTPStatus.OK, PLAIN, refused.encode())

    listener = HttpListener("127.0.0.1", 0, "fuzzing", "--port", application(answer, max_body_bytes=1000))
    listener.start()
    return listener.port


def http(data: bytes) -> None:
    """Check that bytes on an HTTP port get answers with a status, or none if they are not a request."""
    _ASKED.clear()
    answered = bytearray()
    with socket.create_connection(("127.0.0.1", _http_port()), 30) as client, suppress(ConnectionError):
        client.sendall(data)
        client.shutdown(socket.SHUT_WR)
        while part := client.recv(65_536):
            answered += part
    for request in _ASKED:
        assert "?" not in request.path and len(request.body) <= 1000
        assert all(name == name.lower() for name in request.headers)
    assert b"internal error" not in answered.lower()
    if answered:
        assert re.match(rb"HTTP/1\.1 [1-5]\d\d ", answered), answered[:80]


def same_site(data: bytes) -> None:
    """Check that only requests that name this server in `Host`, and come from it, are answered."""
    source = Source(data)
    method = source.pick(("GET", "POST"))
    headers = {"host": source.line(), "content-type": source.pick(("application/json", "text/plain"))}
    if source.number() % 2:
        headers["origin"] = source.line()
    refused = refusal(method, headers, "status.example")
    _check_line(refused)
    if not refused and "origin" in headers and method == "POST":
        assert headers["origin"].lower().endswith(headers["host"].lower()) or "/" in headers["origin"]


def names(data: bytes) -> None:
    """Check Google's resource names, addresses of servers, and what the error log shows of messages."""
    source = Source(data)
    name = source.text()
    for read in (google_names.check_parent, google_names.model_of, google_names.detection_model_of):
        with _refusing():
            read(name)
    with _refusing():
        assert google_names.glossary_of(name, "name") in name
    with _refusing():
        glossary, _ = google_names.entry_of(name)
        assert google_names.parent_of(glossary) in name
    with suppress(ValueError):
        target_of(name)
    error = InvalidRequest("{path} is {name}", Path("model"), name=name, allowed="others")
    errors = RecentErrors()
    errors.note("fuzz", "method", "INVALID_ARGUMENT", error.redacted)
    (shown,) = errors.latest()
    if re.fullmatch(r"[a-z ]{4,40}", name):
        assert name in str(error)
        assert f"'{name}'" not in shown.message


class _refusing(suppress):  # noqa: N801
    """A context in which code may reject its input, in one line."""

    def __init__(self) -> None:
        super().__init__(InvalidRequest)

    def __exit__(self, kind: object, error: object, trace: object) -> bool:
        if isinstance(error, InvalidRequest):
            _check(error)
        return super().__exit__(kind, error, trace)  # type: ignore[arg-type]


def _check(error: ServiceError) -> None:
    _check_line(str(error))


def _check_line(message: str) -> None:
    assert len(message) <= _MAX_MESSAGE, len(message)
    assert len(message.splitlines()) <= 1, message
    message.encode()
