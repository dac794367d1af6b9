"""A worker: one runner's rows and their thread. In each turn sequences join, all advance, and ended ones leave."""

import logging
from collections.abc import Callable, Collection, Iterable
from collections.abc import Sequence as Sequence_
from dataclasses import dataclass, field

from service.domain.errors import EngineFailure, Public, counted
from service.engine.batch import Batch
from service.engine.integrity import expect
from service.engine.reports import TurnStats
from service.engine.runner import ONE_STEP, EncodeJob, RunLimits, Runner, RunTerminated
from service.engine.scheduler import StepPlan
from service.engine.search import Outcome, Search, produced_nan
from service.engine.sequence import Sequence

_log = logging.getLogger(__name__)

_MAX_FAILED_TURNS = 5  # in a row; then the engine is at fault, not a sequence


@dataclass(slots=True)
class Turn:
    """The record of a turn: which sequences joined, which could not, the run's outcome, and the times of its parts."""

    plan: StepPlan
    began: float
    encoded: float
    stepped: float
    num_rows: int = 0
    refused: list[tuple[Sequence, EngineFailure]] = field(default_factory=list)
    result: Outcome = field(default_factory=Outcome)

    def stats(
        self, busy_seconds: float, queue_seconds: Sequence_[float], first_token_seconds: Sequence_[float]
    ) -> TurnStats:
        has_encoded, result = bool(self.plan.admitted), self.result
        return TurnStats(
            ended_seconds=self.stepped,
            busy_seconds=busy_seconds,
            encode_seconds=self.encoded - self.began if has_encoded else 0.0,
            num_encoded=len(self.plan.admitted),
            encoded_tokens=self.plan.num_tokens if has_encoded else 0,
            padded_tokens=self.plan.num_padded_tokens if has_encoded else 0,
            run_seconds=self.stepped - self.encoded if self.num_rows else 0.0,
            num_steps=result.num_steps,
            num_row_steps=result.num_row_steps,
            batch_size=self.num_rows,
            num_generated=result.num_generated,
            queue_seconds=queue_seconds,
            first_token_seconds=first_token_seconds,
        )


