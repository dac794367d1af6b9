"""The engine: takes sequences in, runs them together turn by turn, and reports how each one ended."""

import itertools
import logging
import threading
import time
from collections.abc import Callable, Iterable
from collections.abc import Sequence as Sequence_
from typing import Protocol

from service.domain.errors import (
    Cancelled,
    DeadlineExceeded,
    EngineFailure,
    InvalidRequest,
    ServiceError,
    TooLong,
    TooMany,
    Unavailable,
)
from service.domain.origin import Origin
from service.domain.translation import FinishReason, Priority
from service.engine.admission import Admission
from service.engine.config import EngineConfig
from service.engine.integrity import expect
from service.engine.lane import Lane, Turn
from service.engine.niceness import set_back
from service.engine.roster import Roster
from service.engine.runner import Runner
from service.engine.scheduler import StepPlan
from service.engine.sequence import Sequence, SequenceProgress, SequenceStatus, SequenceUpdate
from service.engine.stats import EngineSnapshot, TurnStats
from service.engine.throughput import Throughput

__all__ = ["Engine", "EngineConfig", "EngineListener", "EngineSnapshot", "TurnStats"]

_log = logging.getLogger(__name__)

_NOBODY = StepPlan(())
_REPORT_AFTER = 16  # turns at the most: together they cost the CPU's caches less
_FAILED = "the engine has failed, and is being restarted"


class EngineListener(Protocol):
    """Hears from the engine, on the engine's threads; must be quick, thread-safe, and never raise."""

    def on_updates(self, updates: list[SequenceUpdate], progress: list[SequenceProgress]) -> None:
        """All terminal updates of one turn, and the progress of sequences that asked for it and go on.

        Of a sequence no progress comes after its terminal update. Must not wait for the engine. Should it raise all
        the same, the engine fails, and tells these updates once more.
        """
        ...

    def on_turn(self, stats: TurnStats) -> None:
        """A turn that ran something is over; its updates went out before. May come a few turns late."""
        ...

    def on_failure(self, error: BaseException) -> None:
        """The engine has failed and takes nothing until it is restarted; what was accepted fails right after this."""
        ...


