"""What calls over gRPC have in common: limits, a full queue, ids, internal errors, their timing, and ends."""

import logging
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import grpc
import pytest
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from dragoman_client import MimeType, Priority
from service.faces.grpc.pb.dragoman.v1 import translation_pb2 as pb
from service.faces.grpc.pb.dragoman.v1 import translation_pb2_grpc as pb_grpc
from service.faces.grpc.pb.inference import grpc_service_pb2_grpc as kserve_grpc
from service.text.markup.lexer import tokens
from tests.grpc_calls import WAYS, infer_request, refused, request_of, stub_of, ways_of
from tests.patience import patient
from tests.servers import InProcessServer, Serve, distinct_texts, eventually

MAX_CHARACTERS, MAX_BYTES, MAX_METADATA = 40, 1024, 2000
EXACT, TOO_MUCH = ["a" * 15, "é" * 25], ["a" * 15, "é" * 26]


@pytest.fixture(scope="module")
def limited(share: Serve) -> Iterator[grpc.Channel]:
    limits = {"max_characters": MAX_CHARACTERS, "max_request_bytes": MAX_BYTES, "max_metadata_bytes": MAX_METADATA}
    with grpc.insecure_channel(share(**limits, reflection=False).address) as opened:
        yield opened


@pytest.mark.parametrize(
    "way", ["Translate", "TranslateStream", "TranslateText", "ModelInfer", "detected", "detection", "parts"]
)
def test_all_texts_of_a_call_together_have_a_limit(limited: grpc.Channel, way: str) -> None:
    own, infer = pb_grpc.TranslationServiceStub(limited), kserve_grpc.GRPCInferenceServiceStub(limited).ModelInfer
    calls: dict[str, Callable[[list[str]], Any]] = {
        **ways_of(limited),
        "detected": lambda texts: own.Translate(
            request_of(texts, source_language_code="", keep_other_languages=True), timeout=patient(30)
        ),
        "detection": lambda texts: own.DetectLanguage(pb.DetectLanguageRequest(texts=texts), timeout=patient(30)),
        "parts": lambda texts: infer(infer_request(*texts, source_language=["en", ""]), timeout=patient(30)),
    }
    assert calls[way](EXACT)
    error = refused(lambda timeout: calls[way](TOO_MUCH))
    assert error.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert "have 41 characters in total; allowed: 40 per call. Send several calls." in error.details()


def test_a_message_has_a_limit(limited: grpc.Channel) -> None:
    error = refused(pb_grpc.TranslationServiceStub(limited).Translate, request_of(["a" * 2 * MAX_BYTES]))
    assert error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED  # gRPC's own error
    assert f"vs. {MAX_BYTES}" in error.details()


def test_metadata_have_a_limit(limited: grpc.Channel) -> None:
    stub = pb_grpc.TranslationServiceStub(limited)
    for _ in range(10):  # between its two limits gRPC would reject calls at random
        stub.ListModels(pb.ListModelsRequest(), timeout=patient(30), metadata=[("x-note", "a" * (MAX_METADATA - 600))])
        error = refused(stub.ListModels, pb.ListModelsRequest(), metadata=[("x-note", "a" * MAX_METADATA)])
        assert error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert f"vs. {MAX_METADATA}" in error.details()


def test_reflection_can_be_turned_off(limited: grpc.Channel, server: InProcessServer) -> None:
    def services(asked: grpc.Channel, timeout: float) -> Any:
        request = reflection_pb2.ServerReflectionRequest(list_services="")
        return reflection_pb2_grpc.ServerReflectionStub(asked).ServerReflectionInfo(iter([request]), timeout=timeout)

    with grpc.insecure_channel(server.address) as other:
        assert list(services(other, patient(30)))
    assert refused(partial(services, limited)).code() is grpc.StatusCode.UNIMPLEMENTED


