"""Passes one engine's reports from its thread to the event loop, the metrics and the server."""

import asyncio
import contextlib
from collections.abc import Callable, Sequence

from service.engine.reports import TurnStats
from service.engine.sequence import SequenceProgress, SequenceUpdate
from service.models.statistics import InferenceStatistics
from service.observe.model_metrics import ModelMetrics

_COUNTED_AT_ONCE = 256


class EngineBridge:
    """An `EngineListener`: all results of a turn reach the loop in one `call_soon_threadsafe`.

    Those of a call that needs all of its sequences reach it when the last one has ended: waking the loop for each costs
    more than what it does with it.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        metrics: ModelMetrics,
        statistics: InferenceStatistics,
        deliver: Callable[[list[SequenceUpdate], list[SequenceProgress]], None],
        failed: Callable[[BaseException], None],
    ) -> None:
        """Call `deliver` and `failed` on the loop's thread."""
        self._loop = loop
        self._metrics = metrics
        self._statistics = statistics
        self._deliver = deliver
        self._failed = failed

    def on_updates(self, updates: list[SequenceUpdate], progress: list[SequenceProgress]) -> None:
        """See `EngineListener.on_updates`."""
        due = [each for update in updates for each in _due(update)]
        if due or progress:
            with contextlib.suppress(RuntimeError):  # the loop is closed: nothing waits any more
                self._loop.call_soon_threadsafe(self._cross, due, progress)

    def on_turn(self, stats: TurnStats) -> None:
        """See `EngineListener.on_turn`."""
        self._metrics.turn(stats)
        self._statistics.turn(stats)

    def on_failure(self, error: BaseException) -> None:
        """See `EngineListener.on_failure`."""
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._failed, error)

    def _cross(self, updates: list[SequenceUpdate], progress: list[SequenceProgress]) -> None:
        self._deliver(updates, progress)
        self._count(updates)

    def _count(self, updates: list[SequenceUpdate]) -> None:
        """Count finished sequences in batches: thousands of a call's equal segments may finish in one turn."""
        for update in updates[:_COUNTED_AT_ONCE]:
            self._metrics.finished(update)
        if rest := updates[_COUNTED_AT_ONCE:]:
            self._loop.call_soon(self._count, rest)


def _due(update: SequenceUpdate) -> Sequence[SequenceUpdate]:
    """Return the updates that the loop needs now that there is this one."""
    joint = update.sequence.joint_updates
    return (update,) if joint is None else joint.add(update)
