"""Thousands of different calls at once: each gets the answer that it would get alone, byte for byte."""

import asyncio
import random
from collections import defaultdict
from collections.abc import Sequence

import grpc
import pytest

from tests.faults.mixed_calls import MixedCall, mixed_calls
from tests.faults.planted import swap_answers
from tests.faults.proofs import Proved
from tests.servers import REPOSITORY, LoopThread, Serve, ServerProcess

CONNECTIONS = 4
IN_FLIGHT = 96
SEED = 7
LONG = [pytest.mark.full, pytest.mark.timeout(3400)]
SECONDS = defaultdict(lambda: 1700.0, {40: 100.0, 60: 100.0})  # for so many calls


def answers(
    loop: LoopThread,
    address: str,
    calls: Sequence[MixedCall],
    in_flight: int,
    timeout_seconds: float = 100.0,
) -> list[bytes]:
    """Return the answers to the calls in order; so many are in progress at a time, over several connections."""
    return loop.run(_answers(address, calls, in_flight), timeout_seconds)


async def _answers(address: str, calls: Sequence[MixedCall], in_flight: int) -> list[bytes]:
    # Otherwise all channels to one address share a connection.
    options = [("grpc.use_local_subchannel_pool", 1)]
    channels = [grpc.aio.insecure_channel(address, options=options) for _ in range(min(CONNECTIONS, in_flight))]
    found: list[bytes] = [b""] * len(calls)
    numbers = iter(range(len(calls)))

    async def caller(channel: grpc.aio.Channel) -> None:
        for number in numbers:
            found[number] = await calls[number].answer(channel)

    try:
        async with asyncio.TaskGroup() as group:
            for number in range(in_flight):
                group.create_task(caller(channels[number % len(channels)]))
    finally:
        for channel in channels:
            await channel.close(grace=None)
    return found


def differences(alone: Sequence[bytes], together: Sequence[bytes]) -> list[int]:
    return [number for number, pair in enumerate(zip(alone, together, strict=True)) if pair[0] != pair[1]]


def check_tiny(loop: LoopThread, quiet: str, busy: str, count: int, timeout_seconds: float) -> int:
    """Compare all answers; return how many there were.

    One in ten calls is made twice, so that the cache answers too. One server answers each call alone, while the other
    has many at a time.
    """
    calls = mixed_calls(count, SEED)
    chance = random.Random(SEED)
    order = [*range(count), *chance.sample(range(count), count // 10)]

    async def both() -> tuple[list[bytes], list[bytes]]:
        again = [calls[number] for number in order]
        return await asyncio.gather(_answers(quiet, calls, 1), _answers(busy, again, IN_FLIGHT))

    alone, together = loop.run(both(), timeout_seconds)
    assert len(set(alone)) > 0.9 * count, "too many answers are the same: a swap would not show"
    wrong = differences([alone[number] for number in order], together)
    assert not wrong, f"{len(wrong)} of {len(order)} answers are others, first {calls[order[wrong[0]]]}"
    return len(order)


@pytest.mark.parametrize("count", [60, pytest.param(20_000, marks=LONG)])
def test_no_answer_depends_on_company(loop_thread: LoopThread, serve: Serve, proved: Proved, count: int) -> None:
    quiet, busy = (serve(num_threads=2, max_slots=16, cache_mib=mib) for mib in (0, 4))
    proved("cross-talk", cases=check_tiny(loop_thread, quiet.address, busy.address, count, SECONDS[count]))


@pytest.mark.parametrize("count", [40, pytest.param(3_000, marks=LONG)])
def test_no_answer_of_the_shipped_model_depends_on_company(loop_thread: LoopThread, proved: Proved, count: int) -> None:
    calls = mixed_calls(count, SEED, model="en-de", most_words=20)
    with ServerProcess(REPOSITORY / "models", "--max-slots", "32", "--num-threads", "2") as process:
        alone = answers(loop_thread, process.address, calls, 1, SECONDS[count])
        together = answers(loop_thread, process.address, calls, IN_FLIGHT, SECONDS[count])
    wrong = differences(alone, together)
    assert not wrong, f"{len(wrong)} of {count} answers are others, first {calls[wrong[0]]}"
    proved("cross-talk", cases=count)


@pytest.mark.plain
def test_two_rows_that_are_swapped_are_found(
    loop_thread: LoopThread, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An injected fault, that of `swap_answers`."""
    server = serve(num_threads=2, max_slots=16)
    calls = [each for each in mixed_calls(150, SEED) if each.kind == "unary" and not each.request.options.beam_size]
    alone = answers(loop_thread, server.address, calls, 1)
    swap_answers(monkeypatch)
    assert differences(alone, answers(loop_thread, server.address, calls, IN_FLIGHT))
