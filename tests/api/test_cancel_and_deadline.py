"""Calls that end early: by the caller, by their deadline, or by the server's own."""

from typing import Any

import grpc
import pytest

from service.faces.grpc.pb.dragoman.v1 import translation_pb2_grpc as pb_grpc
from tests.grpc_calls import request_of, stub_of
from tests.patience import patient
from tests.servers import InProcessServer, Serve, distinct_texts, eventually

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
def test_the_callers_deadline_is_kept(slow: InProcessServer, method: str) -> None:
    before = ended(slow, method)
    with stub_of(slow.address) as stub:
        assert started(stub, method, timeout=0.1).code() is grpc.StatusCode.DEADLINE_EXCEEDED
    check_end(slow, method, before, "DEADLINE_EXCEEDED")


@METHODS
def test_a_call_without_a_deadline_gets_the_servers(serve: Serve, method: str) -> None:
    server = serve(max_slots=1, default_deadline_seconds=0.1)
    with stub_of(server.address) as stub:
        call = started(stub, method)
        assert call.code() is grpc.StatusCode.DEADLINE_EXCEEDED
        assert "x-request-id" in dict(call.trailing_metadata())  # so the error came from the server
    check_end(server, method, dict.fromkeys(ended(server, method), 0.0), "DEADLINE_EXCEEDED")


def test_a_short_call_passes_a_long_one(slow: InProcessServer) -> None:
    with stub_of(slow.address) as stub:
        long = started(stub, "Translate")
        eventually(lambda: slow.server.models[0].engine.snapshot().num_running > 0)
        assert stub.Translate(request_of(["Hello"]), timeout=patient(30)).translations[0].text
        assert not long.done()
        long.cancel()
