"""Calls given up at every moment, and clients that die: nothing of them is left behind, other calls are answered."""

import asyncio
import gc
import random
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import psutil
import pytest

from service.engine.engine import Engine
from tests.faults.test_cross_talk import answers, differences, places
from tests.grpc_calls import request_of
from tests.mixed_calls import DAY_SECONDS, GRPC_KINDS, HTTP_KINDS, MOMENTS, GrpcCall, HttpCall, MixedCall, mixed_calls
from tests.patience import patient
from tests.servers import (
    REPOSITORY,
    InProcessServer,
    LoopThread,
    Serve,
    distinct_texts,
    environment,
    eventually,
    read_line,
)
from tests.unit.engine.recorder import held

SHARE_GIVEN_UP = 0.4
SEED = 11

_GONE_SECONDS = patient(5.0)  # time for cancelled calls to disappear; decoding them would take several times as long
_MOST_GROWTH_MIB = 64


class Protocol(NamedTuple):
    """What a storm is made of: kinds of calls, so many at a time."""

    kinds: Any
    in_flight: int
    seed: int


# All calls are of one caller, of whom 18 documents may be in the server.
GRPC, HTTP = Protocol(GRPC_KINDS, 64, SEED), Protocol(HTTP_KINDS, 12, SEED + 3)
LONG = [pytest.mark.full, pytest.mark.timeout(1800)]

_CLIENT = """
import sys, time
import grpc
from service.faces.grpc.pb.dragoman.v1 import translation_pb2 as pb, translation_pb2_grpc as pb_grpc
stub = pb_grpc.TranslationServiceStub(grpc.insecure_channel(sys.argv[1]))
calls, words = [], ("station", "file", "window", "keys", "train", "close", "help", "find")
for number in range(40):
    texts = [" ".join(words[(40 * number + other) // 8**place % 8] for place in range(4)) for other in range(40)]
    request = pb.TranslateRequest(texts=texts, source_language_code="en", target_language_code="de")
    calls.append((stub.TranslateStream if number % 2 else stub.Translate.future)(request, timeout=10_000))
print("calling", flush=True)
time.sleep(100)
"""


class Left:
    """What a server and this process hold beyond what they held when this was created."""

    def __init__(self, server: InProcessServer) -> None:
        self._server = server
        self._at_first = self._held()

    def more(self) -> dict[str, float]:
        """Return, by name, what has grown since the beginning."""
        now = self._held()
        return {name: now[name] - before for name, before in self._at_first.items() if now[name] > before}

    def _held(self) -> dict[str, float]:
        (model,) = self._server.server.models
        engine = model.engine
        snapshot = engine.snapshot()
        return {
            "waiting": snapshot.num_waiting,
            "waiting tokens": snapshot.num_waiting_tokens,
            "running": snapshot.num_running,
            "slots": snapshot.slots_used,
            **held(engine),
            "pending calls": self._server.server.translator.num_pending,
            "leases": model.leases.num_held,
            "tasks": self._server.num_tasks(),
            # Pools start their threads on first use, and keep them.
            "threads": sum(not each.name.startswith(("tokenizer", "asyncio")) for each in threading.enumerate()),
            "inflight_requests": self._server.metric("dragoman_inflight_requests"),
            "slots_running": self._server.metric("dragoman_slots_running", model="tiny"),
        }

    def check_nothing(self) -> None:
        """Wait until there is no more than at the beginning."""
        try:
            eventually(lambda: not self.more(), _GONE_SECONDS)
        except AssertionError:
            raise AssertionError(f"left behind: {self.more()}") from None


