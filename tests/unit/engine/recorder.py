"""A listener that records updates, and builders for what tests submit."""

import threading
from dataclasses import fields, replace
from typing import Any

from service.domain.call import Call, Origin
from service.domain.options import DecodingOptions
from service.engine.config import EngineConfig
from service.engine.engine import Engine
from service.engine.reports import TurnStats
from service.engine.runner import Runner
from service.engine.sequence import Sequence, SequenceProgress, SequenceUpdate
from tests.patience import patient

FIELDS = {field.name for field in fields(Sequence)}
WAIT_SECONDS = patient(20.0)  # a bound, not a duration: tests continue as soon as the condition holds


class Recorder:
    """Keeps every update in order, and lets a test wait until sequences have ended."""

    def __init__(self) -> None:
        self.calls: list[list[SequenceUpdate]] = []
        self.progress: dict[Sequence, list[tuple[int, ...]]] = {}
        self.turns: list[TurnStats] = []
        self.failures: list[BaseException] = []
        self._changed = threading.Condition()

    def on_updates(self, updates: list[SequenceUpdate], progress: list[SequenceProgress]) -> None:
        with self._changed:
            self.calls.append(updates)
            for each in progress:
                assert not any(update.sequence is each.sequence for update in self.updates), "progress after the end"
                self.progress.setdefault(each.sequence, []).append(each.token_ids)
            self._changed.notify_all()

    def on_turn(self, stats: TurnStats) -> None:
        with self._changed:
            self.turns.append(stats)

    def on_failure(self, error: BaseException) -> None:
        with self._changed:
            self.failures.append(error)
            self._changed.notify_all()

    @property
    def updates(self) -> list[SequenceUpdate]:
        return [update for call in self.calls for update in call]

    def update(self, sequence: Sequence) -> SequenceUpdate:
        """Wait for the single update of a sequence, and return it."""
        self.wait(1, [sequence])
        (update,) = [update for update in self.updates if update.sequence is sequence]
        return update

    def wait(self, num_ended: int, among: list[Sequence] | None = None) -> None:
        def has_ended() -> bool:
            ended = [update for update in self.updates if among is None or update.sequence in among]
            return len(ended) >= num_ended

        with self._changed:
            assert self._changed.wait_for(has_ended, WAIT_SECONDS), f"{len(self.updates)} updates came, not {num_ended}"

    def wait_for_failure(self) -> BaseException:
        with self._changed:
            assert self._changed.wait_for(lambda: bool(self.failures), WAIT_SECONDS), "the loop did not die"
        return self.failures[0]


def new_sequence(
    source_ids: tuple[int, ...] = (5, 6, 7, 1),
    request_id: str = "request",
    beam_size: int = 1,
    max_output_tokens: int = 12,
    *,
    arrived_seconds: float = 0.0,
    origin: Origin | None = None,
    length_penalty: float = 1.0,
    num_hypotheses: int = 1,
    **further: Any,
) -> Sequence:
    """Build a sequence of `further` options and other fields; without an `origin`, each `request_id` is a caller."""
    own = {name: further.pop(name) for name in FIELDS & further.keys()}
    options = DecodingOptions(beam_size, length_penalty, num_hypotheses, max_output_tokens, **further)
    call = Call(request_id=request_id, origin=(request_id,) if origin is None else origin)
    return Sequence(source_ids, options, arrived_seconds, call=call, **own)


def held(engine: Engine) -> dict[str, int]:
    """Return the sizes of what an engine keeps for live sequences, by name; all 0 if there are none."""
    queue, workers = engine.turns.queue, engine.turns.workers
    return {
        "live": len(queue.live),
        "queued": queue.waiting.num_sequences,
        "watched": sum(len(worker.watched) for worker in workers),
        "decoded by a worker": sum(len(worker.assigned) for worker in workers),
        "abandoned": sum(len(worker.abandoned) for worker in workers),
        "rows": sum(worker.batch.num_rows for worker in workers),
    }


def stop(engine: Engine) -> None:
    assert engine.stop(WAIT_SECONDS), "the engine's thread did not end"


def decode(
    runners: Runner | list[Runner],
    sequences: list[Sequence],
    config: EngineConfig,
    recorder: Recorder | None = None,
    *,
    together: bool = False,
) -> list[SequenceUpdate]:
    """Run sequences on an engine that checks its state, submitted `together` or one by one; return their updates."""
    recorder = recorder or Recorder()
    engine = Engine(
        runners if isinstance(runners, list) else [runners], replace(config, checks_integrity=True), recorder
    )
    engine.start()
    try:
        for submitted in [sequences] if together else [[sequence] for sequence in sequences]:
            engine.submit(submitted)
        recorder.wait(len(sequences))
    finally:
        stop(engine)
    assert not recorder.failures
    return [recorder.update(sequence) for sequence in sequences]
