"""Cumulative statistics of a loaded model, in plain sums: KServe's ModelStatistics."""

import math
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass

from service.domain.call import Phase
from service.engine.reports import TurnStats
from service.engine.sequence import SequenceUpdate


@dataclass(slots=True)
class Duration:
    """How often something was done, and its total duration."""

    count: int = 0
    seconds: float = 0.0

    def add(self, seconds: float) -> None:
        """Count one more occurrence."""
        self.count += 1
        self.seconds += seconds


class InferenceStatistics:
    """The sums of one version of a model. All except `turn` and `step_seconds` belongs to the event loop's thread.

    Phases are counted once per call: `queue` until the engine admitted the first of its texts, `decode` from then until
    the last one was decoded. Only `detokenize` is counted more often when a call is streamed.
    """

    def __init__(self) -> None:
        self.succeeded = Duration()
        self.failed = Duration()  # or cancelled by the caller
        self.tokenize = Duration()
        self.queue = Duration()
        self.decode = Duration()
        self.detokenize = Duration()
        self.num_texts = 0  # of successful calls
        self.last_used_seconds = 0.0  # since 1970; 0: never
        self._lock = threading.Lock()
        self._steps: dict[int, Duration] = {}

    def call(self, num_texts: int) -> "TimedCall":
        """Return a context manager that times a call, and counts it as succeeded or failed."""
        return TimedCall(self, num_texts)

    def took(self, phase: Phase, seconds: float) -> None:
        """Record how long a call's texts took to tokenize, or its translations to detokenize."""
        (self.tokenize if phase is Phase.TOKENIZE else self.detokenize).add(seconds)

    def decoded(self, updates: Sequence[SequenceUpdate]) -> None:
        """Record the times of a call's decoded sequences."""
        arrived = admitted = math.inf
        finished = 0.0
        for update in updates:
            sequence = update.sequence
            arrived, admitted = min(arrived, sequence.arrived_seconds), min(admitted, sequence.admitted_seconds)
            finished = max(finished, update.finished_seconds)
        self.queue.add(max(admitted - arrived, 0.0))
        self.decode.add(max(finished - admitted, 0.0))

    def turn(self, stats: TurnStats) -> None:
        if stats.batch_size:
            with self._lock:
                self._steps.setdefault(stats.batch_size, Duration()).add(stats.run_seconds)

    def step_seconds(self) -> dict[int, Duration]:
        """Return the durations of decoder runs by their number of rows, in ascending order. Thread-safe."""
        with self._lock:
            return {rows: Duration(took.count, took.seconds) for rows, took in sorted(self._steps.items())}


class TimedCall:
    """A call, timed and counted in a `with` block."""

    __slots__ = ("_num_texts", "_started", "_statistics")

    def __init__(self, statistics: InferenceStatistics, num_texts: int) -> None:
        self._statistics = statistics
        self._num_texts = num_texts
        self._started = time.monotonic()

    def __enter__(self) -> "TimedCall":
        return self

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        statistics, seconds = self._statistics, time.monotonic() - self._started
        if error is not None:
            statistics.failed.add(seconds)
            return
        statistics.succeeded.add(seconds)
        statistics.num_texts += self._num_texts
        statistics.last_used_seconds = time.time()
