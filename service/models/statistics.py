"""What a loaded model has done since it was loaded, in plain sums: KServe's ModelStatistics."""

import contextlib
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from service.domain.call import Phase
from service.engine.sequence import SequenceUpdate
from service.engine.stats import TurnStats


@dataclass(slots=True)
class Duration:
    """How often something was done, and how long it took all together."""

    count: int = 0
    seconds: float = 0.0

    def add(self, seconds: float) -> None:
        """Count it once more."""
        self.count += 1
        self.seconds += seconds


class InferenceStatistics:
    """The sums of one version of a model. All but `turn` and `step_seconds` belongs to the event loop's thread.

    Phases are counted once per call: `queue` until the first of its texts was taken in by the engine, `decode` from
    there until the last one was decoded. Only `detokenize` is counted more often where a call is streamed.
    """

    def __init__(self) -> None:
        self.succeeded = Duration()
        self.failed = Duration()  # or given up by the caller
        self.tokenize = Duration()
        self.queue = Duration()
        self.decode = Duration()
        self.detokenize = Duration()
        self.num_texts = 0  # of calls that succeeded
        self.last_used_seconds = 0.0  # since 1970; 0: never
        self._lock = threading.Lock()
        self._steps: dict[int, Duration] = {}

    @contextlib.contextmanager
    def call(self, num_texts: int) -> Iterator[None]:
        """Time a call, and count whether it fails."""
        started = time.monotonic()
        try:
            yield
        except BaseException:
            self.failed.add(time.monotonic() - started)
            raise
        self.succeeded.add(time.monotonic() - started)
        self.num_texts += num_texts
        self.last_used_seconds = time.time()

    def took(self, phase: Phase, seconds: float) -> None:
        """Count how long a call's texts were tokenized, or its translations detokenized."""
        (self.tokenize if phase is Phase.TOKENIZE else self.detokenize).add(seconds)

    def decoded(self, updates: Sequence[SequenceUpdate]) -> None:
        """A call's sequences have come back from the engine."""
        arrived = min(update.sequence.arrived_seconds for update in updates)
        admitted = min(update.sequence.admitted_seconds for update in updates)
        self.queue.add(max(admitted - arrived, 0.0))
        self.decode.add(max(max(update.finished_seconds for update in updates) - admitted, 0.0))

    def turn(self, stats: TurnStats) -> None:
        """One turn of the engine ran something. Thread-safe."""
        if stats.batch_size:
            with self._lock:
                self._steps.setdefault(stats.batch_size, Duration()).add(stats.step_seconds)

    def step_seconds(self) -> dict[int, Duration]:
        """Runs of the decoder by how many rows they had, the fewest first. Thread-safe."""
        with self._lock:
            return {rows: Duration(took.count, took.seconds) for rows, took in sorted(self._steps.items())}
