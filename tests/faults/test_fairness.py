"""Callers who ask for too much beside one who asks for little: the order of turns, rejections, callers' identities."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest

from service.faces.grpc.pb.dragoman.v1 import translation_pb2 as pb
from service.faces.grpc.pb.dragoman.v1 import translation_pb2_grpc as pb_grpc
from tests import servers
from tests.grpc_calls import request_of, ways_of
from tests.http_caller import call
from tests.key_files import ALICE, write_keys
from tests.patience import patient
from tests.servers import InProcessServer, LoopThread, Serve, distinct_texts, eventually

NUM_BURST = 80
# The tiny model does not stop early, so that each text takes some milliseconds.
OPTIONS = pb.DecodingOptions(max_output_tokens=40, max_length_ratio=0, max_repeats=0)
SAME_ID = (("x-request-id", "same"),)


def slow_request(num_texts: int) -> pb.TranslateRequest:
    return request_of(distinct_texts(num_texts), options=OPTIONS)


@contextmanager
def connection(address: str) -> Iterator[Any]:
    """Open a separate connection: gRPC's channels otherwise share one."""
    with grpc.insecure_channel(address, options=[("grpc.use_local_subchannel_pool", 1)]) as channel:
        yield channel


def test_the_id_of_a_bulk_call_makes_no_small_call_wait_for_it(serve: Serve) -> None:
    server = serve(max_slots=1)
    engine = server.server.models[0].engine
    with connection(server.address) as channel:
        stub = pb_grpc.TranslationServiceStub(channel)
        call = stub.Translate.future(slow_request(200), timeout=patient(60), metadata=SAME_ID)
        eventually(lambda: engine.snapshot().num_waiting > 0)
        assert stub.Translate(slow_request(1), timeout=patient(60), metadata=SAME_ID).translations
        assert engine.snapshot().num_waiting > 150
        call.cancel()


class Origins:
    """Records the callers to which an engine's calls are attributed."""

    def __init__(self, server: InProcessServer, monkeypatch: pytest.MonkeyPatch) -> None:
        self.seen: list[Any] = []
        engine = server.server.models[0].engine
        submit = engine.submit

        def noted(sequences: Any) -> None:
            self.seen += {sequence.origin for sequence in sequences}
            submit(sequences)

        monkeypatch.setattr(engine, "submit", noted)

    def of(self, num_calls: int) -> list[Any]:
        """Return the origins without their last parts, which differ for each of so many calls."""
        seen, self.seen = self.seen, []
        assert len(seen) == num_calls == len({origin[-1] for origin in seen})
        return [origin[:-1] for origin in seen]


def call_by_every_way(address: str, metadata: Any) -> int:
    """Make calls of each API on one connection, with one id; return how many."""
    with connection(address) as channel:
        ways = ways_of(channel).values()
        for call in ways:
            call(distinct_texts(2), metadata=metadata)
    return len(ways)


def test_whose_a_call_is_comes_from_its_connection_and_not_from_its_id(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = serve()
    origins = Origins(server, monkeypatch)
    first, second = (set(origins.of(call_by_every_way(server.address, SAME_ID))) for _ in range(2))
    assert len(first) == len(second) == 1
    ((host, connection),), ((other_host, other_connection),) = first, second
    assert host == other_host == "127.0.0.1"
    assert connection != other_connection
    assert connection.startswith("ipv4:127.0.0.1:")


def test_the_parts_of_a_call_in_several_languages_are_one_call(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    server = serve()
    origins = Origins(server, monkeypatch)
    with server.client() as client:
        client.translate(["Hello there", "Where is the station?"], "", "de")
    assert len(origins.of(1)) == 1


def test_whose_a_call_is_is_its_keys_name_where_there_are_keys(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    server = serve(api_keys=write_keys(tmp_path, alice=ALICE))
    origins = Origins(server, monkeypatch)
    for _ in range(2):  # on two connections
        num_calls = call_by_every_way(server.address, (*SAME_ID, ("x-api-key", ALICE)))
        assert set(origins.of(num_calls)) == {("alice",)}


def test_what_operators_ask_for_is_one_callers(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    server = serve(admin_port=0)
    origins = Origins(server, monkeypatch)
    asked = {"texts": ["Hello"], "source_language_code": "en", "target_language_code": "de"}
    for _ in range(2):
        url = f"http://127.0.0.1:{server.server.admin_port}"
        assert call(url, "POST", "/api/translate", asked, x_request_id="same").status == 200
    assert set(origins.of(2)) == {("operators",)}


def test_a_burst_is_let_in_by_default(serve: Serve, loop_thread: LoopThread, monkeypatch: pytest.MonkeyPatch) -> None:
    """A limit that is set holds for bursts too: tests/faults/test_overload.py."""
    monkeypatch.setattr(servers, "LONG_QUEUE_SECONDS", 0.0)
    server = serve(max_slots=1)

    async def burst() -> None:
        """Make calls that all arrive at once and have a minute."""
        async with grpc.aio.insecure_channel(server.address) as channel:
            stub: Any = pb_grpc.TranslationServiceStub(channel)
            for num_calls in (8, NUM_BURST):  # after the first it knows its pace
                await asyncio.gather(*(stub.Translate(slow_request(1), timeout=patient(60)) for _ in range(num_calls)))

    loop_thread.run(burst(), patient(60))
