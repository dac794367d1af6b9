"""The engine: accepts sequences, runs them together turn by turn, and reports how each one ended."""

import itertools
import logging
import threading
import time
from collections.abc import Callable, Iterable
from collections.abc import Sequence as Sequence_
from typing import Protocol

from service.domain.call import Origin
from service.domain.errors import (
    Cancelled,
    DeadlineExceeded,
    EngineFailure,
    InvalidRequest,
    Path,
    Public,
    ServiceError,
    TooLong,
    TooMany,
    Unavailable,
)
from service.domain.translation import FinishReason, Priority
from service.engine.admission import Admission
from service.engine.config import EngineConfig
from service.engine.integrity import expect
from service.engine.niceness import lower_priority
from service.engine.requests import Requests
from service.engine.runner import Runner
from service.engine.scheduler import StepPlan
from service.engine.sequence import Sequence, SequenceProgress, SequenceStatus, SequenceUpdate
from service.engine.stats import EngineSnapshot, TurnStats
from service.engine.throughput import Throughput
from service.engine.worker import Turn, Worker

__all__ = ["Engine", "EngineConfig", "EngineListener", "EngineSnapshot", "TurnStats"]

_log = logging.getLogger(__name__)

_NOBODY = StepPlan(())
_MAX_OUTPUT_TOKENS = Path("options", "max_output_tokens")
_REPORT_AFTER = 16  # turns at most: reporting them together is easier on the CPU's caches
_FAILED = "the engine has failed and is being restarted"


class EngineListener(Protocol):
    """Receives the engine's events on the engine's threads; must be fast and thread-safe, and must not raise."""

    def on_updates(self, updates: list[SequenceUpdate], progress: list[SequenceProgress]) -> None:
        """Receive all terminal updates of one turn, and the progress of running sequences that requested it.

        No progress of a sequence follows its terminal update. Must not wait for the engine. If it raises anyway, the
        engine fails and delivers these updates once more.
        """
        ...

    def on_turn(self, stats: TurnStats) -> None:
        """Receive the statistics of a turn that ran something, after its updates, perhaps a few turns late."""
        ...

    def on_failure(self, error: BaseException) -> None:
        """Handle an engine failure: accepted sequences fail right after this; no more are accepted until a restart."""
        ...


