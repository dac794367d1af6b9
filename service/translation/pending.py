"""Calls that wait for sequences, their results so far, and the transfer of these from an engine to the event loop."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterable
from collections.abc import Sequence as Sequence_

from service.engine.reports import TurnStats
from service.engine.sequence import Sequence, SequenceProgress, SequenceUpdate
from service.models.loaded_model import InferenceStatistics
from service.observe.metrics import ModelMetrics

_COUNTED_AT_ONCE = 256


class PendingCall:
    """One call's sequences in the engine. For the event loop's thread only."""

    def __init__(self, sequences: Sequence_[Sequence], *, wants_news: bool) -> None:
        """Begin to wait. `done` is set once every sequence has its update, or fails with the first error of one."""
        self.sequences = sequences
        self.updates: dict[Sequence, SequenceUpdate] = {}
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._news: dict[Sequence, SequenceProgress | SequenceUpdate] = {}  # not read yet, the latest of each sequence
        self._has_news = asyncio.Event() if wants_news else None
        self.finished_seconds: float | None = None  # when the last sequence finished; `None` while some have not

    async def news(self) -> AsyncIterator[SequenceProgress | SequenceUpdate]:
        """Yield news of the sequences until all have finished: progress where requested, and each terminal update.

        A slow reader only gets the latest news of each sequence. For one reader, of a call that wants news.
        """
        assert self._has_news is not None, "the call wants news"
        while not self.done.done() or self._news:
            if self.done.done():
                self.done.result()
            if self._news:
                yield self._news.pop(next(iter(self._news)))
            else:
                self._has_news.clear()
                await self._has_news.wait()
        self.done.result()

    def unread(self) -> list[SequenceProgress | SequenceUpdate]:
        """Return the latest news of each sequence that `news` has not yielded."""
        return list(self._news.values())

    def unfinished(self) -> list[Sequence]:
        return [sequence for sequence in self.sequences if sequence not in self.updates]

    def accept(self, update: SequenceUpdate) -> None:
        self.updates[update.sequence] = update
        if len(self.updates) == len(self.sequences):
            self.finished_seconds = max([each.finished_seconds for each in self.updates.values()])
        if self._has_news is not None:
            if update.error is None:  # else keep its progress, which may still be unread
                self._news[update.sequence] = update
            self._has_news.set()
        if self.done.done():  # failed or cancelled already
            return
        if update.error is not None:
            self.done.set_exception(update.error)
            self.done.exception()  # if the caller has just disconnected, nothing reads it, and asyncio would log that
        elif self.finished_seconds is not None:
            self.done.set_result(None)

    def notify(self, news: SequenceProgress) -> None:
        if self._has_news is not None:
            self._news[news.sequence] = news
            self._has_news.set()


class PendingCalls:
    """All calls waiting for an engine. For the event loop's thread only."""

    def __init__(self) -> None:
        self._calls: dict[Sequence, PendingCall] = {}

    def __len__(self) -> int:
        return len(self._calls)

    def open(self, sequences: Sequence_[Sequence], *, wants_news: bool = True) -> PendingCall:
        """Expect updates of `sequences`, before they are submitted; with `wants_news`, somebody reads news of them."""
        call = PendingCall(sequences, wants_news=wants_news)
        for sequence in sequences:
            self._calls[sequence] = call
        return call

    def close(self, call: PendingCall) -> None:
        """Forget the call: later updates of its sequences are dropped."""
        for sequence in call.sequences:
            self._calls.pop(sequence, None)

    def deliver(self, updates: Iterable[SequenceUpdate], progress: Iterable[SequenceProgress] = ()) -> None:
        for each in progress:
            call = self._calls.get(each.sequence)
            if call is not None:
                call.notify(each)
        for update in updates:
            call = self._calls.pop(update.sequence, None)
            if call is not None:
                call.accept(update)


class EngineBridge:
    """An `EngineListener`: all results of a turn reach the loop in one `call_soon_threadsafe`.

    Those of a call that needs all of its sequences arrive with the last one, as waking the loop costs more than they
    do.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        metrics: ModelMetrics,
        version: str,
        statistics: InferenceStatistics,
        deliver: Callable[[list[SequenceUpdate], list[SequenceProgress]], None],
        failed: Callable[[BaseException], None],
    ) -> None:
        """Call `deliver` and `failed` on the loop's thread."""
        self._loop = loop
        self._metrics, self._version = metrics, version
        self._statistics = statistics
        self._deliver = deliver
        self._failed = failed

    def on_updates(self, updates: list[SequenceUpdate], progress: list[SequenceProgress]) -> None:
        due = [each for update in updates for each in _due(update)]
        if due or progress:
            with contextlib.suppress(RuntimeError):  # the loop is closed: nothing waits any more
                self._loop.call_soon_threadsafe(self._cross, due, progress)

    def on_turn(self, stats: TurnStats) -> None:
        self._metrics.turn(stats)
        self._statistics.turn(stats)

    def on_failure(self, error: BaseException) -> None:
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._failed, error)

    def _cross(self, updates: list[SequenceUpdate], progress: list[SequenceProgress]) -> None:
        self._deliver(updates, progress)
        self._count(updates)

    def _count(self, updates: list[SequenceUpdate]) -> None:
        """Count finished sequences in batches: thousands of a call's equal segments may finish in one turn."""
        self._metrics.finished(updates[:_COUNTED_AT_ONCE], self._metrics.version(self._version))
        if rest := updates[_COUNTED_AT_ONCE:]:
            self._loop.call_soon(self._count, rest)


def _due(update: SequenceUpdate) -> Sequence_[SequenceUpdate]:
    joint = update.sequence.joint_updates
    return (update,) if joint is None else joint.add(update)
