"""The metrics of all workers as those of one server."""

import asyncio
from collections.abc import Sequence
from http import HTTPStatus
from typing import NamedTuple

from service.faces.front.worker import NoAnswer, WorkerEndpoint, get
from service.faces.http.monitoring import FAMILIES_PATH
from service.observe.families import Family, from_json
from service.observe.kept_counts import KeptCounts, reported_by
from service.observe.merging import merged
from service.observe.metrics import Metrics
from service.observe.worker_metrics import WorkerState
from service.process.hangs import LOOK_SECONDS

READ_SECONDS = 2.0  # for what a worker answers at once, unless it hangs
_SILENT_SECONDS = 2 * LOOK_SECONDS  # of its event loop


class _Reading(NamedTuple):
    """A worker's present metrics, none if it is silent, and its counts that are not among them."""

    state: WorkerState
    is_another: bool  # than it was at the reading before
    present: list[Family]
    kept: list[Family]


class WorkersMetrics:
    """Reads the metrics of all workers, and of the process that this is. For one event loop."""

    def __init__(self, workers: Sequence[WorkerEndpoint]) -> None:
        self._readers = [_Reader(worker) for worker in workers]
        self._own = Metrics()  # with all metrics, so that a server whose workers are silent is not ready, either
        self._workers = self._own.of_workers()
        self._rules = self._own.rules()

    async def read(self) -> list[Family]:
        """Return the merged metrics: of workers that do not answer, only what they have counted."""
        readings = await asyncio.gather(*(reader.read() for reader in self._readers))
        for state in WorkerState:
            self._workers.states.labels(state.value).set(sum(reading.state is state for reading in readings))
        self._workers.restarts.labels().inc(sum(reading.is_another for reading in readings))
        self._forget(readings)
        parts = [self._own.families(), *(reading.present for reading in readings), *(each.kept for each in readings)]
        return merged(parts, self._rules)

    def _forget(self, readings: Sequence[_Reading]) -> None:
        """Remove the counts of what no worker reports any more; those that are not ready may not report it yet."""
        ready = [reading.present for reading in readings if reading.state is WorkerState.READY]
        if ready:
            reported = set().union(*map(reported_by, ready))
            for reader in self._readers:
                reader.counts.forget(reported)


class _Reader:
    """Reads one worker's metrics, one time after the other: a late answer must not look like counts that fell."""

    def __init__(self, worker: WorkerEndpoint) -> None:
        self.counts = KeptCounts()
        self._worker = worker
        self._lock = asyncio.Lock()

    async def read(self) -> _Reading:
        try:
            async with asyncio.timeout(READ_SECONDS), self._lock:
                answer = await get(self._worker.metrics, FAMILIES_PATH, READ_SECONDS)
                if answer.status is not HTTPStatus.OK:
                    raise NoAnswer(f"answers {answer.status}", was_sent=True)
                families = from_json(answer.body)
                is_another = self.counts.read(families)
                if _value(families, "dragoman_event_loop_silence_seconds") > _SILENT_SECONDS:  # only its threads run
                    return _Reading(WorkerState.SILENT, is_another, [], self.counts.kept(answers=False))
        except (NoAnswer, TimeoutError, ValueError):  # the last: these are not metrics
            return _Reading(WorkerState.SILENT, False, [], self.counts.kept(answers=False))
        return _Reading(_state(families), is_another, families, self.counts.kept(answers=True))


def _state(families: Sequence[Family]) -> WorkerState:
    if _value(families, "dragoman_ready"):
        return WorkerState.READY
    return WorkerState.DRAINING if _value(families, "dragoman_draining") else WorkerState.NOT_READY


def _value(families: Sequence[Family], name: str) -> float:
    """Return the value of a metric without labels; 0 if it is not there."""
    return next((family.samples[0].value for family in families if family.name == name and family.samples), 0.0)
