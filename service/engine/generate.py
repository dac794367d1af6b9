"""A blocking interface to the engine, for the exporter, trials of bundles, benchmarks and tests."""

import threading
import time
from collections.abc import Callable, Iterable
from collections.abc import Sequence as Sequence_
from concurrent.futures import Future
from pathlib import Path
from types import TracebackType
from typing import Self

from service.bundle.manifest import Manifest
from service.domain.call import Call
from service.domain.options import DecodingOptions
from service.engine.config import EngineConfig
from service.engine.engine import Engine
from service.engine.reports import TurnStats
from service.engine.runner import Runner
from service.engine.runtime.runners import open_runners
from service.engine.runtime.session import SessionConfig
from service.engine.sequence import DecodedHypothesis, Sequence, SequenceProgress, SequenceUpdate

LONGEST_SECONDS = 300.0  # of a trial, and of a stop

Hypotheses = tuple[DecodedHypothesis, ...]  # of one sequence, best first
Row = tuple[Sequence_[int], Sequence_[int]]  # source ids, target prefix ids


class OfflineEngine:
    """An engine that runs for the duration of a `with` block. Any thread may submit sequences and wait for results."""

    def __init__(
        self, runners: Sequence_[Runner], config: EngineConfig, on_turn: Callable[[TurnStats], None] | None = None
    ) -> None:
        """Create an engine, not started yet, that calls `on_turn` on its threads, like `EngineListener.on_turn`."""
        self._results = _Results(on_turn)
        self._engine = Engine(runners, config, self._results)

    @classmethod
    def open(
        cls,
        directory: Path,
        manifest: Manifest,
        config: EngineConfig,
        session_config: SessionConfig,
        on_turn: Callable[[TurnStats], None] | None = None,
    ) -> Self:
        return cls(open_runners(directory, manifest, config, session_config).runners, config, on_turn)

    def __enter__(self) -> Self:
        self._engine.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if not self._engine.stop(LONGEST_SECONDS) and error is None:
            raise TimeoutError(f"A thread of the engine did not end within {LONGEST_SECONDS:g} s.")

    def submit(self, sequences: Sequence_[Sequence]) -> Future[list[Hypotheses]]:
        """Start decoding; the future gets hypotheses in order, or the `ServiceError` of the first that failed."""
        future = self._results.expect(sequences)
        try:
            self._engine.submit(sequences)
        except BaseException:
            self._results.forget(sequences)
            raise
        return future

    def generate(self, sequences: Sequence_[Sequence], timeout_seconds: float | None = None) -> list[Hypotheses]:
        return self.submit(sequences).result(timeout_seconds)

    def decode(self, rows: Iterable[Row], options: DecodingOptions) -> list[Hypotheses]:
        return self.generate(sequences_of(rows, options))


def sequences_of(rows: Iterable[Row], options: DecodingOptions) -> list[Sequence]:
    """Create the sequences of one call, arriving now, for rows of (source ids, target prefix ids)."""
    now, call = time.monotonic(), Call()
    return [
        Sequence(tuple(source_ids), options, now, call=call, target_prefix_ids=tuple(prefix_ids))
        for source_ids, prefix_ids in rows
    ]


class _Call:
    """Sequences that were submitted together."""

    def __init__(self, sequences: Sequence_[Sequence]) -> None:
        self.future: Future[list[Hypotheses]] = Future()
        self._sequences = sequences
        self._updates: dict[Sequence, SequenceUpdate] = {}
        if not sequences:
            self.future.set_result([])

    def end(self, update: SequenceUpdate) -> bool:
        self._updates[update.sequence] = update
        return len(self._updates) == len(self._sequences)

    def conclude(self, cause: BaseException | None) -> None:
        updates = [self._updates[sequence] for sequence in self._sequences]
        error = next((update.error for update in updates if update.error is not None), None)
        if error is None:
            self.future.set_result([update.hypotheses for update in updates])
            return
        error.__cause__ = error.__cause__ or cause
        self.future.set_exception(error)


class _Results:
    """An `EngineListener` that passes each call's outcome to its waiting caller, waking it once."""

    def __init__(self, on_turn: Callable[[TurnStats], None] | None) -> None:
        self._on_turn = on_turn
        self._lock = threading.Lock()
        self._calls: dict[Sequence, _Call] = {}
        self._failure: BaseException | None = None

    def expect(self, sequences: Sequence_[Sequence]) -> Future[list[Hypotheses]]:
        call = _Call(sequences)
        with self._lock:
            self._calls.update(dict.fromkeys(sequences, call))
        return call.future

    def forget(self, sequences: Iterable[Sequence]) -> None:
        with self._lock:
            for sequence in sequences:
                self._calls.pop(sequence, None)

    def on_updates(self, updates: list[SequenceUpdate], progress: list[SequenceProgress]) -> None:
        with self._lock:
            ended = [call for update in updates if (call := self._calls.pop(update.sequence)).end(update)]
        for call in ended:
            call.conclude(self._failure)

    def on_turn(self, stats: TurnStats) -> None:
        if self._on_turn is not None:
            self._on_turn(stats)

    def on_failure(self, error: BaseException) -> None:
        self._failure = error  # accepted sequences fail right after this