class Engine:
    """Continuous batching: sequences join when slots are free and leave when they end, without waiting for a batch.

    Each worker has a runner, rows and a thread of its own. Workers share only the lock under which they take sequences
    from one queue. Of identical sequences (`coalescing`) one is decoded and all get its answer, each by its own
    deadline. Every sequence accepted by `submit` gets exactly one terminal update, whatever happens.

    An engine starts once. After a failure it may be restarted; once stopped, it stays stopped.
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
        """Create an engine that is not started yet.

        `full_turn_seconds` is the measured duration of a worker's turn with all of its rows in use; 0 if it was not
        measured: then no call is rejected for the length of the queue until the engine has measured it.
        """
        self._config = config
        self._listener = listener
        self._clock = clock
        self._runners = runners
        self._throughput = Throughput(len(runners), runners[0].spec.max_slots, full_turn_seconds)
        self._changed = threading.Condition()  # guards all state shared by workers
        self._unavailable: str | None = "the engine has not started"
        self._failure: BaseException | None = None
        self._open_books()

    def _open_books(self) -> None:
        """Initialize the state: empty rows and queue, new threads."""
        config, clock = self._config, self._clock
        self.workers = [
            Worker(runner, config.max_encode_tokens, clock, checks_integrity=config.checks_integrity)
            for runner in self._runners
        ]
        self.worker_of: dict[Sequence, Worker] = {}  # for sequences that have slots
        self.requests = Requests(config.max_waiting, clock, self._throughput.expected_rows)
        self._admission = Admission(self.requests, self._throughput, config.max_waiting, config.max_queue_seconds)
        self._aborted: list[Sequence] = []
        self._threads = [
            threading.Thread(target=self._run, args=(worker,), name=f"engine-{number}", daemon=True)
            for number, worker in enumerate(self.workers)
        ]

    @property
    def bytes_per_slot(self) -> int:
        """Return the device memory reserved for the keys and values of one row at its maximum length."""
        return self.workers[0].runner.spec.bytes_per_slot

    @property
    def failure(self) -> BaseException | None:
        """Return the error that made the engine fail, until it is restarted or stopped; `None` if it has not failed."""
        return self._failure

    @property
    def has_threads(self) -> bool:
        """Return whether a thread of the engine is alive: after a failure, about to end or hanging in native code."""
        return any(thread.is_alive() for thread in self._threads)

    def start(self) -> None:
        """Start the workers' threads. An engine starts once."""
        self.open()
        self._start_threads()

    def open(self) -> None:
        """Accept work without starting threads, for tests that run each worker's turns (`turn`) themselves."""
        for runner in self._runners:
            runner.reset()
        self._unavailable = self._failure = None

    def restart(self, prove: Callable[[Sequence_[Runner], EngineConfig], object]) -> None:
        """Restart after a failure, on the same runners and with empty state, once `prove` has verified that they work.

        Raises:
            RuntimeError: the engine has not failed, was stopped meanwhile, or one of its old threads is alive.
            Exception: raised by `prove`; the engine stays failed.
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
        """Reject a new call from this origin before any work is spent on it if it would wait too long. Thread-safe.

        Raises:
            Overloaded: it would; carries an estimate of when it would not.
            Unavailable: the engine has stopped or failed.
        """
        self._check_available()
        self._admission.check_queue(self._num_free, priority, origin, self._clock())

    def submit(self, sequences: Sequence_[Sequence]) -> None:
        """Accept the sequences of one call, all or none; all have the same priority and origin. Thread-safe.

        Raises:
            InvalidRequest: one of them can never run here because it is too long or its beam too wide, or there are too
                many.
            Overloaded: there is too much work ahead of them, in general or for their deadline; carries an estimate of
                when there will be less.
            TooLate: they can't meet their deadline even on an idle server.
            Unavailable: the engine has stopped or failed.
        """
        self._check(sequences)
        with self._changed:
            self._check_available()
            if any(sequence in self.requests for sequence in sequences):
                raise ValueError("a sequence was submitted twice")
            num_rows = sum(worker.batch.num_rows for worker in self.workers) // len(self.workers)
            self._admission.check(sequences, self._num_free, num_rows, self._clock())
            try:
                self.requests.admit(sequences)
            except Exception as error:  # the state may be half updated
                failure = error
            else:
                self._changed.notify_all()
                return
        _log.critical("the engine's state may be inconsistent", exc_info=failure)
        self.fail(failure)
        raise self._not_accepted(_FAILED)

    def abort(self, sequences: Iterable[Sequence]) -> None:
        """Give up sequences: their slots are free within two steps. Thread-safe, idempotent."""
        with self._changed:
            self._aborted.extend(sequence for sequence in sequences if sequence in self.requests)
            self._changed.notify_all()

    def fail(self, error: BaseException, reason: str = _FAILED) -> None:
        """Terminate the runs under way, accept no more work, and fail accepted sequences with `Unavailable` and
        `reason`.

        Thread-safe; does not wait for the threads. Has no effect on an engine that has already failed or was stopped.
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
        """Fail what is left with `Unavailable`, terminate the runs under way and end the threads. Idempotent.

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
        """Return the engine's current state. Thread-safe; the values may be from slightly different moments."""
        max_slots = sum(worker.batch.max_slots for worker in self.workers)
        began = (
            [moment for worker in self.workers if (moment := worker.turn_began) is not None] if self.has_threads else []
        )
        turn_seconds = max(self._clock() - min(began), 0.0) if began else 0.0
        if self._unavailable is not None:  # all sequences have their updates, whatever the state still holds
            return EngineSnapshot(0, 0, 0.0, 0, 0, max_slots, is_alive=False, turn_seconds=turn_seconds)
        return EngineSnapshot(
            num_waiting=len(self.requests.waiting),
            num_waiting_tokens=self.requests.waiting.num_tokens,
            wait_seconds=self._admission.wait_seconds(self._num_free),
            num_running=sum(worker.batch.num_sequences for worker in self.workers),
            slots_used=sum(worker.batch.num_rows for worker in self.workers),
            max_slots=max_slots,
            is_alive=True,
            turn_seconds=turn_seconds,
        )

    def held(self) -> dict[str, int]:
        """Return the sizes of what the engine keeps for live sequences, by name; all 0 if there are none. For tests."""
        coalescing = self.requests.coalescing
        return {
            "live": len(self.requests.live),
            "queued": len(self.requests.waiting),
            "coalesced, waiting": len(coalescing.waiting),
            "coalesced, running": len(coalescing.running),
            "coalesced, watched": len(coalescing.watched),
            "decoded by a worker": len(self.worker_of),
            "abandoned": sum(len(worker.abandoned) for worker in self.workers),
            "rows": sum(worker.batch.num_rows for worker in self.workers),
            "searches": sum(worker.search.num_kept for worker in self.workers),
        }

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
        return sum(worker.batch.num_free for worker in self.workers)

    def _check_available(self) -> None:
        if self._unavailable is not None:
            raise self._not_accepted(self._unavailable)

    @staticmethod
    def _not_accepted(reason: str) -> Unavailable:
        advice = "try another server, or try again soon"
        return Unavailable("the call was not accepted: {reason}", reason=Public(reason), advice=advice)

    def _check(self, sequences: Sequence_[Sequence]) -> None:
        spec = self.workers[0].runner.spec
        most_slots = max(worker.batch.max_slots for worker in self.workers)
        if len(sequences) > self._config.max_waiting:
            raise TooMany(
                "{path} have {number} segments, counting each sample of one",
                "texts",
                number=len(sequences),
                allowed=f"{self._config.max_waiting} per call",
                advice="send less text per call",
            )
        if len(set(sequences)) != len(sequences):
            raise ValueError("a sequence was submitted twice")
        for sequence in sequences:
            if sequence.status is not SequenceStatus.WAITING:
                raise ValueError(f"a sequence was submitted that is {sequence.status.value} already")
            length, slots, given = len(sequence.source_ids), sequence.num_slots, len(sequence.output_prefix_ids)
            room = spec.kv_capacity - len(sequence.target_prefix_ids)
            if not 1 <= length <= spec.max_source_tokens:
                allowed = f"1 to {spec.max_source_tokens}"
                raise TooLong("a source has {number} tokens", number=length, allowed=allowed, advice="split the text")
            if not 1 <= sequence.options.max_output_tokens <= room:
                value = sequence.options.max_output_tokens
                raise InvalidRequest("{path} is {value}", _MAX_OUTPUT_TOKENS, value=value, allowed=f"1 to {room}")
            if given and given >= sequence.options.max_output_tokens:
                raise InvalidRequest(
                    "a target prefix has {number} tokens, and {limit} is {value}",
                    "target_prefixes",
                    number=given,
                    limit=_MAX_OUTPUT_TOKENS,
                    value=sequence.options.max_output_tokens,
                    allowed=f"up to {sequence.options.max_output_tokens - 1}",
                    advice="shorten the prefix",
                )
            if not 1 <= slots <= most_slots:
                allowed = f"1 to {most_slots} on this server"
                raise InvalidRequest("{path} is {value}", Path("options", "beam_size"), value=slots, allowed=allowed)

    # The loop: everything below runs on a worker's thread, except `_fail_everything`.

    def turn(self, worker: Worker) -> bool:
        """Run one turn of a worker, once there is something to do; returns whether there may be another.

        Raises:
            RuntimeError: this turn and the last ones before it all failed.
        """
        plan = self.begin_turn(worker)
        if plan is not None and (plan.admitted or worker.batch.num_rows):
            turn = worker.run(plan)
            self.end_turn(worker, turn)
            worker.count_failures(turn)
        return plan is not None

    def _run(self, worker: Worker) -> None:
        lower_priority()
        try:
            while self.turn(worker):
                pass
        except BaseException as error:
            _log.critical("the engine's loop died", exc_info=error)
            self.fail(error)
        else:
            self._fail_everything()

    def begin_turn(self, worker: Worker) -> StepPlan | None:
        """Process submissions and aborts, drop expired sequences, and choose which join; returns `None` when stopping.

        Waits while there is nothing for this worker to do.
        """
        with self._changed:
            worker.turn_began = None
            while not self.has_work(worker):
                self._changed.wait()
            worker.turn_began = self._clock()
            if self._unavailable is not None:
                return None
            self._drop_unwanted(worker.turn_began)
            worker.remove_abandoned()
            plan = self._scheduled(worker)
            if self._config.checks_integrity:
                self.check_integrity(worker, joining=plan.admitted)
            updates = self.requests.take_updates()
        if updates:  # dropped sequences need not wait for the step
            self._tell(updates, [])
        return plan

    def has_work(self, worker: Worker) -> bool:
        """Return whether a turn of this worker would have anything to do."""
        if self._unavailable is not None or self._aborted:
            return True
        return bool(
            worker.batch.num_rows or worker.abandoned or (len(self.requests.waiting) and self._share(worker) > 0)
        )

    def _drop_unwanted(self, now_seconds: float) -> None:
        if self._aborted:
            aborted, self._aborted = self._aborted, []
            for sequence in aborted:
                self._drop(sequence, Cancelled("the caller cancelled the call."), FinishReason.CANCELLED)
        for sequence in self.requests.deadlines.pop_expired(now_seconds):
            self._drop(sequence, DeadlineExceeded("the call's deadline passed."), FinishReason.DEADLINE)

    def _drop(self, sequence: Sequence, error: ServiceError, reason: FinishReason) -> None:
        leader = self.requests.drop(sequence, error, reason)
        if leader is not None:
            self.worker_of.pop(leader).abandoned.append(leader)
            self._changed.notify_all()  # its worker may be about to wait

    def _scheduled(self, worker: Worker) -> StepPlan:
        num_waiting, num_free = len(self.requests.waiting), worker.batch.num_free
        if not num_waiting or not num_free:
            return _NOBODY
        share = self._share(worker)
        candidates = self.requests.candidates()
        if share < num_waiting and share <= num_free:
            # The other workers have room for the rest: taking, for example, every second one evens out when workers
            # finish.
            candidates = itertools.islice(candidates, 0, None, len(self.workers))
        plan = worker.schedule(candidates, share)
        if plan.admitted:
            self.requests.start(plan.admitted)
            self.worker_of.update(dict.fromkeys(plan.admitted, worker))
        return plan

    def _share(self, worker: Worker) -> int:
        """Return how many waiting sequences this worker may take so that all workers run about equally many."""
        total = len(self.requests.waiting) + sum(each.batch.num_sequences for each in self.workers)
        return -(-total // len(self.workers)) - worker.batch.num_sequences

    def end_turn(self, worker: Worker, turn: Turn) -> None:
        """Record and report the results of a turn."""
        result = turn.result
        with self._changed:
            joined = [*turn.plan.admitted, *self.requests.take_followers()]
            for sequence in joined:
                sequence.admitted_seconds, sequence.encoded_seconds = turn.began, turn.encoded
            with_first_token = [
                sequence
                for leader in result.first_tokens
                if leader in self.worker_of
                for sequence in self.requests.coalescing.members(leader)
            ]
            for sequence in with_first_token:
                sequence.first_token_seconds = turn.stepped
            for leader, hypotheses in result.finished:
                self._throughput.ended(len(leader.source_ids), len(hypotheses[0].token_ids) + 1)
                if self._leaves(worker, leader):
                    self.requests.finish(leader, hypotheses)
            for leader, error in (*turn.refused, *result.failed):
                if self._leaves(worker, leader):
                    self.requests.fail(leader, self._explained(error))
            if turn.num_rows and worker.turn_began is not None and not result.has_run_failed:
                self._throughput.turned(turn.num_rows, (self._clock() - worker.turn_began) / result.num_steps)
            if self._config.checks_integrity:
                self.check_integrity(worker)
            updates = self.requests.take_updates()
            progress = self._progress(worker)
            if progress:  # under the lock, so that no other worker ends one of these before its progress is reported
                self._tell(updates, progress)
        if updates and not progress:
            self._tell(updates, [])
        has_encoded = bool(turn.plan.admitted)
        worker.unreported.append(
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
        if updates or len(worker.unreported) >= _REPORT_AFTER or not worker.batch.num_rows:
            for stats in worker.unreported:
                self._listener.on_turn(stats)
            worker.unreported.clear()

    def _tell(self, updates: list[SequenceUpdate], progress: list[SequenceProgress]) -> None:
        try:
            self._listener.on_updates(updates, progress)
        except BaseException:
            with self._changed:
                self.requests.put_back(updates)  # `_fail_everything` will deliver them
            raise

    def check_integrity(self, worker: Worker, joining: Iterable[Sequence] = ()) -> None:
        """Check the state shared by workers, and its consistency with that of `worker`, on whose thread this runs.

        Raises:
            IntegrityError: the state is inconsistent; says where.
        """
        if self._unavailable is not None:  # all sequences have their updates, whatever the state still holds
            return
        self.requests.check_integrity()
        leaders = self.requests.coalescing.leaders
        is_right = len(leaders) == len(self.worker_of) and self.worker_of.keys() == set(leaders)
        expect(is_right, f"{len(leaders)} sequences are decoded, {len(self.worker_of)} are assigned to workers")
        worker.check_integrity([each for each, home in self.worker_of.items() if home is worker], list(joining))

    def _progress(self, worker: Worker) -> list[SequenceProgress]:
        return [
            each
            for leader in self.requests.coalescing.watched
            if self.worker_of[leader] is worker
            for each in self.requests.progress(leader, worker.certain(leader))
        ]

    def _leaves(self, worker: Worker, leader: Sequence) -> bool:
        """Record that a sequence has left its rows; returns false if it was given up meanwhile and needs no update."""
        if leader in worker.abandoned:
            worker.abandoned.remove(leader)
            return False
        del self.worker_of[leader]
        return True

    def _explained(self, error: EngineFailure) -> ServiceError:
        if self._unavailable is not None:
            return self._not_finished()  # the run failed because `stop` terminated it
        return error

    def _not_finished(self) -> Unavailable:
        advice, reason = "try another server, or try again", Public(self._unavailable or "")
        return Unavailable("the call was not finished: {reason}", reason=reason, advice=advice)

    def _fail_everything(self) -> None:
        with self._changed:
            self.requests.fail_all(self._not_finished())
            updates = self.requests.take_updates()
        try:
            if updates:
                self._listener.on_updates(updates, [])
        except Exception:
            _log.exception("the listener failed while all sequences were being failed")
