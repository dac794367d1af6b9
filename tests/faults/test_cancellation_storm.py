"""Calls cancelled at every moment, and clients that die: nothing of them is left behind, other calls are answered."""

import asyncio
import gc
import random
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import grpc
import pytest

from service.engine.engine import Engine
from tests.faults.mixed_calls import MixedCall, mixed_calls
from tests.faults.proofs import Proved
from tests.faults.test_cross_talk import answers
from tests.grpc_calls import request_of
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

IN_FLIGHT = 64
CONNECTIONS = 3
SHARE_GIVEN_UP = 0.4
MOMENTS = ("before it is sent", "at some time", "at a part", "at its last part")
SEED = 11

_GONE_SECONDS = patient(5.0)  # time for cancelled calls to disappear; decoding them would take several times as long
_MOST_GROWTH_MIB = 64

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


@pytest.fixture
def server(serve: Serve, loop_thread: LoopThread) -> InProcessServer:
    """Return a server of few slots that has answered calls of every kind, so that everything permanent is allocated."""
    running = serve(num_threads=2, max_slots=8, cache_mib=1)
    answers(loop_thread, running.address, mixed_calls(30, SEED + 1), 8)
    return running


def big_call() -> MixedCall:
    """Return a call that would take the server seconds."""
    request = request_of(distinct_texts(400))
    request.options.beam_size, request.options.max_length_ratio, request.options.max_repeats = 4, 0, 0
    return MixedCall("unary", request)


async def storm(
    address: str,
    calls: Sequence[MixedCall],
    given_up: set[int],
    seed: int,
    is_busy: Callable[[], bool],
) -> dict[int, bytes]:
    """Make all calls, many at a time, and cancel some; return the answers of the others.

    The last calls are big ones; all of them are cancelled while the server is busy with them.
    """
    chance = random.Random(seed)
    found: dict[int, bytes] = {}
    plans = [(chance.choice(MOMENTS), chance.uniform(0.0, 0.2)) for _ in calls]
    options = [("grpc.use_local_subchannel_pool", 1)]
    channels = [grpc.aio.insecure_channel(address, options=options) for _ in range(CONNECTIONS)]
    numbers = iter(range(len(calls)))

    async def caller(channel: grpc.aio.Channel) -> None:
        for number in numbers:
            if number in given_up:
                await give_up(calls[number], channel, *plans[number])
            else:
                found[number] = await calls[number].answer(channel)

    try:
        async with asyncio.TaskGroup() as group:
            for number in range(IN_FLIGHT):
                group.create_task(caller(channels[number % len(channels)]))
        big = [big_call().start(channels[0]) for _ in range(5)]
        await asyncio.to_thread(eventually, is_busy)
        for each in big:
            each.cancel()
        await asyncio.gather(*(each.code() for each in big))
    finally:
        for channel in channels:
            await channel.close(grace=None)
    return found


async def give_up(call: MixedCall, channel: grpc.aio.Channel, moment: str, seconds: float) -> None:
    under_way: Any = call.start(channel)
    try:
        if moment == "at some time":
            await asyncio.wait({asyncio.ensure_future(under_way.code())}, timeout=seconds)
        elif moment != "before it is sent" and call.kind == "stream":
            num_left = len(call.request.texts)
            async for part in under_way:
                num_left -= part.HasField("translation")
                if not num_left or moment == "at a part":
                    break
        elif moment == "at its last part":
            await under_way.initial_metadata()  # comes with the answer
    except asyncio.CancelledError:  # of the call, not of this task
        pass
    under_way.cancel()
    await under_way.code()


def run_storm(
    loop: LoopThread,
    address: str,
    num_waiting: Callable[[], float],
    count: int,
    timeout_seconds: float,
) -> tuple[list[MixedCall], dict[int, bytes]]:
    calls = mixed_calls(count, SEED)
    given_up = set(random.Random(SEED).sample(range(count), int(SHARE_GIVEN_UP * count)))
    found = loop.run(storm(address, calls, given_up, SEED, lambda: num_waiting() > 300), timeout_seconds)
    assert found.keys() == set(range(count)) - given_up
    return calls, found


def codes_of(server: InProcessServer) -> set[str]:
    """Return the codes that calls have ended with so far."""
    return {dict(labels)["code"] for name, labels in server.metrics() if name == "dragoman_requests_total"}


def waiting_in(server: InProcessServer) -> Callable[[], float]:
    engine = server.server.models[0].engine
    return lambda: engine.snapshot().num_waiting


def check_answers(
    loop: LoopThread,
    quiet: InProcessServer,
    calls: Sequence[MixedCall],
    found: dict[int, bytes],
    timeout_seconds: float,
) -> None:
    """Compare the answers with those of a server that answers one call at a time."""
    numbers = sorted(found)
    alone = answers(loop, quiet.address, [calls[number] for number in numbers], 1, timeout_seconds)
    wrong = [number for number, answer in zip(numbers, alone, strict=True) if found[number] != answer]
    assert not wrong, f"{len(wrong)} of {len(numbers)} answers are others, first {calls[wrong[0]]}"


@pytest.mark.parametrize("count", [100, pytest.param(1_000, marks=[pytest.mark.full, pytest.mark.timeout(1800)])])
def test_nothing_is_left_of_calls_that_were_given_up(
    loop_thread: LoopThread, server: InProcessServer, serve: Serve, proved: Proved, count: int
) -> None:
    seconds = 100.0 if count == 100 else 800.0
    quiet = serve(num_threads=2, max_slots=8)  # created now, so that its threads and memory are part of the baseline
    answers(loop_thread, quiet.address, mixed_calls(5, SEED + 2), 1)
    left, before = Left(server), memory_mib()
    calls, found = run_storm(loop_thread, server.address, waiting_in(server), count, seconds)
    left.check_nothing()
    growth = memory_mib() - before
    assert growth < _MOST_GROWTH_MIB, f"grown by {growth:.0f} MiB"
    assert codes_of(server) <= {"OK", "CANCELLED"}
    check_answers(loop_thread, quiet, calls, found, seconds)
    proved("cancellation", cases=count, memory_mib=round(growth, 1))


def test_nothing_is_left_of_clients_that_were_killed(
    loop_thread: LoopThread, server: InProcessServer, proved: Proved
) -> None:
    left = Left(server)
    engine = server.server.models[0].engine
    for _ in range(3):
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
    proved("cancellation", cases=3 * 40)


def test_what_is_left_is_noticed(
    loop_thread: LoopThread, server: InProcessServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An injected fault: cancelled calls are never removed from the engine."""
    monkeypatch.setattr(Engine, "abort", lambda self, sequences: None)
    monkeypatch.setattr(sys.modules[__name__], "_GONE_SECONDS", 0.5)  # on a busy machine even all would be decoded
    left = Left(server)
    run_storm(loop_thread, server.address, waiting_in(server), 20, 60.0)
    with pytest.raises(AssertionError, match=r"left behind: .*'slots"):
        left.check_nothing()