def memory_mib() -> float:
    gc.collect()
    status = Path("/proc/self/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith("VmRSS")).split()[1]) / 1024


def num_readers() -> int:
    """Return how many processes that read documents there are."""
    found = 0
    for child in psutil.Process().children(recursive=True):
        try:
            found += "service.documents.child" in child.cmdline()
        except psutil.NoSuchProcess:
            continue
    return found


def start(share: Serve) -> InProcessServer:
    """Start a server of few slots that rejects no call because of the time that it or those before it would take."""
    never = {"max_queue_seconds": DAY_SECONDS, "default_deadline_seconds": DAY_SECONDS}
    return share(num_threads=2, max_slots=8, cache_mib=1, http_port=0, **never)


@pytest.fixture(scope="module")
def server(share: Serve, loop_thread: LoopThread) -> InProcessServer:
    """Return such a server that has answered calls of every kind, so that everything permanent is allocated."""
    running = start(share)
    warm = [*mixed_calls(30, SEED + 1), *mixed_calls(20, SEED + 1, HTTP_KINDS)]
    loop_thread.run(answers(running.address, warm, 8, running.http_url), 100.0)
    return running


@pytest.fixture(scope="module")
def quiet(share: Serve, loop_thread: LoopThread) -> InProcessServer:
    """Return a server for one call at a time that has answered some, too."""
    running = share(num_threads=2, max_slots=8, http_port=0)
    warm = [*mixed_calls(5, SEED + 2), *mixed_calls(5, SEED + 2, HTTP_KINDS)]
    loop_thread.run(answers(running.address, warm, 1, running.http_url))
    return running


def big_call(protocol: Protocol) -> MixedCall:
    """Return a call that would take the server seconds."""
    texts = distinct_texts(400)
    if protocol is GRPC:
        request = request_of(texts)
        request.options.beam_size, request.options.max_length_ratio, request.options.max_repeats = 4, 0, 0
        return GrpcCall("unary", "own", "Translate", request)
    codes = {"source_language_code": "en", "target_language_code": "de"}
    options = {"beam_size": 4, "max_length_ratio": 0, "max_repeats": 0}
    return HttpCall("http", "/v1/translate", {"texts": texts, **codes, "options": options})


async def storm(
    server: InProcessServer, protocol: Protocol, calls: Sequence[MixedCall], given_up: set[int]
) -> dict[int, Any]:
    """Make all calls, many at a time, and give up some; return the answers of the others.

    The last calls are big ones; all of them are given up while the server is busy with them.
    """
    chance = random.Random(SEED)
    engine = server.server.models[0].engine
    found: dict[int, Any] = {}
    plans = [(chance.choice(MOMENTS), chance.uniform(0.0, 0.2)) for _ in calls]
    numbers = iter(range(len(calls)))

    async with places(server.address, 3, server.http_url) as several:

        async def caller(number_of_caller: int) -> None:
            place = several[number_of_caller % len(several)]
            for number in numbers:
                if number in given_up:
                    await calls[number].give_up(place, *plans[number])
                else:
                    found[number] = await calls[number].answer(place)

        async with asyncio.TaskGroup() as group:
            for number in range(protocol.in_flight):
                group.create_task(caller(number))
        big = [asyncio.ensure_future(big_call(protocol).answer(several[0])) for _ in range(5)]
        await asyncio.to_thread(eventually, lambda: engine.snapshot().num_waiting > 300)
        assert not any(each.done() for each in big)
        for each in big:
            each.cancel()
        await asyncio.gather(*big, return_exceptions=True)
    return found


def run_storm(
    loop: LoopThread, server: InProcessServer, protocol: Protocol, count: int, seconds: float
) -> tuple[list[MixedCall], dict[int, Any]]:
    calls = mixed_calls(count, protocol.seed, protocol.kinds)
    given_up = set(random.Random(SEED).sample(range(count), int(SHARE_GIVEN_UP * count)))
    found = loop.run(storm(server, protocol, calls, given_up), seconds)
    assert found.keys() == set(range(count)) - given_up
    return calls, found


def codes_of(server: InProcessServer) -> Counter[str]:
    """Return how many calls have ended with each code so far."""
    found: Counter[str] = Counter()
    for (name, labels), number in server.metrics().items():
        if name == "dragoman_requests_total":
            found[dict(labels)["code"]] += int(number)
    return found


@pytest.mark.parametrize(
    ("protocol", "count"),
    [
        pytest.param(GRPC, 100, id="grpc"),
        pytest.param(GRPC, 1_000, marks=LONG, id="grpc-long"),
        pytest.param(HTTP, 60, id="http"),
        pytest.param(HTTP, 600, marks=LONG, id="http-long"),
    ],
)
def test_nothing_is_left_of_calls_that_were_given_up(
    loop_thread: LoopThread,
    server: InProcessServer,
    quiet: InProcessServer,
    protocol: Protocol,
    count: int,
) -> None:
    """The answers of the other calls are those of a server that answers one call at a time."""
    seconds = 100.0 if count <= 100 else 800.0
    left, before, codes_before = Left(server), memory_mib(), codes_of(server)
    calls, found = run_storm(loop_thread, server, protocol, count, seconds)
    left.check_nothing()
    eventually(lambda: num_readers() == 0)
    growth = memory_mib() - before
    assert growth < _MOST_GROWTH_MIB, f"grown by {growth:.0f} MiB"
    assert (codes_of(server) - codes_before).keys() == {"OK", "CANCELLED"}
    numbers = sorted(found)
    alone = loop_thread.run(answers(quiet.address, [calls[each] for each in numbers], 1, quiet.http_url), seconds)
    wrong = differences(alone, [found[number] for number in numbers])
    assert not wrong, f"{len(wrong)} of {len(numbers)} answers are others, first {calls[numbers[wrong[0]]]}"


def test_nothing_is_left_of_a_client_that_was_killed(loop_thread: LoopThread, server: InProcessServer) -> None:
    left = Left(server)
    engine = server.server.models[0].engine
    client = subprocess.Popen(
        [sys.executable, "-c", _CLIENT, server.address],
        cwd=REPOSITORY,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert read_line(client) == "calling\n"
        eventually(lambda: engine.snapshot().num_running > 0 and engine.snapshot().num_waiting > 0)
    finally:
        client.kill()
        client.communicate(timeout=patient(10))
    left.check_nothing()


def test_what_is_left_is_noticed(loop_thread: LoopThread, serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    """An injected fault: cancelled calls are never removed from the engine."""
    monkeypatch.setattr(Engine, "abort", lambda self, sequences: None)
    monkeypatch.setattr(sys.modules[__name__], "_GONE_SECONDS", 0.5)  # on a busy machine even all would be decoded
    server = start(serve)
    left = Left(server)
    run_storm(loop_thread, server, GRPC, 20, 60.0)
    with pytest.raises(AssertionError, match=r"left behind: .*'slots"):
        left.check_nothing()
