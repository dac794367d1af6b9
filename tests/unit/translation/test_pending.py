"""Calls that wait for sequences."""

import asyncio
import gc
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.domain.errors import EngineFailure, Unavailable
from service.domain.options import DecodingOptions
from service.domain.translation import FinishReason
from service.engine.sequence import Sequence, SequenceProgress, SequenceUpdate
from service.translation.pending import PendingCalls
from tests.patience import patient

OPTIONS = DecodingOptions(1, 1.0, 1, 10)


def sequences(number: int) -> Any:
    return [Sequence((1,), OPTIONS, 0.0) for _ in range(number)]


def update(sequence: Sequence, error: Any = None) -> Any:
    return SequenceUpdate(sequence, None if error else FinishReason.STOP, error=error)


@given(st.lists(st.integers(1, 6), min_size=1, max_size=6), st.randoms(use_true_random=False))
@settings(derandomize=True, deadline=None)
def test_each_call_gets_its_own_updates_in_its_order(sizes: list[int], chance: random.Random) -> None:
    async def scenario() -> None:
        pending = PendingCalls()
        calls = [pending.open(sequences(size)) for size in sizes]
        waits = [asyncio.create_task(call.wait()) for call in calls]
        updates = [update(sequence) for call in calls for sequence in call.sequences]
        chance.shuffle(updates)
        cut = chance.randrange(len(updates) + 1)
        for part in (updates[:cut], updates[cut:]):
            pending.deliver(part)
            await asyncio.sleep(0)
        for call, wait in zip(calls, waits, strict=True):
            got = await asyncio.wait_for(wait, patient(5))
            assert [each.sequence for each in got] == list(call.sequences)
            assert call.unfinished() == []
        assert len(pending) == 0

    asyncio.run(scenario())


async def test_the_first_error_fails_the_call_and_the_rest_can_be_told() -> None:
    pending = PendingCalls()
    call = pending.open(sequences(3))
    first, second, third = call.sequences
    pending.deliver([update(second, EngineFailure("one")), update(third, Unavailable("two"))])
    with pytest.raises(EngineFailure, match="one"):
        await asyncio.wait_for(call.wait(), patient(5))
    assert call.unfinished() == [first]


async def test_updates_of_a_call_that_was_given_up_are_dropped() -> None:
    pending = PendingCalls()
    call = pending.open(sequences(2))
    wait = asyncio.create_task(call.wait())
    await asyncio.sleep(0)
    wait.cancel()
    await asyncio.sleep(0)
    pending.deliver([update(call.sequences[0])])  # cancelled, not closed yet
    pending.close(call)
    pending.deliver([update(call.sequences[1]), update(Sequence((1,), OPTIONS, 0.0))])
    assert len(pending) == 0
    assert wait.cancelled()


def progress(sequence: Sequence, *token_ids: int) -> Any:
    return SequenceProgress(sequence, token_ids)


async def test_news_are_the_newest_of_each_sequence_until_all_have_ended() -> None:
    pending = PendingCalls()
    call = pending.open(sequences(2))
    first, second = call.sequences
    news = call.news()
    reading = asyncio.ensure_future(anext(news))
    await asyncio.sleep(0)
    pending.deliver([], [progress(first, 5)])
    assert await asyncio.wait_for(reading, patient(5)) == progress(first, 5)
    pending.deliver([], [progress(first, 5, 6), progress(second, 7)])
    pending.deliver([], [progress(first, 5, 6, 7)])
    assert await asyncio.wait_for(anext(news), patient(5)) == progress(first, 5, 6, 7), (
        "who reads slowly gets the newest"
    )
    assert await asyncio.wait_for(anext(news), patient(5)) == progress(second, 7)
    ends = [update(second), update(first)]
    pending.deliver(ends[:1], [progress(first, 5, 6, 7, 8)])
    assert [await anext(news), await anext(news)] == [progress(first, 5, 6, 7, 8), ends[0]]
    pending.deliver(ends[1:])
    assert [each async for each in news] == ends[1:]
    assert await asyncio.wait_for(call.wait(), patient(5)) == ends[::-1]


async def test_news_fail_as_the_call_does() -> None:
    pending = PendingCalls()
    call = pending.open(sequences(2))
    pending.deliver([update(call.sequences[0], EngineFailure("one"))])
    with pytest.raises(EngineFailure, match="one"):
        await asyncio.wait_for(anext(call.news()), patient(5))


async def test_what_was_not_read_is_known_though_the_call_fail() -> None:
    pending = PendingCalls()
    call = pending.open(sequences(2))
    first, second = call.sequences
    pending.deliver([], [progress(first, 5), progress(second, 7)])
    news = call.news()
    assert await asyncio.wait_for(anext(news), patient(5)) == progress(first, 5)
    pending.deliver([update(second, EngineFailure("one"))], [progress(first, 5, 6)])
    assert call.unread() == [progress(second, 7), progress(first, 5, 6)]
    with pytest.raises(EngineFailure, match="one"):
        await asyncio.wait_for(anext(news), patient(5))


async def test_progress_of_a_call_that_is_over_is_dropped() -> None:
    pending = PendingCalls()
    call = pending.open(sequences(1))
    pending.close(call)
    pending.deliver([], [progress(call.sequences[0], 5)])
    assert call.unread() == []


async def test_the_error_of_a_call_whose_caller_has_gone_is_not_logged() -> None:
    """It used to be: a stream's deadline expired in the engine while its caller disconnected."""
    complaints: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(context))
    pending = PendingCalls()
    call = pending.open(sequences(1))
    pending.deliver([update(call.sequences[0], EngineFailure("one"))])
    pending.close(call)
    del call
    gc.collect()
    assert complaints == []
