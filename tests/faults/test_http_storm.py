"""The storm of cancelled calls over HTTP: callers leave at every moment, and nothing of their calls is left behind."""

import asyncio
import json
import random
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import NamedTuple

import psutil
import pytest

from service.engine.engine import Engine
from tests.faults.proofs import Proved
from tests.faults.test_cancellation_storm import Left, codes_of, memory_mib, waiting_in
from tests.http_caller import events
from tests.http_post import JSON, begun, form_of
from tests.patience import patient
from tests.servers import InProcessServer, LoopThread, Serve, distinct_texts, eventually

IN_FLIGHT = 24
SHARE_GIVEN_UP = 0.4
MOMENTS = ("at once", "at some time", "at the head", "at a part")
SEED = 12
PAIR = {"source_language_code": "en", "target_language_code": "de"}

_MOST_GROWTH_MIB = 64


class HttpCall(NamedTuple):
    path: str
    body: bytes
    content_type: str = JSON

    async def answer(self, url: str) -> bytes:
        """Return what is the same each time of the whole answer."""
        async with begun(url, *self) as call:
            status, _ = await call.head()
            answer = await call.rest()
        assert status == 200, answer
        if self.path == "/v1/translate/stream":
            parts = events(answer)
            assert parts[-1][0] == "done", parts[-1]
            whole = {said["text_index"]: said["translation"] for _, said in parts[:-1] if "translation" in said}
            return json.dumps(sorted(whole.items())).encode()
        return answer

    async def give_up(self, url: str, moment: str, seconds: float) -> None:
        """Leave before the answer has come, or is complete."""
        async with begun(url, *self) as call:
            if moment == "at some time":
                with suppress(TimeoutError):
                    await asyncio.wait_for(call.head(), seconds)
            elif moment != "at once":
                await call.head()
                if moment == "at a part":
                    await call.part()


def http_calls(count: int, seed: int) -> list[HttpCall]:
    """Return so many calls, texts, streams and documents, each with texts that no other has."""
    chance = random.Random(seed)
    texts = iter(distinct_texts(8 * count + seed)[seed:])
    calls = []
    for _ in range(count):
        own = [next(texts) for _ in range(chance.randint(1, 6))]
        match chance.choices(("/v1/translate", "/v1/translate/stream", "/v1/files"), (6, 4, 2))[0]:
            case "/v1/files":
                form, content_type = form_of("a.txt", "".join(f"{text}\n" for text in own), PAIR)
                calls.append(HttpCall("/v1/files", form, content_type))
            case path:
                calls.append(HttpCall(path, json.dumps({**PAIR, "texts": own}).encode()))
    return calls


def big_call() -> HttpCall:
    """Return a call that would take the server seconds."""
    options = {"beam_size": 4, "max_length_ratio": 0, "max_repeats": 0}
    return HttpCall("/v1/translate", json.dumps({**PAIR, "texts": distinct_texts(400), "options": options}).encode())


async def storm(
    url: str, calls: Sequence[HttpCall], given_up: set[int], is_busy: Callable[[], bool]
) -> dict[int, bytes]:
    """Make all calls, many at a time, and leave some; return the answers of the others.

    At last there are big ones; all of them are left while the server is busy with them.
    """
    chance = random.Random(SEED)
    plans = [(chance.choice(MOMENTS), chance.uniform(0.0, 0.2)) for _ in calls]
    found: dict[int, bytes] = {}
    numbers = iter(range(len(calls)))

    async def caller() -> None:
        for number in numbers:
            if number in given_up:
                await calls[number].give_up(url, *plans[number])
            else:
                found[number] = await calls[number].answer(url)

    async with asyncio.TaskGroup() as group:
        for _ in range(IN_FLIGHT):
            group.create_task(caller())
    big = [asyncio.ensure_future(big_call().answer(url)) for _ in range(5)]
    await asyncio.to_thread(eventually, is_busy)
    assert not any(each.done() for each in big)
    for each in big:
        each.cancel()
    await asyncio.gather(*big, return_exceptions=True)
    return found


def run_storm(
    loop: LoopThread, server: InProcessServer, count: int, seconds: float
) -> tuple[list[HttpCall], dict[int, bytes]]:
    calls, waiting = http_calls(count, SEED), waiting_in(server)
    given_up = set(random.Random(SEED).sample(range(count), int(SHARE_GIVEN_UP * count)))
    found = loop.run(storm(server.http_url, calls, given_up, lambda: waiting() > 300), seconds)
    assert found.keys() == set(range(count)) - given_up
    return calls, found


async def alone(url: str, calls: Sequence[HttpCall]) -> list[bytes]:
    return [await call.answer(url) for call in calls]


def num_readers() -> int:
    """Return how many processes that read documents there are."""
    found = 0
    for child in psutil.Process().children(recursive=True):
        try:
            found += "service.documents.child" in child.cmdline()
        except psutil.NoSuchProcess:
            continue
    return found


@pytest.fixture
def server(serve: Serve, loop_thread: LoopThread) -> InProcessServer:
    """Return a server of few slots that has answered calls of every kind, so that everything permanent is allocated."""
    # However slow the machine is, no call is rejected because of the time that it or those before it would take.
    day = 86_400.0
    running = serve(num_threads=2, max_slots=8, http_port=0, max_queue_seconds=day, default_deadline_seconds=day)
    loop_thread.run(alone(running.http_url, http_calls(20, SEED + 1)), patient(60))
    return running


@pytest.mark.parametrize("count", [60, pytest.param(600, marks=[pytest.mark.full, pytest.mark.timeout(1800)])])
def test_nothing_is_left_of_callers_that_have_gone(
    loop_thread: LoopThread, server: InProcessServer, proved: Proved, count: int
) -> None:
    seconds = patient(100.0 if count == 60 else 800.0)
    left, before = Left(server), memory_mib()
    calls, found = run_storm(loop_thread, server, count, seconds)
    left.check_nothing()
    eventually(lambda: num_readers() == 0)
    growth = memory_mib() - before
    assert growth < _MOST_GROWTH_MIB, f"grown by {growth:.0f} MiB"
    codes = codes_of(server)
    assert codes <= {"OK", "CANCELLED"}
    assert "CANCELLED" in codes
    numbers = sorted(found)
    expected = loop_thread.run(alone(server.http_url, [calls[number] for number in numbers]), seconds)
    wrong = [number for number, answer in zip(numbers, expected, strict=True) if found[number] != answer]
    assert not wrong, f"{len(wrong)} of {len(numbers)} answers are others, first {calls[wrong[0]]}"
    proved("cancellation", cases=count, memory_mib=round(growth, 1))


def test_what_is_left_is_noticed(
    loop_thread: LoopThread, server: InProcessServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An injected fault: calls whose callers have gone are never removed from the engine."""
    monkeypatch.setattr(Engine, "abort", lambda self, sequences: None)
    monkeypatch.setattr(sys.modules["tests.faults.test_cancellation_storm"], "_GONE_SECONDS", 0.5)
    left = Left(server)
    run_storm(loop_thread, server, 10, patient(60.0))
    with pytest.raises(AssertionError, match=r"left behind: .*'slots"):
        left.check_nothing()