def test_an_unexpected_error_is_internal_logged_and_not_told(
    server: InProcessServer,
    stub: pb_grpc.TranslationServiceStub,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def broken(request: Any) -> None:
        raise ValueError("secret detail")

    monkeypatch.setattr(server.server.translator, "translate", broken)
    with caplog.at_level(logging.ERROR):
        error = refused(stub.Translate, request_of(["Hello"]), metadata=[("x-request-id", "find-me")])
    assert error.code() is grpc.StatusCode.INTERNAL
    assert "secret" not in error.details()
    assert "find-me" in error.details()
    (record,) = [record for record in caplog.records if record.exc_info]  # each line gets the id of its call
    assert record.exc_info
    assert "secret detail" in str(record.exc_info[1])
    method = "dragoman.v1.TranslationService/Translate"
    # Counted after the caller has its answer.
    eventually(lambda: server.metric("dragoman_requests_total", method=method, code="INTERNAL") == 1)


SYNTAX = r"queue;dur=(\d+\.\d), encode;dur=(\d+\.\d), decode;dur=(\d+\.\d), total;dur=(\d+\.\d)"


@pytest.fixture
def channel(server: InProcessServer) -> Iterator[grpc.Channel]:
    with grpc.insecure_channel(server.address) as open_channel:
        yield open_channel


def timing(call: Any) -> list[float]:
    """Return the milliseconds of queue, encode, decode and total."""
    value = dict(call.trailing_metadata())["server-timing"]
    match = re.fullmatch(SYNTAX, value)
    assert match, value
    return [float(each) for each in match.groups()]


@pytest.mark.parametrize("way", WAYS)
def test_phases_are_reported_and_fit_into_the_whole(channel: grpc.Channel, way: str) -> None:
    began = time.monotonic()
    call = ways_of(channel)[way](distinct_texts(40), metadata=[("x-request-id", "order-66/a")])
    outside = 1000 * (time.monotonic() - began)
    queue, encode, decode, total = timing(call)
    assert encode > 0
    assert decode > 0
    assert encode + decode > total / 4  # the engine's phases are included
    assert queue + encode + decode <= total + 0.2  # four numbers are rounded
    assert total <= outside + 0.1
    assert dict(call.trailing_metadata())["x-request-id"] == "order-66/a"


def test_a_call_that_fails_reports_how_long_it_took(stub: pb_grpc.TranslationServiceStub) -> None:
    error = refused(stub.Translate, request_of(["Hello"], target_language_code="xx"))
    assert error.code() is grpc.StatusCode.NOT_FOUND
    queue, encode, decode, total = timing(error)
    assert (queue, encode, decode) == (0, 0, 0)
    assert total >= 0


def test_calls_without_texts_report_nothing(stub: pb_grpc.TranslationServiceStub) -> None:
    _, call = stub.ListModels.with_call(pb.ListModelsRequest(), timeout=patient(30))
    assert "server-timing" not in dict(call.trailing_metadata())


@pytest.mark.parametrize("priority", [Priority.NORMAL, Priority.HIGH])
def test_the_queue_is_looked_at_before_a_message_is_parsed_and_before_it_is_planned(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, priority: Priority
) -> None:
    server = serve(cache_mib=0)
    engine = server.server.models[0].engine
    looked: Counter[str] = Counter()
    check_queue = engine.check_queue

    def counted(asked: Any, origin: Any) -> None:
        looked[asked.value] += 1
        check_queue(asked, origin)

    monkeypatch.setattr(engine, "check_queue", counted)
    with server.client() as client:
        client.translate(distinct_texts(1), "en", "de", priority=priority)
    assert looked == Counter(["normal", priority.value])


def test_html_whose_language_is_detected_is_parsed_once(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    server = serve()
    parsed: list[str] = []

    def counted(html: str) -> Any:
        parsed.append(html)
        return tokens(html)

    monkeypatch.setattr("service.text.markup.document.tokens", counted)
    texts = [f"<p>The {text}</p>" for text in distinct_texts(2)] + ["<p>123</p>"]
    with server.client() as client:
        translations = client.translate(texts, "", "de", mime_type=MimeType.HTML)
    assert sorted(parsed) == sorted(texts)
    assert [each.detected_language_code for each in translations[:2]] == ["en", "en"]


REQUEST = request_of(distinct_texts(500))
METHODS = pytest.mark.parametrize("method", ["Translate", "TranslateStream"])


@pytest.fixture(scope="module")
def slow(share: Serve) -> InProcessServer:
    """Return a server with one slot, which needs seconds for `REQUEST`."""
    return share(max_slots=1)


def started(stub: Any, method: str, timeout: float | None = None) -> Any:
    """Begin a call."""
    return (
        stub.Translate.future(REQUEST, timeout=timeout)
        if method == "Translate"
        else stub.TranslateStream(REQUEST, timeout=timeout)
    )


def ended(server: InProcessServer, method: str) -> dict[str, float]:
    """Return how many calls have ended with each status."""
    codes = ("OK", "CANCELLED", "DEADLINE_EXCEEDED", "UNKNOWN", "INTERNAL")
    name = f"dragoman.v1.TranslationService/{method}"
    return {code: server.metric("dragoman_requests_total", method=name, code=code) for code in codes}


def check_end(server: InProcessServer, method: str, before: dict[str, float], code: str) -> None:
    """Check that one more call has ended, with this status, and that nothing of it is left."""
    eventually(server.is_idle, timeout_seconds=2)
    eventually(lambda: ended(server, method) == before | {code: before[code] + 1}, timeout_seconds=2)
    assert server.metric("dragoman_inflight_requests") == 0


@METHODS
@pytest.mark.parametrize("leaves", ["cancel", "disconnect"])
def test_a_caller_that_leaves_leaves_the_engine(
    slow: InProcessServer, caplog: pytest.LogCaptureFixture, method: str, leaves: str
) -> None:
    before, cancelled = ended(slow, method), slow.metric("dragoman_sentences_total", model="tiny", outcome="cancelled")
    channel = grpc.insecure_channel(slow.address)
    call = started(pb_grpc.TranslationServiceStub(channel), method)
    eventually(lambda: slow.server.models[0].engine.snapshot().num_running > 0)
    (call.cancel if leaves == "cancel" else channel.close)()
    check_end(slow, method, before, "CANCELLED")
    channel.close()
    assert call.code() is grpc.StatusCode.CANCELLED
    assert slow.metric("dragoman_sentences_total", model="tiny", outcome="cancelled") > cancelled + 400
    assert slow.metric("dragoman_finish_total", model="tiny", version="1", reason="cancelled") > cancelled + 400
    assert not [record for record in caplog.records if record.levelname in ("ERROR", "CRITICAL")]


@METHODS
def test_a_call_without_a_deadline_gets_the_servers(serve: Serve, method: str) -> None:
    server = serve(max_slots=1, default_deadline_seconds=0.1)
    with stub_of(server.address) as stub:
        call = started(stub, method)
        assert call.code() is grpc.StatusCode.DEADLINE_EXCEEDED
        assert "x-request-id" in dict(call.trailing_metadata())  # so the error came from the server
    check_end(server, method, dict.fromkeys(ended(server, method), 0.0), "DEADLINE_EXCEEDED")
