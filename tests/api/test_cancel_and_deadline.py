"""Calls that end early: by the caller, by their deadline, or by the server's own."""

from collections.abc import Callable
from typing import Any

import grpc
import pytest

from service.faces.grpc.pb.dragoman.v1 import translation_pb2_grpc as pb_grpc
from tests.grpc_calls import refused, request_of, stub_of
from tests.patience import patient
from tests.servers import InProcessServer, distinct_texts, eventually

REQUEST = request_of(distinct_texts(500))


@pytest.fixture
def slow(serve: Callable[..., InProcessServer]) -> Any:
    """Start a server with one slot, which needs seconds for `REQUEST`."""
    return serve(max_slots=1)


def is_idle(server: InProcessServer) -> Any:
    snapshot = server.server.models[0].engine.snapshot()
    return not (snapshot.num_waiting or snapshot.num_running or snapshot.slots_used)


def outcomes(server: InProcessServer) -> Any:
    return {
        code: server.metric("dragoman_requests_total", method="dragoman.v1.TranslationService/Translate", code=code)
        for code in ("OK", "CANCELLED", "DEADLINE_EXCEEDED")
    }


def test_a_cancelled_call_leaves_the_engine(slow: InProcessServer) -> None:
    engine = slow.server.models[0].engine
    with stub_of(slow.address) as stub:
        call = stub.Translate.future(REQUEST, timeout=patient(30))
        eventually(lambda: engine.snapshot().num_running > 0)
        call.cancel()
        eventually(lambda: is_idle(slow), timeout_seconds=2)
        eventually(lambda: outcomes(slow) == {"OK": 0, "CANCELLED": 1, "DEADLINE_EXCEEDED": 0})
    assert slow.metric("dragoman_sentences_total", model="tiny", outcome="cancelled") > 400
    assert slow.metric("dragoman_finish_total", model="tiny", reason="cancelled") > 400
    assert slow.metric("dragoman_inflight_requests") == 0


def test_a_disconnected_caller_leaves_the_engine(slow: InProcessServer) -> None:
    engine = slow.server.models[0].engine
    channel = grpc.insecure_channel(slow.address)
    call = pb_grpc.TranslationServiceStub(channel).Translate.future(REQUEST, timeout=patient(30))
    eventually(lambda: engine.snapshot().num_running > 0)
    channel.close()
    eventually(lambda: is_idle(slow), timeout_seconds=2)
    assert call.code() is grpc.StatusCode.CANCELLED


def test_the_callers_deadline_is_kept(slow: InProcessServer) -> None:
    with stub_of(slow.address) as stub:
        error = refused(stub.Translate, REQUEST, timeout=0.1)
    assert error.code() is grpc.StatusCode.DEADLINE_EXCEEDED
    eventually(lambda: is_idle(slow), timeout_seconds=2)
    eventually(lambda: outcomes(slow)["DEADLINE_EXCEEDED"] == 1)
    assert outcomes(slow)["OK"] == 0


def test_a_call_without_a_deadline_gets_the_servers(serve: Callable[..., InProcessServer]) -> None:
    server = serve(max_slots=1, default_deadline_seconds=0.1)
    with stub_of(server.address) as stub, pytest.raises(grpc.RpcError) as raised:
        stub.Translate(REQUEST)
    assert raised.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED
    trailers = {item.key for item in raised.value.trailing_metadata()}
    assert "x-request-id" in trailers  # so the error came from the server
    eventually(lambda: is_idle(server), timeout_seconds=2)


def test_a_short_call_passes_a_long_one(slow: InProcessServer) -> None:
    with stub_of(slow.address) as stub:
        long = stub.Translate.future(REQUEST, timeout=patient(30))
        eventually(lambda: slow.server.models[0].engine.snapshot().num_running > 0)
        short = request_of(["Hello"])
        assert stub.Translate(short, timeout=patient(30)).translations[0].text
        assert not long.done()
        long.cancel()
