"""The engine: a thread that takes sequences in, runs them together turn by turn, and reports how each one ended."""

import logging
import threading
import time
from collections.abc import Callable, Iterable
from collections.abc import Sequence as Sequence_
from typing import NamedTuple, Protocol

from service.engine.config import EngineConfig
from service.engine.deadlines import Deadlines
from service.engine.decoder import Decoder, StepResult
from service.engine.pace import Pace
from service.engine.runner import Runner
from service.engine.scheduler import StepPlan, schedule
from service.engine.sequence import DecodedHypothesis, Sequence, SequenceStatus, SequenceUpdate
from service.engine.stats import DepartureRate, EngineSnapshot, TurnStats
from service.engine.twins import Twins
from service.engine.waiting import WaitingQueue
from service.errors import (
    Cancelled,
    DeadlineExceeded,
    EngineFailure,
    InvalidRequest,
    Overloaded,
    ServiceError,
    TooLong,
    TooMany,
    Unavailable,
)
from service.translation import FinishReason

__all__ = ["Engine", "EngineConfig", "EngineListener", "EngineSnapshot", "TurnStats"]

_log = logging.getLogger(__name__)

_NOBODY = StepPlan(())
_MAX_FAILED_TURNS = 5  # in a row; then the fault is not a sequence's but the engine's


class EngineListener(Protocol):
    """Hears from the engine, on the engine's thread; must be quick and never raise."""

    def on_updates(self, updates: list[SequenceUpdate]) -> None:
        """All terminal updates of one turn."""
        ...

    def on_turn(self, stats: TurnStats) -> None:
        """A turn that ran something is over; its updates went out before."""
        ...

    def on_failure(self, error: BaseException) -> None:
        """The loop died; all sequences have been failed with `Unavailable`."""
        ...


