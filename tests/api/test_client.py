"""The synchronous client against a real server: how calls end when nobody waits for them any more."""

import contextlib
from concurrent.futures import ThreadPoolExecutor

import pytest

from dragoman_client import ClientError, Options
from tests.gate import Gate
from tests.servers import TIMEOUT_SECONDS, InProcessServer, Serve, distinct_texts, eventually

LONG = Options(max_output_tokens=24, max_repeats=0, max_length_ratio=0.0)


@pytest.fixture
def slow(serve: Serve) -> InProcessServer:
    return serve(max_slots=1, max_waiting=4000)  # room for two calls of one caller


def num_running(server: InProcessServer) -> int:
    return server.server.models[0].engine.snapshot().num_running


def test_a_stream_that_is_closed_leaves_the_engine(slow: InProcessServer) -> None:
    with (
        slow.client() as client,
        contextlib.closing(client.stream(distinct_texts(500), "en", "de", options=LONG)) as it,
    ):
        assert next(it).model == "tiny"
        eventually(lambda: num_running(slow) > 0)  # it is not between two turns, in which all may end
        it.close()
        eventually(lambda: num_running(slow) == 0)  # before the channel closes


def test_closing_fails_the_calls_under_way(slow: InProcessServer, monkeypatch: pytest.MonkeyPatch) -> None:
    gate = Gate(slow, monkeypatch)
    with ThreadPoolExecutor() as threads, slow.client() as client:
        translations = threads.submit(client.translate, distinct_texts(500), "en", "de", options=LONG)
        events = threads.submit(lambda: list(client.stream(distinct_texts(500), "en", "de", options=LONG)))
        eventually(lambda: slow.metric("dragoman_inflight_requests") == 2)
        client.close()
        for call in (translations, events):
            error = call.exception(TIMEOUT_SECONDS)
            assert isinstance(error, ClientError)
            assert error.code == "CANCELLED"
    gate.open()
    eventually(lambda: num_running(slow) == 0)


def test_what_waits_for_room_ends_as_the_client_is_closed(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    server = serve(max_slots=1, max_waiting=500)
    gate = Gate(server, monkeypatch)
    with ThreadPoolExecutor() as threads, server.client() as busy, server.client() as client:
        threads.submit(busy.translate, distinct_texts(500), "en", "de", options=LONG)
        gate.wait()
        call = threads.submit(client.translate, distinct_texts(500), "en", "de", options=LONG)
        eventually(lambda: server.metric("dragoman_rejected_total", reason="queue_full") >= 1)
        client.close()
        error = call.exception(TIMEOUT_SECONDS)
        busy.close()
        gate.open()
    assert isinstance(error, ClientError)
    assert error.code in ("RESOURCE_EXHAUSTED", "CANCELLED")  # whether it was waiting or retrying
