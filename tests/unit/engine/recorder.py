"""A listener that records updates, and builders for what tests submit."""

import threading
from dataclasses import replace

from service.domain.call import Call, Origin
from service.domain.options import DecodingOptions
from service.domain.translation import Priority
from service.engine.config import EngineConfig
from service.engine.engine import Engine
from service.engine.reports import TurnStats
from service.engine.runner import Runner
from service.engine.sequence import Sequence, SequenceProgress, SequenceUpdate
from tests.patience import patient

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
    length_penalty: float = 1.0,
    num_hypotheses: int = 1,
    return_scores: bool = False,
    target_prefix_ids: tuple[int, ...] = (),
    deadline_seconds: float | None = None,
    arrived_seconds: float = 0.0,
    priority: Priority = Priority.NORMAL,
    temperature: float = 0.0,
    top_k: int = 64,
    top_p: float = 1.0,
    seed: int | None = None,
    stops_early: bool = False,
    forces_end: bool = False,
    max_length_ratio: float = 0.0,
    max_repeats: int = 0,
    repetition_penalty: float = 1.0,
    no_repeat_ngram_size: int = 0,
    min_output_tokens: int = 0,
    output_prefix_ids: tuple[int, ...] = (),
    wants_progress: bool = False,
    wants_attention: bool = False,
    origin: Origin | None = None,
) -> Sequence:
    """Build a sequence; without an `origin`, each `request_id` is a caller with one call."""
    options = DecodingOptions(
        beam_size=beam_size,
        length_penalty=length_penalty,
        num_hypotheses=num_hypotheses,
        max_output_tokens=max_output_tokens,
        return_scores=return_scores,
        temperature=temperature,
        top_k=top_k,
        top_p=top_p,
        seed=seed,
        stops_early=stops_early,
        forces_end=forces_end,
        max_length_ratio=max_length_ratio,
        max_repeats=max_repeats,
        repetition_penalty=repetition_penalty,
        no_repeat_ngram_size=no_repeat_ngram_size,
        min_output_tokens=min_output_tokens,
    )
    return Sequence(
        source_ids,
        options,
        arrived_seconds,
        target_prefix_ids,
        deadline_seconds,
        priority=priority,
        output_prefix_ids=output_prefix_ids,
        wants_progress=wants_progress,
        wants_attention=wants_attention,
        call=Call(request_id=request_id, origin=(request_id,) if origin is None else origin),
    )


def held(engine: Engine) -> dict[str, int]:
    """Return the sizes of what an engine keeps for live sequences, by name; all 0 if there are none."""
    queue, workers = engine.queue, engine.workers
    return {
        "live": len(queue.live),
        "queued": queue.num_waiting,
        "coalesced, waiting": queue.coalescing.num_waiting,
        "coalesced, running": queue.coalescing.num_decoding,
        "coalesced, watched": len(queue.coalescing.watched),
        "decoded by a worker": sum(len(worker.assigned) for worker in workers),
        "abandoned": sum(len(worker.abandoned) for worker in workers),
        "rows": sum(worker.batch.num_rows for worker in workers),
    }


def stop(engine: Engine) -> None:
    assert engine.stop(WAIT_SECONDS), "the engine's thread did not end"


def decode(runner: Runner, sequences: list[Sequence], config: EngineConfig) -> list[SequenceUpdate]:
    """Run sequences on an engine that checks its state, submitted one by one; return their updates in order."""
    recorder = Recorder()
    engine = Engine([runner], replace(config, checks_integrity=True), recorder)
    engine.start()
    try:
        for sequence in sequences:
            engine.submit([sequence])
        recorder.wait(len(sequences))
    finally:
        stop(engine)
    assert not recorder.failures
    return [recorder.update(sequence) for sequence in sequences]
