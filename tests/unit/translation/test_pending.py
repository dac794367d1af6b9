"""Calls that wait for sequences, and the way of results from the engine's thread to the event loop's."""

import asyncio
import gc
import random
import threading
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.domain.errors import Cancelled, EngineFailure, Unavailable
from service.domain.options import DecodingOptions
from service.domain.translation import FinishReason
from service.engine.sequence import JointUpdates, Sequence, SequenceProgress, SequenceUpdate
from service.models.loaded_model import InferenceStatistics
from service.observe.metrics import Metrics
from service.translation.pending import EngineBridge, PendingCall, PendingCalls
from tests.patience import patient

OPTIONS = DecodingOptions(1, 1.0, 1, 10)


def sequences(number: int) -> Any:
    return [Sequence((1,), OPTIONS, 0.0) for _ in range(number)]


async def updates_of(call: PendingCall) -> list[SequenceUpdate]:
    await call.done
    return [call.updates[sequence] for sequence in call.sequences]


def update(sequence: Sequence, error: Any = None) -> Any:
    return SequenceUpdate(sequence, None if error else FinishReason.STOP, error=error)


@given(st.lists(st.integers(1, 6), min_size=1, max_size=6), st.randoms(use_true_random=False))
@settings(derandomize=True, deadline=None)
def test_each_call_gets_its_own_updates_in_its_order(sizes: list[int], chance: random.Random) -> None:
    async def scenario() -> None:
        pending = PendingCalls()
        calls = [pending.open(sequences(size)) for size in sizes]
        waits = [asyncio.create_task(updates_of(call)) for call in calls]
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
        await asyncio.wait_for(updates_of(call), patient(5))
    assert call.unfinished() == [first]


async def test_updates_of_a_call_that_was_given_up_are_dropped() -> None:
    pending = PendingCalls()
    call = pending.open(sequences(2))
    wait = asyncio.create_task(updates_of(call))
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
    assert await asyncio.wait_for(updates_of(call), patient(5)) == ends[::-1]


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


SEQUENCE = Sequence((1,), OPTIONS, 0.0)
UPDATE = SequenceUpdate(SEQUENCE, FinishReason.CANCELLED, error=Cancelled("gone"))
PROGRESS = SequenceProgress(Sequence((1,), OPTIONS, 0.0), (5, 6))


def bridge_to(
    loop: Any, deliver: Any = lambda *_: None, failed: Any = lambda _: None, metrics: Metrics | None = None
) -> EngineBridge:
    model = (metrics or Metrics()).model("m")
    return EngineBridge(loop, model, "1", InferenceStatistics(), deliver, failed)


class CountingLoop:
    """Counts crossings between the threads."""

    def __init__(self, loop: Any) -> None:
        self.loop = loop
        self.crossings = 0

    def call_soon_threadsafe(self, *arguments: Any) -> Any:
        self.crossings += 1
        return self.loop.call_soon_threadsafe(*arguments)


async def test_all_that_a_turn_tells_crosses_at_once_and_arrive_on_the_loop() -> None:
    loop = CountingLoop(asyncio.get_running_loop())
    arrived, done = [], asyncio.Event()

    def deliver(updates: Any, progress: Any) -> None:
        arrived.append((threading.current_thread(), updates, progress))
        done.set()

    bridge = bridge_to(loop, deliver)
    thread = threading.Thread(target=bridge.on_updates, args=([UPDATE] * 50, [PROGRESS] * 3))
    thread.start()
    await asyncio.wait_for(done.wait(), patient(5))
    thread.join(patient(5))
    assert loop.crossings == 1
    assert arrived == [(threading.current_thread(), [UPDATE] * 50, [PROGRESS] * 3)]


async def test_a_failure_reaches_the_loop() -> None:
    failed = asyncio.get_running_loop().create_future()
    bridge = bridge_to(asyncio.get_running_loop(), failed=failed.set_result)
    error = RuntimeError("boom")
    await asyncio.to_thread(bridge.on_failure, error)
    assert await asyncio.wait_for(failed, patient(5)) is error


def test_a_closed_loop_does_not_hurt_the_engine() -> None:
    loop = asyncio.new_event_loop()
    loop.close()
    bridge = bridge_to(loop)
    bridge.on_updates([UPDATE], [])
    bridge.on_failure(RuntimeError("boom"))


def test_an_aborted_sequence_is_counted_as_cancelled() -> None:
    async def scenario() -> Any:
        metrics = Metrics()
        bridge = bridge_to(asyncio.get_running_loop(), metrics=metrics)
        bridge.on_updates([UPDATE], [])
        await asyncio.sleep(0)
        return metrics.render()[0].decode()

    text = asyncio.run(scenario())
    assert 'dragoman_sentences_total{model="m",outcome="cancelled"} 1.0' in text
    assert 'dragoman_finish_total{model="m",reason="cancelled",version="1"} 1.0' in text


def told(ends: list[SequenceUpdate]) -> list[list[SequenceUpdate]]:
    """Return what crosses to the loop as these sequences of a call end, one in each turn."""

    async def scenario() -> list[list[SequenceUpdate]]:
        crossed: list[list[SequenceUpdate]] = []
        bridge = bridge_to(asyncio.get_running_loop(), lambda updates, _: crossed.append(updates))
        for update in ends:
            bridge.on_updates([update], [])
        await asyncio.sleep(0)
        return crossed

    return asyncio.run(scenario())


def ends_of(sequences: list[Sequence], failed: int | None = None) -> list[SequenceUpdate]:
    return [
        SequenceUpdate(sequence, FinishReason.STOP, error=Cancelled("gone") if number == failed else None)
        for number, sequence in enumerate(sequences)
    ]


def sequences_of_one_call() -> list[Sequence]:
    joint = JointUpdates(4)
    return [Sequence((1,), OPTIONS, 0.0, joint_updates=joint) for _ in range(4)]


def test_a_call_that_needs_all_its_sequences_hears_of_them_when_the_last_one_ends() -> None:
    ends = ends_of(sequences_of_one_call())
    assert told(ends) == [ends]


def test_a_call_hears_of_a_failure_at_once_and_nothing_is_lost() -> None:
    ends = ends_of(sequences_of_one_call(), failed=1)
    assert told(ends) == [ends[:2], ends[2:3], ends[3:]]
