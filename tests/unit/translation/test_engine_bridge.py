"""From the engine's thread to the event loop's."""

import asyncio
import threading
from typing import Any, cast

from service.domain.errors import Cancelled
from service.domain.options import DecodingOptions
from service.domain.translation import FinishReason
from service.engine.sequence import JointUpdates, Sequence, SequenceProgress, SequenceUpdate
from service.models.statistics import InferenceStatistics
from service.observe.metrics import Metrics
from service.translation.pending import EngineBridge
from tests.patience import patient

SEQUENCE = Sequence((1,), DecodingOptions(1, 1.0, 1, 10), 0.0)
UPDATE = SequenceUpdate(SEQUENCE, FinishReason.CANCELLED, error=Cancelled("gone"))
PROGRESS = SequenceProgress(Sequence((1,), DecodingOptions(1, 1.0, 1, 10), 0.0), (5, 6))


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

    bridge = EngineBridge(
        cast(Any, loop), Metrics().model("m"), "1", InferenceStatistics(), deliver, failed=lambda error: None
    )
    thread = threading.Thread(target=bridge.on_updates, args=([UPDATE] * 50, [PROGRESS] * 3))
    thread.start()
    await asyncio.wait_for(done.wait(), patient(5))
    thread.join(patient(5))
    assert loop.crossings == 1
    assert arrived == [(threading.current_thread(), [UPDATE] * 50, [PROGRESS] * 3)]


async def test_a_failure_reaches_the_loop() -> None:
    failed = asyncio.get_running_loop().create_future()
    bridge = EngineBridge(
        asyncio.get_running_loop(), Metrics().model("m"), "1", InferenceStatistics(), lambda *_: None, failed.set_result
    )
    error = RuntimeError("boom")
    await asyncio.to_thread(bridge.on_failure, error)
    assert await asyncio.wait_for(failed, patient(5)) is error


def test_a_closed_loop_does_not_hurt_the_engine() -> None:
    loop = asyncio.new_event_loop()
    loop.close()
    bridge = EngineBridge(loop, Metrics().model("m"), "1", InferenceStatistics(), lambda *_: None, lambda error: None)
    bridge.on_updates([UPDATE], [])
    bridge.on_failure(RuntimeError("boom"))


def test_an_aborted_sequence_is_counted_as_cancelled() -> None:
    async def scenario() -> Any:
        metrics = Metrics()
        bridge = EngineBridge(
            asyncio.get_running_loop(),
            metrics.model("m"),
            "1",
            InferenceStatistics(),
            lambda *_: None,
            lambda error: None,
        )
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
        bridge = EngineBridge(
            asyncio.get_running_loop(),
            Metrics().model("m"),
            "1",
            InferenceStatistics(),
            lambda updates, _: crossed.append(updates),
            failed=lambda error: None,
        )
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
    return [Sequence((1,), DecodingOptions(1, 1.0, 1, 10), 0.0, joint_updates=joint) for _ in range(4)]


def test_a_call_that_needs_all_its_sequences_hears_of_them_when_the_last_one_ends() -> None:
    ends = ends_of(sequences_of_one_call())
    assert told(ends) == [ends]


def test_a_call_hears_of_a_failure_at_once_and_nothing_is_lost() -> None:
    ends = ends_of(sequences_of_one_call(), failed=1)
    assert told(ends) == [ends[:2], ends[2:3], ends[3:]]