class Worker:
    """Owned by its thread. Other threads read its sizes, and change `assigned`, `abandoned` and `watched` under the
    engine's lock, which is also held when the methods down to `steps_to_watched_token` are called."""

    def __init__(self, runner: Runner, clock: Callable[[], float], *, checks_integrity: bool) -> None:
        self.runner = runner
        self.batch = Batch(runner.spec.max_slots, runner.spec.kv_capacity)
        self.search = Search(runner, self.batch)
        self.assigned: set[Sequence] = set()  # joining or running, and wanted
        self.abandoned: list[Sequence] = []  # running, but no longer wanted: to be removed before the next turn
        self.watched: dict[Sequence, int] = {}  # assigned ones that want progress, and how many tokens they were told
        self.turn_began: float | None = None  # `None` between turns
        self.unreported: list[TurnStats] = []
        self._clock = clock
        self._num_failed_turns = 0
        self._without_token: list[Sequence] = []  # joined, but the model has not chosen a token for them yet
        self._checks_integrity = checks_integrity

    def assign(self, sequences: Iterable[Sequence]) -> None:
        self.assigned.update(sequences)
        self.watched.update((sequence, 0) for sequence in sequences if sequence.wants_progress)

    def abandon(self, sequence: Sequence) -> None:
        self._unassign(sequence)
        self.abandoned.append(sequence)

    def remove_abandoned(self) -> None:
        for sequence in self.abandoned:
            self.remove(sequence)
        self.abandoned.clear()

    def release(self, sequence: Sequence) -> None:
        """Record that a sequence has left its rows; it may have been given up meanwhile."""
        if sequence in self.abandoned:
            self.abandoned.remove(sequence)
        else:
            self._unassign(sequence)

    def _unassign(self, sequence: Sequence) -> None:
        self.assigned.remove(sequence)
        self.watched.pop(sequence, None)

    def steps_to_watched_token(self, joining: Sequence_[Sequence]) -> int | None:
        """Return the steps to the first streamed token of sequences here or `joining`; `None` if none is awaited."""
        unseen = [each for each in (*self._without_token, *joining) if each in self.watched]
        return min(map(self._steps_to_first_token, unseen), default=None)

    def run(self, plan: StepPlan) -> Turn:
        began = self._clock()
        refused = self.admit(plan.admitted) if plan.admitted else []
        encoded = self._clock()
        num_rows = self.batch.num_rows
        result = self.step(plan.limits) if num_rows else Outcome()
        return Turn(plan, began, encoded, self._clock(), num_rows, refused, result)

    def check_integrity(self, joining: Collection[Sequence] = ()) -> None:
        expect(len(set(self.abandoned)) == len(self.abandoned), "a sequence is abandoned twice")
        expect(self.assigned.isdisjoint(self.abandoned), "an abandoned sequence is assigned to a worker")
        watching = {sequence for sequence in self.assigned if sequence.wants_progress}
        expect(self.watched.keys() == watching, f"{len(self.watched)} are watched, {len(watching)} should be")
        expected, found = {*self.assigned, *self.abandoned}, {*self.batch.sequences, *joining}
        lost, strange = len(expected - found), len(found - expected)
        expect(not lost, f"{lost} of {len(expected)} sequences assigned to a worker have no rows there")
        expect(not strange, f"{strange} of {len(found)} sequences have rows in a worker that they are not assigned to")
        needed = sum(sequence.num_slots for sequence in joining)
        expect(needed <= self.batch.num_free, f"{needed} rows are promised, {self.batch.num_free} are free")

    def count_failures(self, turn: Turn) -> None:
        if turn.num_rows or turn.plan.admitted:
            has_run = turn.num_rows > 0 and not turn.result.has_run_failed
            self._num_failed_turns = 0 if has_run else self._num_failed_turns + 1
        if self._num_failed_turns >= _MAX_FAILED_TURNS:
            raise RuntimeError(f"{self._num_failed_turns} turns in a row failed; the log says why")

    def admit(self, sequences: Sequence_[Sequence]) -> list[tuple[Sequence, EngineFailure]]:
        """Encode sequences, each alone if that fails as a whole; they join. Return those that failed, removed."""
        start_id = self.runner.spec.decoder_start_id
        jobs = [EncodeJob(sequence.source_ids, self.batch.join(sequence, start_id)) for sequence in sequences]
        self._without_token.extend(sequences)
        failures = self._encode(jobs)
        failed = [(sequence, failure) for sequence, failure in zip(sequences, failures, strict=True) if failure]
        if failed:
            self._remove_failed(failed)
        if self._checks_integrity:
            self.check_rows()
        return failed

    def step(self, limits: RunLimits = ONE_STEP) -> Outcome:
        """Advance every running sequence by the tokens of one run. If the run itself fails, all of them fail."""
        batch = self.batch
        steps_to_first_tokens = [self._steps_to_first_token(each) for each in self._without_token]
        try:
            result = self.search.run(limits)
        except Exception as error:
            _log_failure(f"a run of {counted(batch.num_rows, 'row')}", error)
            failed = [(sequence, _failure(error)) for sequence in batch.sequences]
            result = Outcome(failed=failed, has_run_failed=True)
        else:
            if steps_to_first_tokens:
                self._note_first_tokens(result, steps_to_first_tokens)
        if result.failed:
            self._remove_failed(result.failed)
        for sequence, _ in result.finished:
            self.remove(sequence)
        if self._checks_integrity:
            self.check_rows()
        return result

    def remove(self, sequence: Sequence) -> None:
        for move in self.batch.leave(sequence):
            self.runner.move(*move)
        if sequence in self._without_token:
            self._without_token.remove(sequence)
        if not self.batch.num_rows:
            self.runner.idle()

    def check_rows(self) -> None:
        self.batch.check_integrity()
        running, lengths = set(self.batch.sequences), self.batch.lengths
        self.search.check_integrity(running)
        expected = {each for each in running if lengths[each.slots[0]] <= len(each.forced_ids)}
        is_known = len(self._without_token) == len(expected) and expected.issuperset(self._without_token)
        expect(is_known, f"{len(self._without_token)} wait for a first token, {len(expected)} should")

    def _remove_failed(self, failed: list[tuple[Sequence, EngineFailure]]) -> None:
        for sequence, _ in failed:  # all are zeroed first: moves must not spread NaN
            self.runner.clear(sequence.slots)
        for sequence, _ in failed:
            self.remove(sequence)

    def _encode(self, jobs: Sequence_[EncodeJob]) -> list[EngineFailure | None]:
        try:
            are_good = self.runner.encode(jobs)
        except Exception as error:
            _log_failure(f"encoding {counted(len(jobs), 'source')}", error)
            if len(jobs) == 1:
                return [_failure(error)]
            return [failure for job in jobs for failure in self._encode([job])]
        return [None if is_good else produced_nan("encoder") for is_good in are_good]

    def _steps_to_first_token(self, sequence: Sequence) -> int:
        """Return how many steps a sequence without a token of its own needs for one; it may not have joined yet."""
        return len(sequence.forced_ids) + 1 - (self.batch.state.lengths[sequence.slots[0]] if sequence.slots else 0)

    def _note_first_tokens(self, result: Outcome, steps_to_first_tokens: list[int]) -> None:
        waiting, self._without_token = self._without_token, []
        for sequence, num_steps in zip(waiting, steps_to_first_tokens, strict=True):
            if self._steps_to_first_token(sequence) > 0:
                self._without_token.append(sequence)
            else:
                result.first_tokens.append((sequence, num_steps / max(result.num_steps, num_steps)))


def _log_failure(what: str, error: Exception) -> None:
    if isinstance(error, RunTerminated):
        _log.info("%s was terminated because the engine has stopped or failed", what)
    else:
        _log.error("%s failed", what, exc_info=error)


def _failure(error: Exception) -> EngineFailure:
    kind = Public(type(error).__name__)
    failure = EngineFailure("decoding failed on the server ({kind})", kind=kind, advice="try again")
    failure.__cause__ = error
    return failure
