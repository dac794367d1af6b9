"""Callers who ask for too much beside one who asks for little: the order of turns, rejections, callers' identities."""

import asyncio
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest

from service.engine.costs import Costs
from service.faces.grpc.pb.dragoman.v1 import translation_pb2 as pb
from service.faces.grpc.pb.dragoman.v1 import translation_pb2_grpc as pb_grpc
from tests import servers
from tests.faults.proofs import Proved
from tests.grpc_calls import request_of, ways_of
from tests.http_caller import call
from tests.key_files import ALICE, write_keys
from tests.patience import patient
from tests.servers import InProcessServer, LoopThread, Serve, distinct_texts, eventually

NUM_GREEDY = 60
NUM_SMALL = 20
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


@pytest.mark.parametrize("shares_connection", [True, False], ids=["one connection", "two connections"])
def test_the_id_of_a_bulk_call_makes_no_small_call_wait_for_it(serve: Serve, *, shares_connection: bool) -> None:
    server = serve(max_slots=1)
    engine = server.server.models[0].engine
    with connection(server.address) as one, connection(server.address) as other:
        bulk, small = (pb_grpc.TranslationServiceStub(each) for each in (one, one if shares_connection else other))
        call = bulk.Translate.future(slow_request(200), timeout=patient(60), metadata=SAME_ID)
        eventually(lambda: engine.snapshot().num_waiting > 0)
        assert small.Translate(slow_request(1), timeout=patient(60), metadata=SAME_ID).translations
        assert engine.snapshot().num_waiting > 150
        call.cancel()


async def greedy_and_small(address: str) -> dict[str, Counter[str]]:
    """Return the statuses of calls of many tasks on one connection, and of one task on another, each call by call."""
    codes: dict[str, Counter[str]] = {"greedy": Counter(), "small": Counter()}
    is_full = asyncio.Event()

    async def call(stub: Any, who: str) -> None:
        try:
            await stub.Translate(slow_request(1), timeout=patient(60))
            codes[who]["OK"] += 1
        except grpc.aio.AioRpcError as error:
            codes[who][error.code().name] += 1
            is_full.set()

    async def on_and_on(stub: Any) -> None:
        while True:
            await call(stub, "greedy")

    options = [("grpc.use_local_subchannel_pool", 1)]
    async with (
        grpc.aio.insecure_channel(address, options=options) as one,
        grpc.aio.insecure_channel(address, options=options) as other,
    ):
        tasks = [asyncio.create_task(on_and_on(pb_grpc.TranslationServiceStub(one))) for _ in range(NUM_GREEDY)]
        try:
            await is_full.wait()
            for _ in range(NUM_SMALL):
                await call(pb_grpc.TranslationServiceStub(other), "small")
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
    return codes


def test_a_greedy_caller_gets_nobody_else_refused(
    serve: Serve, loop_thread: LoopThread, monkeypatch: pytest.MonkeyPatch, proved: Proved
) -> None:
    # A pace that a busy machine does not change: 30 to 40 ms per text, so more than two seconds for 60.
    monkeypatch.setattr(Costs, "seconds_per_row", property(lambda _: 0.001))
    server = serve(max_slots=2, max_queue_seconds=0.5)
    codes = loop_thread.run(greedy_and_small(server.address), timeout_seconds=patient(60))
    assert codes["small"] == {"OK": NUM_SMALL}
    assert codes["greedy"]["RESOURCE_EXHAUSTED"] > 0
    proved("overload", cases=NUM_SMALL, greedy_refused=codes["greedy"]["RESOURCE_EXHAUSTED"])


def test_a_queue_that_is_full_of_one_callers_has_room_for_another(serve: Serve) -> None:
    server = serve(max_slots=1, max_waiting=160)  # many: a busy machine decodes some until this thread goes on
    engine = server.server.models[0].engine
    with connection(server.address) as one, connection(server.address) as other:
        greedy, small = (pb_grpc.TranslationServiceStub(each) for each in (one, other))
        calls = [greedy.Translate.future(slow_request(1), timeout=patient(60)) for _ in range(240)]
        eventually(lambda: server.metric("dragoman_rejected_total", reason="queue_full") > 0)
        assert small.Translate(slow_request(1), timeout=patient(60)).translations
        assert engine.snapshot().num_waiting > 40, "it is as full as it was"
        for call in calls:
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


async def burst(address: str) -> Counter[str]:
    """Return the statuses of calls that all arrive at once and have a minute."""

    async def call(stub: Any) -> str:
        try:
            await stub.Translate(slow_request(1), timeout=patient(60))
        except grpc.aio.AioRpcError as error:
            return error.code().name
        return "OK"

    async with grpc.aio.insecure_channel(address) as channel:
        stub = pb_grpc.TranslationServiceStub(channel)
        await asyncio.gather(*(call(stub) for _ in range(8)))  # so that it knows its pace
        return Counter(await asyncio.gather(*(call(stub) for _ in range(NUM_BURST))))


async def until_refused(address: str) -> int:
    """Return how many calls are answered before the first is rejected, with callers that keep asking for too much."""
    num_answered = 0

    async def on_and_on(stub: Any) -> str:
        nonlocal num_answered
        while True:
            try:
                await stub.Translate(slow_request(1), timeout=patient(60))
            except grpc.aio.AioRpcError as error:
                return error.code().name
            num_answered += 1

    async with grpc.aio.insecure_channel(address) as channel:
        stub = pb_grpc.TranslationServiceStub(channel)
        tasks = [asyncio.create_task(on_and_on(stub)) for _ in range(3 * NUM_GREEDY)]
        done, left = await asyncio.wait(tasks, timeout=patient(60), return_when=asyncio.FIRST_COMPLETED)
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)
    assert {task.result() for task in done} == {"RESOURCE_EXHAUSTED"}
    return num_answered


def test_a_burst_is_let_in_and_a_queue_that_stands_does_not_grow_by_default(
    serve: Serve, loop_thread: LoopThread, monkeypatch: pytest.MonkeyPatch, proved: Proved
) -> None:
    """Persistent callers, the positive control of the burst, are rejected once the queue stands."""
    monkeypatch.setattr(servers, "LONG_QUEUE_SECONDS", 0.0)
    server = serve(max_slots=1)
    codes = loop_thread.run(burst(server.address), patient(60))
    assert codes == {"OK": NUM_BURST}
    assert loop_thread.run(until_refused(server.address), patient(60)) > 0
    proved("overload", cases=NUM_BURST)


def test_a_burst_is_not_let_in_if_a_limit_is_set(serve: Serve, loop_thread: LoopThread, proved: Proved) -> None:
    codes = loop_thread.run(burst(serve(max_slots=1, max_queue_seconds=0.05).address), patient(60))
    assert codes["RESOURCE_EXHAUSTED"] > 0
    assert codes["OK"] + codes["RESOURCE_EXHAUSTED"] == NUM_BURST
    proved("overload", cases=NUM_BURST, refused=codes["RESOURCE_EXHAUSTED"])
