"""The turns of an engine's workers: what each does with the shared state before and after its own run."""

import itertools
import logging
import threading
from collections.abc import Callable, Iterable
from collections.abc import Sequence as Sequence_

from service.domain.errors import EngineFailure, Public, ServiceError, Unavailable
from service.domain.translation import FinishReason
from service.engine.config import EngineConfig
from service.engine.costs import Costs
from service.engine.integrity import expect
from service.engine.reports import EngineListener
from service.engine.request_queue import RequestQueue
from service.engine.runner import RunLimits, Runner
from service.engine.scheduler import StepPlan, encode_budget, run_limits, schedule
from service.engine.sequence import Sequence, SequenceProgress, SequenceUpdate
from service.engine.worker import Turn, Worker

_log = logging.getLogger(__name__)

_REPORT_AFTER = 16  # turns at most: reporting them together is easier on the CPU's caches
_CHECKED_AT_ONCE = 16  # requests per integrity check, on average


class Turns:
    """The state that workers share: the queue from which they take sequences, who is assigned to which worker, and the
    costs.

    One lock guards it; each worker has its runner, rows and thread to itself.
    """

    def __init__(
        self,
        runners: Sequence_[Runner],
        config: EngineConfig,
        costs: Costs,
        listener: EngineListener,
        clock: Callable[[], float],
        lock: threading.RLock,
        closed: str | None,
    ) -> None:
        """Begin with empty rows and an empty queue; `closed` says why no work is taken yet."""
        self.closed = closed
        self.max_slots = sum([runner.spec.max_slots for runner in runners])
        self.workers = [Worker(runner, clock, checks_integrity=config.checks_integrity) for runner in runners]
        self.queue = RequestQueue(config.max_waiting, clock, costs.expected_tokens)
        self._config = config
        self._costs = costs
        self._listener = listener
        self._clock = clock
        self._lock = lock
        self._changed = threading.Condition(lock)
        self._num_idle = 0  # workers that wait for a change
        self._checks_until_due = 0

    # For the engine: the first three with the lock held.

    def close(self, reason: str) -> None:
        self.closed = reason
        self._changed.notify_all()

    def admit(self, sequences: Sequence_[Sequence]) -> None:
        """Accept sequences, and end the runs of workers that have room for them, once they have made enough steps."""
        self.queue.admit(sequences)
        if self.queue.waiting.num_sequences:
            most = self._even_share()
            for worker in self.workers:
                batch = worker.batch
                if batch.num_sequences < most and batch.num_rows < batch.max_slots:
                    worker.runner.control.interrupt_for_newcomers()
        if self._num_idle:
            self._changed.notify_all()

    def abort(self, sequences: Iterable[Sequence]) -> None:
        if self.queue.abort(sequences):
            for worker in self.workers:
                worker.runner.control.interrupt()
        self._changed.notify_all()

    def fail_all(self) -> None:
        """Fail the sequences that are left with `Unavailable`, and deliver all updates."""
        with self._lock:
            self.queue.fail_all(self._not_finished())
            updates = self.queue.take_updates()
        try:
            if updates:
                self._listener.on_updates(updates, [])
        except Exception:
            _log.exception("the listener failed while all sequences were being failed")

    @property
    def num_rows(self) -> int:
        return sum([worker.batch.num_rows for worker in self.workers])

    # A worker's turn, on its thread.

    def run_turn(self, worker: Worker) -> bool:
        """Run one turn of a worker, once there is something to do; return whether there may be another."""
        plan = self.begin(worker)
        if plan is not None and (plan.admitted or worker.batch.num_rows):
            turn = worker.run(plan)
            self.end(worker, turn)
            worker.count_failures(turn)
        return plan is not None

    def has_work(self, worker: Worker) -> bool:
        if worker.batch.num_rows or self.closed is not None or self.queue.aborted or worker.abandoned:
            return True
        return self.queue.waiting.num_sequences > 0 and self._share(worker) > 0

    def begin(self, worker: Worker) -> StepPlan | None:
        """Process aborts and deadlines, choose which sequences join; wait while idle; return `None` when stopping."""
        with self._lock:
            worker.turn_began = None
            while not self.has_work(worker):
                self._num_idle += 1
                self._changed.wait()
                self._num_idle -= 1
            worker.turn_began = now_seconds = self._clock()
            worker.runner.control.clear_interrupt()  # under the lock: whatever it was for is processed here
            if self.closed is not None:
                return None
            for sequence, error, reason in self.queue.take_unwanted(now_seconds):
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
                home.runner.control.interrupt()
                self._changed.notify_all()

    # Who joins, and how long the run lasts.

    def _plan(self, worker: Worker, now_seconds: float) -> StepPlan:
        queue, batch = self.queue, worker.batch
        num_waiting, num_free = queue.waiting.num_sequences, batch.num_free
        plan = StepPlan(())
        if num_waiting and num_free:
            share, candidates = self._share(worker), queue.waiting.candidates()
            if share < num_waiting and share <= num_free:
                # The other workers have room for the rest: taking, for example, every second one evens out when workers
                # finish.
                candidates = itertools.islice(candidates, 0, None, len(self.workers))
            budget = encode_budget(self._costs, batch.num_rows, num_free, self._config.max_encode_tokens)
            plan = schedule(candidates, num_free, budget, share, pads=worker.runner.spec.pads_sources)
            queue.start(plan.admitted)
            worker.assign(plan.admitted)
        return plan._replace(limits=self._limits(worker, plan.admitted, now_seconds))

    def _limits(self, worker: Worker, joining: Sequence_[Sequence], now_seconds: float) -> RunLimits:
        num_rows = worker.batch.num_rows + sum([each.num_slots for each in joining])
        are_waiting = self.queue.waiting.num_sequences > 0
        needs_row = are_waiting and num_rows >= worker.batch.max_slots
        deadline = self.queue.next_deadline()
        return run_limits(
            self._costs,
            num_rows,
            worker.batch.num_sequences + len(joining),
            is_awaited=(are_waiting and not needs_row) or bool(worker.watched),
            needs_row=needs_row,
            seconds_left=None if deadline is None else deadline - now_seconds,
            steps_to_first_token=worker.steps_to_watched_token(joining),
        )

    def _share(self, worker: Worker) -> int:
        """Return how many waiting sequences this worker may take so that all workers run about equally many."""
        if len(self.workers) == 1:
            return self.queue.waiting.num_sequences
        return self._even_share() - worker.batch.num_sequences

    def _even_share(self) -> int:
        total = self.queue.waiting.num_sequences + sum([each.batch.num_sequences for each in self.workers])
        return -(-total // len(self.workers))

    # What came of the run.

    def end(self, worker: Worker, turn: Turn) -> None:
        joined = turn.plan.admitted
        with self._lock:
            for sequence in joined:
                sequence.admitted_seconds, sequence.encoded_seconds = turn.began, turn.encoded
            first_token_seconds = self._note_first_tokens(worker, turn)
            now_seconds = self._clock()
            self._conclude(worker, turn)
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
                self._listener.on_turn(stats)
            worker.unreported.clear()

    def _note_first_tokens(self, worker: Worker, turn: Turn) -> list[float]:
        """Note when sequences got their first token; return how long after their arrival."""
        seconds_since_arrival = []
        for sequence, part in turn.result.first_tokens:
            if sequence in worker.assigned:
                sequence.first_token_seconds = turn.encoded + part * (turn.stepped - turn.encoded)
                seconds_since_arrival.append(sequence.first_token_seconds - sequence.arrived_seconds)
        return seconds_since_arrival

    def _conclude(self, worker: Worker, turn: Turn) -> None:
        for sequence, hypotheses in turn.result.finished:
            self._costs.ended(sequence, len(hypotheses[0].token_ids) + 1)
            worker.release(sequence)
            self.queue.finish(sequence, hypotheses)
        for sequence, error in (*turn.refused, *turn.result.failed):
            worker.release(sequence)
            self.queue.fail(sequence, self._explained(error))

    def _learn(self, worker: Worker, turn: Turn, now_seconds: float) -> float:
        """Record what a turn took; return its duration so far."""
        assert worker.turn_began is not None
        busy_seconds, run_seconds = now_seconds - worker.turn_began, turn.stepped - turn.encoded
        plan, result = turn.plan, turn.result
        if plan.admitted:
            self._costs.encoded(len(plan.admitted), plan.num_padded_tokens, turn.encoded - turn.began)
        if result.num_steps and not result.has_run_failed:
            other_seconds = busy_seconds - (turn.stepped - turn.began)
            self._costs.stepped(turn.num_rows, result.num_steps, result.num_row_steps, run_seconds, other_seconds)
        return busy_seconds

    def _explained(self, error: EngineFailure) -> ServiceError:
        if self.closed is not None:
            return self._not_finished()  # the run failed because `stop` terminated it
        return error

    def _not_finished(self) -> Unavailable:
        advice, reason = "try another server, or try again", Public(self.closed or "")
        return Unavailable("the call was not finished: {reason}", reason=reason, advice=advice)

    def _progress(self, worker: Worker) -> list[SequenceProgress]:
        """Return the tokens that have become certain, of sequences that somebody reads as they come."""
        progress = []
        for sequence, num_told in worker.watched.items():
            token_ids = worker.search.certain(sequence)
            if len(token_ids) > num_told and sequence in self.queue:  # otherwise all were failed meanwhile
                worker.watched[sequence] = len(token_ids)
                progress.append(SequenceProgress(sequence, token_ids))
        return progress

    def _deliver(self, updates: list[SequenceUpdate], progress: list[SequenceProgress]) -> None:
        try:
            self._listener.on_updates(updates, progress)
        except BaseException:
            with self._lock:
                self.queue.put_back(updates)  # `fail_all` will deliver them
            raise

    def check_integrity(self, worker: Worker, joining: Iterable[Sequence] = (), *, with_requests: bool = True) -> None:
        """Check the queue and the state of `worker`, on its thread; `with_requests`, also where each request is."""
        if self.closed is not None:  # all sequences have their updates, whatever the state still holds
            return
        assigned = [sequence for each in self.workers for sequence in each.assigned]
        if with_requests:
            self.queue.check_integrity(assigned)
        num_decoded = len(self.queue.live) - self.queue.waiting.num_sequences
        expect(num_decoded == len(assigned), f"{num_decoded} are decoded, {len(assigned)} are assigned to workers")
        worker.check_integrity(list(joining))

    def _are_requests_due(self) -> bool:
        """Return whether to check the requests now: checking many takes long, so it is done less often."""
        self._checks_until_due -= 1
        if self._checks_until_due > 0:
            return False
        self._checks_until_due = len(self.queue.live) // _CHECKED_AT_ONCE
        return True
