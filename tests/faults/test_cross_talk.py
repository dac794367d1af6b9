"""Thousands of different calls at once: each gets the answer that it would get alone."""

import asyncio
import json
import random
from collections import defaultdict
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import grpc
import pytest

from tests.faults.planted import swap_answers
from tests.mixed_calls import MixedCall, Model, Place, mixed_calls
from tests.servers import REPOSITORY, LoopThread, Serve

CONNECTIONS = 4
IN_FLIGHT = 96
SEED = 7
LONG = [pytest.mark.full, pytest.mark.timeout(3400)]
SECONDS = defaultdict(lambda: 1700.0, {40: 100.0, 60: 100.0})  # for so many calls


@asynccontextmanager
async def places(address: str, count: int, http_url: str = "") -> AsyncIterator[list[Place]]:
    """Yield ways to a server, each with a connection of its own."""
    # Otherwise all channels to one address share a connection.
    options = [("grpc.use_local_subchannel_pool", 1)]
    channels = [grpc.aio.insecure_channel(address, options=options) for _ in range(count)]
    try:
        yield [Place(channel, http_url) for channel in channels]
    finally:
        for channel in channels:
            await channel.close(grace=None)


async def answers(address: str, calls: Sequence[MixedCall], in_flight: int, http_url: str = "") -> list[Any]:
    """Return the answers to the calls in order; so many are in progress at a time, over several connections."""
    found: list[Any] = [None] * len(calls)
    numbers = iter(range(len(calls)))

    async def caller(place: Place) -> None:
        for number in numbers:
            found[number] = await calls[number].answer(place)

    async with places(address, min(CONNECTIONS, in_flight), http_url) as several, asyncio.TaskGroup() as group:
        for number in range(in_flight):
            group.create_task(caller(several[number % len(several)]))
    return found


def differences(alone: Sequence[Any], together: Sequence[Any]) -> list[int]:
    return [number for number, pair in enumerate(zip(alone, together, strict=True)) if pair[0] != pair[1]]


@pytest.mark.parametrize("count", [60, pytest.param(20_000, marks=LONG)])
def test_no_answer_depends_on_company(loop_thread: LoopThread, serve: Serve, count: int) -> None:
    """One in ten calls is made twice, so that the cache answers too. Another server answers each call alone."""
    quiet, busy = (serve(num_threads=2, max_slots=16, cache_mib=mib) for mib in (0, 4))
    calls, chance = mixed_calls(count, SEED), random.Random(SEED)
    order = [*range(count), *chance.sample(range(count), count // 10)]

    async def both() -> tuple[list[Any], list[Any]]:
        again = [calls[number] for number in order]
        return await asyncio.gather(answers(quiet.address, calls, 1), answers(busy.address, again, IN_FLIGHT))

    alone, together = loop_thread.run(both(), SECONDS[count])
    assert len(set(map(json.dumps, alone))) > 0.9 * count, "too many answers are the same: a swap would not show"
    wrong = differences([alone[number] for number in order], together)
    assert not wrong, f"{len(wrong)} of {len(order)} answers are others, first {calls[order[wrong[0]]]}"


@pytest.mark.parametrize("count", [40, pytest.param(3_000, marks=LONG)])
def test_no_answer_of_the_shipped_model_depends_on_company(loop_thread: LoopThread, serve: Serve, count: int) -> None:
    calls = mixed_calls(count, SEED, model=Model("en-de"), most_words=20)
    server = serve(models=REPOSITORY / "models", max_slots=32, num_threads=2)
    alone = loop_thread.run(answers(server.address, calls, 1), SECONDS[count])
    together = loop_thread.run(answers(server.address, calls, IN_FLIGHT), SECONDS[count])
    wrong = differences(alone, together)
    assert not wrong, f"{len(wrong)} of {count} answers are others, first {calls[wrong[0]]}"


@pytest.mark.plain
def test_two_rows_that_are_swapped_are_found(
    loop_thread: LoopThread, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An injected fault, that of `swap_answers`."""
    server = serve(num_threads=2, max_slots=16)
    calls: Any = mixed_calls(150, SEED, kinds={"unary": 1})
    calls = [call for call in calls if not call.request.options.beam_size]
    alone = loop_thread.run(answers(server.address, calls, 1), 100.0)
    swap_answers(monkeypatch)
    assert differences(alone, loop_thread.run(answers(server.address, calls, IN_FLIGHT), 100.0))
