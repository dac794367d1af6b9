"""The engine: accepts sequences, runs them together turn by turn, and reports how each one ended."""

import itertools
import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from collections.abc import Sequence as Sequence_

from service.domain.call import Origin
from service.domain.errors import EngineFailure, Public, ServiceError, Unavailable
from service.domain.translation import FinishReason, Priority
from service.engine.admission import Admission, check_possible
from service.engine.config import EngineConfig
from service.engine.costs import Costs
from service.engine.cpus import lower_priority, show_thread_name
from service.engine.integrity import expect
from service.engine.reports import EngineListener, EngineSnapshot
from service.engine.request_queue import RequestQueue
from service.engine.runner import Runner
from service.engine.scheduler import StepPlan
from service.engine.sequence import Sequence, SequenceProgress, SequenceUpdate
from service.engine.worker import Turn, Worker

_log = logging.getLogger(__name__)

_FAILED = "the engine has failed and is being restarted"
_NOBODY = StepPlan(())
_REPORT_AFTER = 16  # turns at most: reporting them together is easier on the CPU's caches
_CHECKED_AT_ONCE = 16  # requests per integrity check, on average


class Engine:
    """Continuous batching: sequences join when slots are free and leave when they end, without waiting for a batch.

    Each worker has a runner, rows and a thread of its own. One lock guards all else: the queue from which workers take
    sequences, who is assigned to which worker, and the costs. Every sequence accepted by `submit` gets exactly one
    terminal update, whatever happens.

    An engine starts once. After a failure it may be restarted; once stopped, it stays stopped.
    """

    def __init__(
        self,
        runners: Sequence_[Runner],
        config: EngineConfig,
        listener: EngineListener,
        *,
        clock: Callable[[], float] = time.monotonic,
        step_seconds: Mapping[int, float] | None = None,
    ) -> None:
        """Create an engine that is not started yet.

        `step_seconds` are measured durations of a worker's step by the number of its rows, all of them included. If
        they were not measured, no call is rejected for the length of the queue until the engine has measured a step.
        """
        self._config = config
        self.listener = listener
        self._clock = clock
        self._runners = runners
        self.costs = Costs(len(runners), max(runner.spec.max_slots for runner in runners), step_seconds)
        self._lock = threading.RLock()  # entered in C, unlike a condition
        self._changed = threading.Condition(self._lock)
        self._failure: BaseException | None = None
        self._reset("the engine has not started")

    def _reset(self, unavailable: str | None) -> None:
        """Initialize the state: empty rows and queue, new threads; `unavailable` says why it takes no work yet."""
        config, costs = self._config, self.costs
        self._unavailable = unavailable
        self.workers = [
            Worker(runner, costs, config.max_encode_tokens, self._clock, checks_integrity=config.checks_integrity)
            for runner in self._runners
        ]
        self.queue = RequestQueue(config.max_waiting, self._clock, costs.expected_rows)
        self._admission = Admission(self.queue, costs, config.max_waiting, config.max_queue_seconds)
        self._checks_until_due = 0
        self._threads = [
            threading.Thread(target=self.run, args=(worker,), name=f"engine-{number}", daemon=True)
            for number, worker in enumerate(self.workers)
        ]

    @property
    def bytes_per_slot(self) -> int:
        return self._runners[0].spec.bytes_per_slot

    @property
    def can_change_scores(self) -> bool:
        return self._runners[0].spec.has_logits

    @property
    def failure(self) -> BaseException | None:
        """Return the error that made the engine fail, until it is restarted or stopped; `None` if it has not failed."""
        return self._failure

    @property
    def has_threads(self) -> bool:
        """Return whether a thread of the engine is alive: after a failure, about to end or hanging in native code."""
        return any(thread.is_alive() for thread in self._threads)

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
            num_waiting=self.queue.num_waiting,
            num_waiting_tokens=self.queue.waiting.num_tokens,
            wait_seconds=self._admission.wait_seconds(self._num_free),
            num_running=sum(worker.batch.num_sequences for worker in self.workers),
            slots_used=sum(worker.batch.num_rows for worker in self.workers),
            max_slots=max_slots,
            is_alive=True,
            turn_seconds=turn_seconds,
        )

    # From its start to its end.

    def start(self) -> None:
        """Start the workers' threads. An engine starts once."""
        self.open()
        self._start_threads()

    def open(self) -> None:
        """Accept work without starting threads, for tests that run each worker's turns (`run_turn`) themselves."""
        for runner in self._runners:
            runner.reset()
        self._unavailable = self._failure = None

    def restart(self, prove: Callable[[Sequence_[Runner], EngineConfig], object]) -> None:
        """Restart after a failure, on the same runners and with empty state, once `prove` has verified them."""
        self._check_can_restart()
        prove(self._runners, self._config)
        for runner in self._runners:
            runner.reset()
        with self._lock:
            self._check_can_restart()
            self._reset(None)
            self._start_threads()

    def run(self, worker: Worker) -> None:
        """Run a worker's turns until the engine stops or fails; its thread does nothing else."""
        lower_priority()
        show_thread_name()
        try:
            while self.run_turn(worker):
                pass
        except BaseException as error:
            _log.critical("the engine's loop died", exc_info=error)
            self.fail(error)
        else:
            self._fail_all()

    def fail(self, error: BaseException, reason: str = _FAILED) -> None:
        """Terminate the runs under way, accept no more work, and fail accepted sequences with `Unavailable` and
        `reason`.

        Thread-safe; does not wait for the threads. Has no effect on an engine that has already failed or was stopped.
        """
        with self._lock:
            is_first = self._unavailable is None
            if is_first:
                self._unavailable, self._failure = reason, error
            self._changed.notify_all()
        try:
            if is_first:
                for runner in self._runners:
                    runner.terminate()
                self.listener.on_failure(error)
        finally:
            self._fail_all()

    def stop(self, timeout_seconds: float) -> bool:
        """Fail what is left with `Unavailable`, terminate the runs under way and end the threads. Idempotent.

        Returns:
            Whether the threads ended in time. If not, one hangs in native code; its sequences are failed from here.
        """
        give_up_seconds = time.monotonic() + timeout_seconds
        with self._lock:
            self._unavailable, self._failure = "the engine has stopped", None
            self._changed.notify_all()
        for runner in self._runners:
            runner.terminate()
        for thread in self._threads:
            if thread.is_alive():
                thread.join(max(give_up_seconds - time.monotonic(), 0.0))
        has_ended = not self.has_threads
        if not has_ended:
            self._fail_all()
        return has_ended

    def _start_threads(self) -> None:
        self._unavailable = self._failure = None
        for thread in self._threads:
            thread.start()

    def _check_can_restart(self) -> None:
        if self._failure is None:
            raise RuntimeError("only an engine that has failed, and was not stopped, is restarted")
        if self.has_threads:
            raise RuntimeError("a thread of the engine that has failed has not ended")

    def _fail_all(self) -> None:
        with self._lock:
            self.queue.fail_all(self._not_finished())
            updates = self.queue.take_updates()
        try:
            if updates:
                self.listener.on_updates(updates, [])
        except Exception:
            _log.exception("the listener failed while all sequences were being failed")

    # What callers do.

    def check_queue(self, priority: Priority, origin: Origin) -> None:
        """Reject a new call from this origin before any work is spent on it if it would wait too long. Thread-safe."""
        self._check_available()
        self._admission.check_queue(self._num_free, priority, origin, self._clock())

    def check_alike(self, sequences: Sequence_[Sequence]) -> float:
        """Check that sequences such as these would be accepted now; they may be another engine's. Return how long they
        take on an idle server, 0 while unknown. Thread-safe.
        """
        with self._lock:
            self._check_admission(sequences)
        return self._admission.alone_seconds(sequences)

    def submit(self, sequences: Sequence_[Sequence]) -> None:
        """Accept the sequences of one call, all or none; all have the same priority and origin. Thread-safe."""
        workers = self.workers
        max_slots = max([worker.batch.max_slots for worker in workers])
        check_possible(sequences, self._config.max_waiting, max_slots, workers[0].runner.spec)
        with self._lock:
            if not self.queue.live.isdisjoint(sequences):
                raise ValueError("a sequence was submitted twice")
            self._check_admission(sequences)
            try:
                self.queue.admit(sequences)
            except Exception as error:  # the state may be half updated
                failure = error
            else:
                self._interrupt_for_newcomers()
                self._changed.notify_all()
                return
        _log.critical("the engine's state may be inconsistent", exc_info=failure)
        self.fail(failure)
        raise self._not_accepted(_FAILED)

    def _check_admission(self, sequences: Sequence_[Sequence]) -> None:
        self._check_available()
        num_rows = sum([worker.batch.num_rows for worker in self.workers])
        self._admission.check(sequences, self._num_free, num_rows // len(self.workers), self._clock())

    def abort(self, sequences: Iterable[Sequence]) -> None:
        """Give up sequences: their slots are free within two steps. Thread-safe, idempotent."""
        with self._lock:
            if self.queue.abort(sequences):
                for worker in self.workers:
                    worker.search.interrupt()
            self._changed.notify_all()

    def _interrupt_for_newcomers(self) -> None:
        """End the runs of workers that have room for waiting sequences, once they have made enough steps."""
        if self.queue.num_waiting:
            most = self._even_share()
            for worker in self.workers:
                if worker.batch.num_sequences < most and worker.batch.num_free:
                    worker.search.interrupt_for_newcomers()

    @property
    def _num_free(self) -> int:
        return sum([worker.batch.num_free for worker in self.workers])

    def _check_available(self) -> None:
        if self._unavailable is not None:
            raise self._not_accepted(self._unavailable)

    @staticmethod
    def _not_accepted(reason: str) -> Unavailable:
        advice = "try another server, or try again soon"
        return Unavailable("the call was not accepted: {reason}", reason=Public(reason), advice=advice)

    def _not_finished(self) -> Unavailable:
        advice, reason = "try another server, or try again", Public(self._unavailable or "")
        return Unavailable("the call was not finished: {reason}", reason=reason, advice=advice)

    # A worker's turn, on its thread.

    def run_turn(self, worker: Worker) -> bool:
        """Run one turn of a worker, once there is something to do; returns whether there may be another."""
        plan = self.begin(worker)
        if plan is not None and (plan.admitted or worker.batch.num_rows):
            turn = worker.run(plan)
            self.end(worker, turn)
            worker.count_failures(turn)
        return plan is not None

    def has_work(self, worker: Worker) -> bool:
        """Return whether a turn of this worker would have anything to do."""
        if worker.batch.num_rows or self._unavailable is not None or self.queue.aborted or worker.abandoned:
            return True
        return self.queue.num_waiting > 0 and self._share(worker) > 0

    def begin(self, worker: Worker) -> StepPlan | None:
        """Process submissions and aborts, drop expired sequences, and choose which join; returns `None` when stopping.

        Waits while there is nothing for this worker to do.
        """
        with self._lock:
            worker.turn_began = None
            while not self.has_work(worker):
                self._changed.wait()
            worker.turn_began = now_seconds = self._clock()
            worker.search.clear_interrupt()  # under the lock: whatever it was for is processed here
            if self._unavailable is not None:
                return None
            for sequence, error, reason in self.queue.take_unwanted(now_seconds):
                if sequence in self.queue:  # gRPC may cancel a call before its deadline is noticed here
                    self._drop(worker, sequence, error, reason)
            if worker.abandoned:
                worker.remove_abandoned()
            plan = self._plan(worker, now_seconds)
            if self._config.checks_integrity:
                self.check_integrity(worker, plan.admitted, with_requests=self._are_requests_due())
            updates = self.queue.take_updates() if self.queue.updates else []
        if updates:  # dropped sequences need not wait for the step
            self._deliver(updates, [])
        return plan

    def _drop(self, worker: Worker, sequence: Sequence, error: ServiceError, reason: FinishReason) -> None:
        self.queue.drop(sequence, error, reason)
        home = next((each for each in self.workers if sequence in each.assigned), None)
        if home is not None:
            home.abandon(sequence)
            if home is not worker:  # which may be in a run, or about to wait
                home.search.interrupt()
                self._changed.notify_all()

    def _plan(self, worker: Worker, now_seconds: float) -> StepPlan:
        """Assign this worker's share of the waiting sequences to it, and plan its run."""
        plan = self._scheduled(worker)
        if plan.admitted:
            self.queue.start(plan.admitted)
            worker.assign(plan.admitted)
        deadline = self.queue.next_deadline()
        seconds_left = None if deadline is None else deadline - now_seconds
        are_waiting = self.queue.num_waiting > 0
        limits = worker.limits(plan.admitted, seconds_left, are_waiting=are_waiting)
        return StepPlan(plan.admitted, plan.num_tokens, plan.num_padded_tokens, limits)

    def _scheduled(self, worker: Worker) -> StepPlan:
        num_waiting, num_free = self.queue.num_waiting, worker.batch.num_free
        if not num_waiting or not num_free:
            return _NOBODY
        share = self._share(worker)
        candidates = self.queue.waiting.candidates()
        if share < num_waiting and share <= num_free:
            # The other workers have room for the rest: taking, for example, every second one evens out when workers
            # finish.
            candidates = itertools.islice(candidates, 0, None, len(self.workers))
        return worker.schedule(candidates, share)

    def _share(self, worker: Worker) -> int:
        """Return how many waiting sequences this worker may take so that all workers run about equally many."""
        if len(self.workers) == 1:
            return self.queue.num_waiting
        return self._even_share() - worker.batch.num_sequences

    def _even_share(self) -> int:
        """Return how many sequences each worker would run if all workers ran equally many, rounded up."""
        total = self.queue.num_waiting + sum([each.batch.num_sequences for each in self.workers])
        return -(-total // len(self.workers))

    def end(self, worker: Worker, turn: Turn) -> None:
        """Record and report the results of a turn."""
        with self._lock:
            joined = turn.plan.admitted
            for sequence in joined:
                sequence.admitted_seconds, sequence.encoded_seconds = turn.began, turn.encoded
            first_token_seconds = self._note_first_tokens(worker, turn)
            now_seconds = self._clock()
            self._conclude(worker, turn, now_seconds)
            busy_seconds = self._learn(worker, turn, now_seconds)
            if self._config.checks_integrity:
                self.check_integrity(worker, with_requests=self._are_requests_due())
            updates = self.queue.take_updates()
            progress = self._progress(worker)
            if progress:  # under the lock, so that no other worker ends one of these before its progress is reported
                self._deliver(updates, progress)
        if updates and not progress:
            self._deliver(updates, [])
        queue_seconds = [turn.began - sequence.arrived_seconds for sequence in joined]
        worker.unreported.append(turn.stats(busy_seconds, queue_seconds, first_token_seconds))
        if updates or len(worker.unreported) >= _REPORT_AFTER or not worker.batch.num_rows:
            for stats in worker.unreported:
                self.listener.on_turn(stats)
            worker.unreported.clear()

    def _note_first_tokens(self, worker: Worker, turn: Turn) -> list[float]:
        """Note when sequences got their first token; returns how long after their arrival."""
        seconds_since_arrival = []
        for sequence, part in turn.result.first_tokens:
            if sequence in worker.assigned:
                sequence.first_token_seconds = turn.encoded + part * (turn.stepped - turn.encoded)
                seconds_since_arrival.append(sequence.first_token_seconds - sequence.arrived_seconds)
        return seconds_since_arrival

    def _conclude(self, worker: Worker, turn: Turn, now_seconds: float) -> None:
        """End the sequences that have left their rows."""
        result = turn.result
        for sequence, hypotheses in result.finished:
            self.costs.ended(sequence, len(hypotheses[0].token_ids) + 1)
            if worker.release(sequence):
                self.queue.finish(sequence, hypotheses)
        for sequence, error in (*turn.refused, *result.failed):
            if worker.release(sequence):
                self.queue.fail(sequence, self._explained(error))

    def _learn(self, worker: Worker, turn: Turn, now_seconds: float) -> float:
        """Record what a turn took; returns its duration so far."""
        assert worker.turn_began is not None
        busy_seconds, run_seconds = now_seconds - worker.turn_began, turn.stepped - turn.encoded
        plan, result = turn.plan, turn.result
        if plan.admitted:
            self.costs.encoded(len(plan.admitted), plan.num_padded_tokens, turn.encoded - turn.began)
        if result.num_steps and not result.has_run_failed:
            other_seconds = busy_seconds - (turn.stepped - turn.began)
            self.costs.stepped(turn.num_rows, result.num_steps, result.num_row_steps, run_seconds, other_seconds)
        return busy_seconds

    def _explained(self, error: EngineFailure) -> ServiceError:
        if self._unavailable is not None:
            return self._not_finished()  # the run failed because `stop` terminated it
        return error

    def _progress(self, worker: Worker) -> list[SequenceProgress]:
        """Return the tokens that have become certain, of sequences that somebody reads as they come."""
        progress = []
        for sequence, num_told in worker.watched.items():
            token_ids = worker.certain(sequence)
            if len(token_ids) > num_told and sequence in self.queue:  # otherwise all were failed meanwhile
                worker.watched[sequence] = len(token_ids)
                progress.append(SequenceProgress(sequence, token_ids))
        return progress

    def _deliver(self, updates: list[SequenceUpdate], progress: list[SequenceProgress]) -> None:
        try:
            self.listener.on_updates(updates, progress)
        except BaseException:
            with self._lock:
                self.queue.put_back(updates)  # `_fail_all` will deliver them
            raise

    def check_integrity(self, worker: Worker, joining: Iterable[Sequence] = (), *, with_requests: bool = True) -> None:
        """Check the queue, and its consistency with the state of `worker`, on whose thread this runs.

        Without `with_requests`, the places of the requests are left out.
        """
        if self._unavailable is not None:  # all sequences have their updates, whatever the state still holds
            return
        assigned = [sequence for each in self.workers for sequence in each.assigned]
        if with_requests:
            self.queue.check_integrity(assigned)
        num_decoded = len(self.queue.live) - self.queue.num_waiting
        expect(num_decoded == len(assigned), f"{num_decoded} are decoded, {len(assigned)} are assigned to workers")
        worker.check_integrity(list(joining))

    def _are_requests_due(self) -> bool:
        """Return whether to check the requests now: checking many takes long, so it is done less often."""
        self._checks_until_due -= 1
        if self._checks_until_due > 0:
            return False
        self._checks_until_due = len(self.queue.live) // _CHECKED_AT_ONCE
        return True