class Engine:
    """Continuous batching: sequences join when slots are free and leave when they end; nobody waits for a batch.

    Each runner is a lane with rows and a thread of its own: lanes wait for nothing but the lock, under which they take
    sequences from one queue. Of sequences that ask for the same (`twins`), one is decoded and all get its answer, each
    by its own deadline. Every sequence that `submit` accepted gets exactly one terminal update, whatever happens.

    It starts once. Once it has failed, it may be restarted; once it was stopped, it stays so.
    """

    def __init__(
        self,
        runners: Sequence_[Runner],
        config: EngineConfig,
        listener: EngineListener,
        *,
        clock: Callable[[], float] = time.monotonic,
        full_turn_seconds: float = 0.0,
    ) -> None:
        """`full_turn_seconds` is how long a lane's turn takes with all of its rows in use, as far as it was tried; 0
        where it was not, and then nobody is refused for the length of the queue before it is known."""
        self._config = config
        self._listener = listener
        self._clock = clock
        self._runners = runners
        self._throughput = Throughput(len(runners), runners[0].spec.max_slots, full_turn_seconds)
        self._changed = threading.Condition()  # guards all that lanes share
        self._unavailable: str | None = "the engine has not started"
        self._failure: BaseException | None = None
        self._open_books()

    def _open_books(self) -> None:
        """Begin with nobody: rows, queue and threads are new."""
        config, clock = self._config, self._clock
        self._lanes = [
            Lane(runner, config.max_encode_tokens, clock, checks_integrity=config.checks_integrity)
            for runner in self._runners
        ]
        self._homes: dict[Sequence, Lane] = {}  # of sequences that have slots
        self._roster = Roster(config.max_waiting, clock, self._throughput.expected_rows)
        self._admission = Admission(self._roster, self._throughput, config.max_waiting, config.max_queue_seconds)
        self._aborted: list[Sequence] = []
        self._threads = [
            threading.Thread(target=self._run, args=(lane,), name=f"engine-{number}", daemon=True)
            for number, lane in enumerate(self._lanes)
        ]

    @property
    def bytes_per_slot(self) -> int:
        """What the keys and values of one row take of the device's memory, reserved for its longest."""
        return self._lanes[0].runner.spec.bytes_per_slot

    @property
    def failure(self) -> BaseException | None:
        """What the engine died of, until it is restarted or stopped; `None` if it did not."""
        return self._failure

    @property
    def has_threads(self) -> bool:
        """Whether a thread of the engine lives: after a failure, it is about to end, or hangs in native code."""
        return any(thread.is_alive() for thread in self._threads)

    def start(self) -> None:
        """Start the lanes' threads. An engine starts once."""
        for runner in self._runners:
            runner.reset()
        self._start_threads()

    def restart(self, prove: Callable[[Sequence_[Runner], EngineConfig], object]) -> None:
        """Start anew after a failure: on the same runners and with empty books, once `prove` has found that they work.

        Raises:
            RuntimeError: the engine has not failed, was stopped meanwhile, or one of its old threads lives.
            Exception: what `prove` raised; the engine stays as it was.
        """
        self._check_can_restart()
        prove(self._runners, self._config)
        for runner in self._runners:
            runner.reset()
        with self._changed:
            self._check_can_restart()
            self._open_books()
            self._start_threads()

    def check_queue(self, priority: Priority, origin: Origin) -> None:
        """Refuse a call from there that comes now before any work is put into it, if it would wait too long.
        Thread-safe, cheap.

        Raises:
            Overloaded: it would; carries an estimate of when it will not.
            Unavailable: the engine has stopped or failed.
        """
        self._check_available()
        self._admission.check_queue(self._num_free, priority, origin, self._clock())

    def submit(self, sequences: Sequence_[Sequence]) -> None:
        """Take the sequences of one call in, all or none; all are of one priority and origin. Thread-safe.

        Raises:
            InvalidRequest: one of them can never run here: too long, or too wide a beam; or they are too many.
            Overloaded: there is too much work before them, be it for their deadline; carries an estimate of when there
                will be less.
            TooLate: they can't be done by their deadline, whatever else there is to do.
            Unavailable: the engine has stopped or failed.
        """
        self._check(sequences)
        with self._changed:
            self._check_available()
            if any(sequence in self._roster for sequence in sequences):
                raise ValueError("a sequence was submitted twice")
            num_rows = sum(lane.batch.num_rows for lane in self._lanes) // len(self._lanes)
            self._admission.check(sequences, self._num_free, num_rows, self._clock())
            try:
                self._roster.admit(sequences)
            except Exception as error:  # half of them may be in the books
                failure = error
            else:
                self._changed.notify_all()
                return
        _log.critical("the engine's books can't be trusted any more", exc_info=failure)
        self.fail(failure)
        raise Unavailable(f"Not taken: {_FAILED}; try another server, or again soon.")

    def abort(self, sequences: Iterable[Sequence]) -> None:
        """Give sequences up: their slots are free within two steps. Thread-safe, idempotent."""
        with self._changed:
            self._aborted.extend(sequence for sequence in sequences if sequence in self._roster)
            self._changed.notify_all()

    def fail(self, error: BaseException, reason: str = _FAILED) -> None:
        """End the runs under way, take nothing any more and fail what was accepted with `Unavailable`, which says why.

        Thread-safe; does not wait for the threads. Does nothing to an engine that has failed before or was stopped.
        """
        with self._changed:
            is_first = self._unavailable is None
            if is_first:
                self._unavailable, self._failure = reason, error
            self._changed.notify_all()
        try:
            if is_first:
                for runner in self._runners:
                    runner.terminate()
                self._listener.on_failure(error)
        finally:
            self._fail_everything()

    def stop(self, timeout_seconds: float) -> bool:
        """Fail what is left with `Unavailable` and end the threads; runs under way are terminated. Idempotent.

        Returns:
            Whether the threads ended in time. If not, one hangs in native code; its sequences are failed from here.
        """
        give_up_seconds = time.monotonic() + timeout_seconds
        with self._changed:
            self._unavailable, self._failure = "the engine has stopped", None
            self._changed.notify_all()
        for runner in self._runners:
            runner.terminate()
        for thread in self._threads:
            if thread.is_alive():
                thread.join(max(give_up_seconds - time.monotonic(), 0.0))
        has_ended = not self.has_threads
        if not has_ended:
            self._fail_everything()
        return has_ended

    def snapshot(self) -> EngineSnapshot:
        """Where the engine stands. Thread-safe; the numbers may be of slightly different moments."""
        max_slots = sum(lane.batch.max_slots for lane in self._lanes)
        began = [moment for lane in self._lanes if (moment := lane.turn_began) is not None] if self.has_threads else []
        turn_seconds = max(self._clock() - min(began), 0.0) if began else 0.0
        if self._unavailable is not None:  # all have been answered, whatever the books say
            return EngineSnapshot(0, 0, 0.0, 0, 0, max_slots, is_alive=False, turn_seconds=turn_seconds)
        return EngineSnapshot(
            num_waiting=self._roster.num_waiting,
            num_waiting_tokens=self._roster.num_waiting_tokens,
            wait_seconds=self._admission.wait_seconds(self._num_free),
            num_running=sum(lane.batch.num_sequences for lane in self._lanes),
            slots_used=sum(lane.batch.num_rows for lane in self._lanes),
            max_slots=max_slots,
            is_alive=True,
            turn_seconds=turn_seconds,
        )

    def _start_threads(self) -> None:
        self._unavailable = self._failure = None
        for thread in self._threads:
            thread.start()

    def _check_can_restart(self) -> None:
        if self._failure is None:
            raise RuntimeError("only an engine that has failed, and was not stopped, is restarted")
        if self.has_threads:
            raise RuntimeError("a thread of the engine that has failed has not ended")

    @property
    def _num_free(self) -> int:
        return sum(lane.batch.num_free for lane in self._lanes)

    def _check_available(self) -> None:
        if self._unavailable is not None:
            raise Unavailable(f"Not taking work: {self._unavailable}; try another server, or again soon.")

    def _check(self, sequences: Sequence_[Sequence]) -> None:
        spec = self._lanes[0].runner.spec
        most_slots = max(lane.batch.max_slots for lane in self._lanes)
        if len(sequences) > self._config.max_waiting:
            raise TooMany(
                f"The call has {len(sequences)} segments to translate, each sample of one counted; at most "
                f"{self._config.max_waiting} can wait at once. Send less text per call.",
                "texts",
            )
        if len(set(sequences)) != len(sequences):
            raise ValueError("a sequence was submitted twice")
        for sequence in sequences:
            if sequence.status is not SequenceStatus.WAITING:
                raise ValueError(f"a sequence was submitted that is {sequence.status.value} already")
            length, slots, given = len(sequence.source_ids), sequence.num_slots, len(sequence.output_prefix_ids)
            room = spec.kv_capacity - len(sequence.target_prefix_ids)
            if not 1 <= length <= spec.max_source_tokens:
                raise TooLong(
                    f"A source has {length} tokens; allowed is 1 to {spec.max_source_tokens}. Split the text."
                )
            if not 1 <= sequence.options.max_output_tokens <= room:
                raise InvalidRequest(
                    f"options.max_output_tokens is {sequence.options.max_output_tokens}; allowed is 1 to {room}."
                )
            if given and given >= sequence.options.max_output_tokens:
                raise InvalidRequest(
                    f"A target prefix has {given} tokens; allowed is up to {sequence.options.max_output_tokens - 1}, "
                    "less than options.max_output_tokens. Shorten the prefix.",
                    "target_prefixes",
                )
            if not 1 <= slots <= most_slots:
                raise InvalidRequest(f"options.beam_size is {slots}; this server allows 1 to {most_slots}.")

    # The loop: everything below runs on a lane's thread, but for `_fail_everything`.

    def _run(self, lane: Lane) -> None:
        set_back()
        try:
            while (plan := self._next(lane)) is not None:
                if plan.admitted or lane.batch.num_rows:
                    turn = lane.run(plan)
                    self._conclude(lane, turn)
                    lane.count_failures(turn)
        except BaseException as error:
            _log.critical("the engine's loop died", exc_info=error)
            self.fail(error)
        else:
            self._fail_everything()

    def _next(self, lane: Lane) -> StepPlan | None:
        """Take in what was submitted and aborted, drop the expired, and choose who joins; `None` when stopping.

        Waits while there is nothing for this lane to do.
        """
        with self._changed:
            lane.turn_began = None
            while not self._has_work(lane):
                self._changed.wait()
            lane.turn_began = self._clock()
            if self._unavailable is not None:
                return None
            self._drop_unwanted(lane.turn_began)
            lane.remove_doomed()
            plan = self._scheduled(lane)
            if self._config.checks_integrity:
                self.check_integrity(lane, joining=plan.admitted)
            updates = self._roster.take_updates()
        if updates:  # who was dropped need not wait for the step
            self._tell(updates, [])
        return plan

    def _has_work(self, lane: Lane) -> bool:
        if self._unavailable is not None or self._aborted:
            return True
        return bool(lane.batch.num_rows or lane.doomed or (self._roster.num_waiting and self._share(lane) > 0))

    def _drop_unwanted(self, now_seconds: float) -> None:
        if self._aborted:
            aborted, self._aborted = self._aborted, []
            for sequence in aborted:
                self._drop(sequence, Cancelled("The caller gave the call up."), FinishReason.CANCELLED)
        for sequence in self._roster.pop_expired(now_seconds):
            self._drop(sequence, DeadlineExceeded("The call's deadline passed."), FinishReason.DEADLINE)

    def _drop(self, sequence: Sequence, error: ServiceError, reason: FinishReason) -> None:
        leader = self._roster.drop(sequence, error, reason)
        if leader is not None:
            self._homes.pop(leader).doomed.append(leader)
            self._changed.notify_all()  # its lane may be about to wait

    def _scheduled(self, lane: Lane) -> StepPlan:
        num_waiting, num_free = self._roster.num_waiting, lane.batch.num_free
        if not num_waiting or not num_free:
            return _NOBODY
        share = self._share(lane)
        candidates = self._roster.candidates()
        if share < num_waiting and share <= num_free:
            # The other lanes have room for the rest: every second one, say, makes for lanes that are done together.
            candidates = itertools.islice(candidates, 0, None, len(self._lanes))
        plan = lane.schedule(candidates, share)
        if plan.admitted:
            self._roster.start(plan.admitted)
            self._homes.update(dict.fromkeys(plan.admitted, lane))
        return plan

    def _share(self, lane: Lane) -> int:
        """How many of those who wait this lane may take, so that all lanes have about as many."""
        total = self._roster.num_waiting + sum(each.batch.num_sequences for each in self._lanes)
        return -(-total // len(self._lanes)) - lane.batch.num_sequences

    def _conclude(self, lane: Lane, turn: Turn) -> None:
        """Give out what a turn led to."""
        result = turn.result
        with self._changed:
            joined = [*turn.plan.admitted, *self._roster.take_followers()]
            for sequence in joined:
                sequence.admitted_seconds, sequence.encoded_seconds = turn.began, turn.encoded
            with_first_token = [
                sequence
                for leader in result.first_tokens
                if leader in self._homes
                for sequence in self._roster.followed_by(leader)
            ]
            for sequence in with_first_token:
                sequence.first_token_seconds = turn.stepped
            for leader, hypotheses in result.finished:
                self._throughput.ended(len(leader.source_ids), len(hypotheses[0].token_ids) + 1)
                if self._leaves(lane, leader):
                    self._roster.finish(leader, hypotheses)
            for leader, error in (*turn.refused, *result.failed):
                if self._leaves(lane, leader):
                    self._roster.fail(leader, self._explained(error))
            if turn.num_rows and lane.turn_began is not None and not result.has_run_failed:
                self._throughput.turned(turn.num_rows, (self._clock() - lane.turn_began) / result.num_steps)
            if self._config.checks_integrity:
                self.check_integrity(lane)
            updates = self._roster.take_updates()
            progress = self._progress(lane)
            if progress:  # told under the lock, so that another lane can't end one of these before it is heard of
                self._tell(updates, progress)
        if updates and not progress:
            self._tell(updates, [])
        has_encoded = bool(turn.plan.admitted)
        lane.unreported.append(
            TurnStats(
                ended_seconds=turn.stepped,
                encode_seconds=turn.encoded - turn.began if has_encoded else 0.0,
                num_encoded=len(turn.plan.admitted),
                num_followers=len(joined) - len(turn.plan.admitted),
                encoded_tokens=turn.plan.num_tokens if has_encoded else 0,
                padded_tokens=turn.plan.num_padded_tokens if has_encoded else 0,
                step_seconds=turn.stepped - turn.encoded if turn.num_rows else 0.0,
                batch_size=turn.num_rows,
                num_generated=result.num_generated,
                queue_seconds=[max(turn.began - sequence.arrived_seconds, 0.0) for sequence in joined],
                first_token_seconds=[turn.stepped - sequence.arrived_seconds for sequence in with_first_token],
            )
        )
        if updates or len(lane.unreported) >= _REPORT_AFTER or not lane.batch.num_rows:
            for stats in lane.unreported:
                self._listener.on_turn(stats)
            lane.unreported.clear()

    def _tell(self, updates: list[SequenceUpdate], progress: list[SequenceProgress]) -> None:
        try:
            self._listener.on_updates(updates, progress)
        except BaseException:
            with self._changed:
                self._roster.put_back(updates)  # `_fail_everything` will tell them
            raise

    def check_integrity(self, lane: Lane, joining: Iterable[Sequence] = ()) -> None:
        """Compare the books that lanes share with each other and with those of `lane`, whose thread this is.

        Raises:
            IntegrityError: they contradict each other; says where.
        """
        if self._unavailable is not None:  # all have been told, whatever the books say
            return
        self._roster.check_integrity()
        leaders = self._roster.leaders
        is_right = len(leaders) == len(self._homes) and self._homes.keys() == set(leaders)
        expect(is_right, f"{len(leaders)} sequences are decoded, {len(self._homes)} have a home")
        lane.check_integrity([each for each, home in self._homes.items() if home is lane], list(joining))

    def _progress(self, lane: Lane) -> list[SequenceProgress]:
        return [
            each
            for leader in self._roster.watched
            if self._homes[leader] is lane
            for each in self._roster.progress(leader, lane.decoder.certain(leader))
        ]

    def _leaves(self, lane: Lane, leader: Sequence) -> bool:
        """Note that a sequence has left its rows; false if it was given up meanwhile, so that nobody is to be told."""
        if leader in lane.doomed:
            lane.doomed.remove(leader)
            return False
        del self._homes[leader]
        return True

    def _explained(self, error: EngineFailure) -> ServiceError:
        if self._unavailable is not None:
            return Unavailable(f"Not finished: {self._unavailable}.")  # the run failed because `stop` ended it
        return error

    def _fail_everything(self) -> None:
        with self._changed:
            self._roster.fail_all(Unavailable(f"Not finished: {self._unavailable}; try another server, or again."))
            updates = self._roster.take_updates()
        try:
            if updates:
                self._listener.on_updates(updates, [])
        except Exception:
            _log.exception("the listener failed while everything was being failed")