class Engine:
    """Continuous batching: sequences join when slots are free and leave when they end; nobody waits for a batch.

    Of sequences that ask for the same (`twins`), one is decoded and all get its answer, each by its own deadline.
    Every sequence that `submit` accepted gets exactly one terminal update, whatever happens.
    """

    def __init__(
        self,
        runner: Runner,
        config: EngineConfig,
        listener: EngineListener,
        *,
        clock: Callable[[], float] = time.monotonic,
        checks_integrity: bool = False,
    ) -> None:
        self._runner = runner
        self._config = config
        self._listener = listener
        self._clock = clock
        self._decoder = Decoder(runner, checks_integrity=checks_integrity)
        self._waiting = WaitingQueue(config.max_waiting)
        self._twins = Twins()
        self._deadlines = Deadlines()
        self._pace = Pace(config.max_encode_tokens)
        self._departures = DepartureRate()
        self._followers: list[Sequence] = []  # found a twin at work since the last turn
        self._live: set[Sequence] = set()  # accepted and not yet ended; whoever removes one reports its end
        self._updates: list[SequenceUpdate] = []
        self._num_failed_turns = 0
        self._turn_began: float | None = None
        self._changed = threading.Condition()  # guards the three below
        self._submitted: list[Sequence] = []
        self._aborted: list[Sequence] = []
        self._unavailable: str | None = "the engine has not started"
        self._thread = threading.Thread(target=self._run, name="engine", daemon=True)

    @property
    def max_slots(self) -> int:
        """Most rows that run at once."""
        return self._runner.spec.max_slots

    @property
    def bytes_per_slot(self) -> int:
        """What the keys and values of one row take of the device's memory, reserved for its longest."""
        return self._runner.spec.bytes_per_slot

    def start(self) -> None:
        """Start the loop thread. An engine starts once."""
        self._runner.reset()
        self._unavailable = None
        self._thread.start()

    def submit(self, sequences: Sequence_[Sequence]) -> None:
        """Take sequences in, all or none. Thread-safe.

        Raises:
            InvalidRequest: one of them can never run here: too long, or too wide a beam; or they are too many.
            Overloaded: the queue has no room for them now; carries an estimate of when it will.
            Unavailable: the engine has stopped or failed.
        """
        self._check(sequences)
        with self._changed:
            if self._unavailable is not None:
                raise Unavailable(f"Not taking work: {self._unavailable}; try another server, or again soon.")
            pending, limit = len(self._waiting) + len(self._submitted), self._config.max_waiting
            excess = pending + len(sequences) - limit
            if excess > 0:
                raise Overloaded(
                    f"{len(sequences)} sequences found {pending} of at most {limit} waiting; try again later.",
                    self._departures.seconds_until(excess),
                )
            if not self._live.isdisjoint(sequences):
                raise ValueError("a sequence was submitted twice")
            self._live.update(sequences)
            self._submitted.extend(sequences)
            self._changed.notify()

    def abort(self, sequences: Iterable[Sequence]) -> None:
        """Give sequences up: their slots are free within two steps. Thread-safe, idempotent."""
        with self._changed:
            self._aborted.extend(sequence for sequence in sequences if sequence in self._live)
            self._changed.notify()

    def stop(self, timeout_seconds: float) -> bool:
        """Fail what is left with `Unavailable` and end the thread; a run under way is terminated. Idempotent.

        Returns:
            Whether the thread ended in time. If not, it hangs in native code; its sequences are failed from here.
        """
        with self._changed:
            self._unavailable = self._unavailable or "the engine has stopped"
            self._changed.notify()
        self._runner.terminate()
        if self._thread.is_alive():
            self._thread.join(timeout_seconds)
        has_ended = not self._thread.is_alive()
        if not has_ended:
            self._fail_everything()
        return has_ended

    def snapshot(self) -> EngineSnapshot:
        """Where the engine stands. Thread-safe; the numbers may be of slightly different moments."""
        began, batch = self._turn_began, self._decoder.batch
        if not self._thread.is_alive():  # all have been answered, whatever the books say
            return EngineSnapshot(0, 0, 0, batch.max_slots, is_alive=False, turn_seconds=0.0)
        return EngineSnapshot(
            num_waiting=len(self._waiting) + len(self._submitted),
            num_running=batch.num_sequences,
            slots_used=batch.num_rows,
            max_slots=batch.max_slots,
            is_alive=self._unavailable is None,
            turn_seconds=0.0 if began is None else max(self._clock() - began, 0.0),
        )

    def _check(self, sequences: Sequence_[Sequence]) -> None:
        spec = self._runner.spec
        if len(sequences) > self._config.max_waiting:
            raise TooMany(
                f"{len(sequences)} sequences in one call; at most {self._config.max_waiting} can wait at once."
            )
        if len(set(sequences)) != len(sequences):
            raise ValueError("a sequence was submitted twice")
        for sequence in sequences:
            if sequence.status is not SequenceStatus.WAITING:
                raise ValueError(f"a sequence was submitted that is {sequence.status.value} already")
            length, slots = len(sequence.source_ids), sequence.num_slots
            room = spec.kv_capacity - len(sequence.target_prefix_ids)
            if not 1 <= length <= spec.max_source_tokens:
                raise TooLong(
                    f"A source has {length} tokens; allowed is 1 to {spec.max_source_tokens}. Split the text."
                )
            if not 1 <= sequence.options.max_output_tokens <= room:
                raise InvalidRequest(
                    f"options.max_output_tokens is {sequence.options.max_output_tokens}; allowed is 1 to {room}."
                )
            if not 1 <= slots <= spec.max_slots:
                raise InvalidRequest(f"options.beam_size is {slots}; this server allows 1 to {spec.max_slots}.")

    # The loop: everything below runs on the engine's thread.

    def _run(self) -> None:
        try:
            while self._receive():
                self._turn()
        except BaseException as error:
            _log.critical("the engine's loop died", exc_info=error)
            with self._changed:
                self._unavailable = "the engine has failed"
            self._fail_everything()
            self._listener.on_failure(error)
        else:
            self._fail_everything()

    def _receive(self) -> bool:
        """Take in what was submitted and aborted, waiting while there is nothing to do; false when stopping."""
        with self._changed:
            self._turn_began = None
            while self._unavailable is None and not (
                self._submitted or self._aborted or self._waiting or self._decoder.batch.num_rows
            ):
                self._changed.wait()
            self._turn_began = self._clock()
            submitted, self._submitted = self._submitted, []
            aborted, self._aborted = self._aborted, []
            for sequence in submitted:
                self._deadlines.add(sequence)
                if self._twins.follow(sequence) is None:
                    self._waiting.admit([sequence])
                    self._twins.wait(sequence)
                else:
                    self._followers.append(sequence)
        for sequence in aborted:
            self._drop(sequence, Cancelled("The caller gave the call up."), FinishReason.CANCELLED)
        return self._unavailable is None

    def _turn(self) -> None:
        """Drop the expired, schedule, encode, step, publish."""
        began = self._clock()
        for sequence in self._deadlines.pop_expired(began):
            self._drop(sequence, DeadlineExceeded("The call's deadline passed."), FinishReason.DEADLINE)

        batch = self._decoder.batch
        plan = self._scheduled()
        self._start(plan.admitted)
        refused = self._decoder.admit(plan.admitted) if plan.admitted else []
        encoded = self._clock()

        num_rows = batch.num_rows
        result = self._decoder.step() if num_rows else StepResult()
        stepped = self._clock()

        times = _TurnTimes(began, encoded, stepped)
        joined, with_first_token = self._note_progress(plan, result, times)
        for leader, hypotheses in result.finished:
            for sequence in self._twins.end(leader):
                self._end(sequence, hypotheses[0].finish_reason, hypotheses)
        for leader, error in (*refused, *result.failed):
            for sequence in self._twins.end(leader):
                self._end(sequence, error=error)
        self._publish()
        if plan.admitted or num_rows:
            self._report(plan, result, num_rows, joined, with_first_token, times)
            self._count_failures(has_run=num_rows > 0 and not result.has_run_failed)

    def _scheduled(self) -> StepPlan:
        batch = self._decoder.batch
        if not self._waiting or not batch.num_free:
            return _NOBODY
        candidates = self._twins.distinct(self._waiting.candidates())
        return schedule(candidates, batch.num_free, self._pace.encode_tokens(batch.num_rows, batch.num_free))

    def _start(self, admitted: Iterable[Sequence]) -> None:
        """Take sequences from the queue, together with their twins, which follow without slots."""
        for leader in admitted:
            self._waiting.take([leader])
            for twin in self._twins.lead(leader):
                self._waiting.drop(twin)
                self._followers.append(twin)

    def _drop(self, sequence: Sequence, error: ServiceError, reason: FinishReason) -> None:
        """End a sequence before its time, wherever it stands; one that is unknown or has ended is left alone."""
        if sequence not in self._live:
            return
        if sequence in self._waiting:
            self._waiting.drop(sequence)
            self._twins.leave_queue(sequence)
        elif (leader := self._twins.give_up(sequence)) is not None:
            self._decoder.remove(leader)
        self._end(sequence, reason, error=error)

    def _end(
        self,
        sequence: Sequence,
        reason: FinishReason | None = None,
        hypotheses: tuple[DecodedHypothesis, ...] = (),
        error: ServiceError | None = None,
    ) -> None:
        try:
            self._live.remove(sequence)  # atomic, as `stop` may be failing everything at the same time
        except KeyError:
            return
        if not sequence.slots:  # else it decodes on for its twins
            sequence.status = SequenceStatus.FINISHED
        if isinstance(error, EngineFailure) and self._unavailable is not None:
            error = Unavailable(f"Not finished: {self._unavailable}.")  # the run failed because `stop` ended it
        self._updates.append(SequenceUpdate(sequence, reason, hypotheses, error, self._clock()))

    def _publish(self) -> None:
        updates, self._updates = self._updates, []
        if updates:
            self._listener.on_updates(updates)

    def _fail_everything(self) -> None:
        for sequence in list(self._live):
            self._end(sequence, error=Unavailable(f"Not finished: {self._unavailable}; try another server, or again."))
        try:
            self._publish()
        except Exception:
            _log.exception("the listener failed while everything was being failed")

    def _note_progress(
        self, plan: StepPlan, result: StepResult, times: "_TurnTimes"
    ) -> tuple[list[Sequence], list[Sequence]]:
        """Write times into the sequences; returns who left the queue, and who got a first token."""
        followers, self._followers = self._followers, []
        joined = [*plan.admitted, *followers]
        with_first_token = [sequence for leader in result.first_tokens for sequence in self._twins.members(leader)]
        for sequence in joined:
            sequence.admitted_seconds = times.began
        for sequence in with_first_token:
            sequence.first_token_seconds = times.stepped
        return joined, with_first_token

    def _report(
        self,
        plan: StepPlan,
        result: StepResult,
        num_rows: int,
        joined: list[Sequence],
        with_first_token: list[Sequence],
        times: "_TurnTimes",
    ) -> None:
        began, encoded, stepped = times
        self._departures.add(len(joined), stepped - began)
        if plan.admitted:
            self._pace.encoded(plan.num_padded_tokens, encoded - began)
        if num_rows:
            self._pace.stepped(stepped - encoded)
        self._listener.on_turn(
            TurnStats(
                encode_seconds=encoded - began if plan.admitted else 0.0,
                num_encoded=len(plan.admitted),
                num_followers=len(joined) - len(plan.admitted),
                encoded_tokens=plan.num_tokens,
                padded_tokens=plan.num_padded_tokens,
                step_seconds=stepped - encoded if num_rows else 0.0,
                batch_size=num_rows,
                num_generated=result.num_generated,
                queue_seconds=tuple(began - sequence.arrived_seconds for sequence in joined),
                first_token_seconds=tuple(stepped - sequence.arrived_seconds for sequence in with_first_token),
                num_waiting=len(self._waiting),
                num_running=self._decoder.batch.num_sequences,
                slots_used=self._decoder.batch.num_rows,
            )
        )

    def _count_failures(self, *, has_run: bool) -> None:
        self._num_failed_turns = 0 if has_run else self._num_failed_turns + 1
        if self._num_failed_turns >= _MAX_FAILED_TURNS:
            raise RuntimeError(f"{self._num_failed_turns} turns in a row failed; the log says why")


class _TurnTimes(NamedTuple):
    """When a turn began, was done encoding, and was done with its step."""

    began: float
    encoded: float
    stepped: float
