"""A worker's turns: who joins before one, what is recorded and reported after it, and the state shared by workers."""

import itertools
import logging
import threading
from collections.abc import Callable, Iterable
from collections.abc import Sequence as Sequence_

from service.domain.errors import Cancelled, DeadlineExceeded, EngineFailure, Public, ServiceError, Unavailable
from service.domain.translation import FinishReason
from service.engine.config import EngineConfig
from service.engine.integrity import expect
from service.engine.reports import EngineListener, TurnStats
from service.engine.requests import Requests
from service.engine.runner import Runner
from service.engine.scheduler import StepPlan
from service.engine.sequence import Sequence, SequenceProgress, SequenceUpdate
from service.engine.throughput import Throughput
from service.engine.worker import Turn, Worker

_log = logging.getLogger(__name__)

_NOBODY = StepPlan(())
_REPORT_AFTER = 16  # turns at most: reporting them together is easier on the CPU's caches
_CHECKED_AT_ONCE = 16  # requests per integrity check, on average


class Turns:
    """The state shared by workers, and what each does with it in a turn. A restarted engine has new `Turns`.

    `lock`, that of `changed`, guards everything here but the workers' own rows. While `unavailable` is not `None`, the
    engine takes no work, workers end, and it says why. Sequences in `aborted` are dropped in the next turn. The methods
    run on a worker's thread, except `fail_all`.
    """

    def __init__(
        self,
        runners: Sequence_[Runner],
        config: EngineConfig,
        listener: EngineListener,
        throughput: Throughput,
        lock: threading.RLock,
        changed: threading.Condition,
        clock: Callable[[], float],
        unavailable: str | None,
    ) -> None:
        self._config = config
        self._listener = listener
        self._throughput = throughput
        self._clock = clock
        self.lock = lock
        self.changed = changed
        self.unavailable = unavailable
        self.workers = [
            Worker(runner, config.max_encode_tokens, clock, checks_integrity=config.checks_integrity)
            for runner in runners
        ]
        self.worker_of: dict[Sequence, Worker] = {}  # for sequences that have slots
        self.requests = Requests(config.max_waiting, clock, throughput.expected_rows)
        self.aborted: list[Sequence] = []
        self._checks_until_due = 0

    def run(self, worker: Worker) -> bool:
        """Run one turn of a worker, once there is something to do; returns whether there may be another.

        Raises:
            RuntimeError: this turn and the last ones before it all failed.
        """
        plan = self.begin(worker)
        if plan is not None and (plan.admitted or worker.batch.num_rows):
            turn = worker.run(plan)
            self.end(worker, turn)
            worker.count_failures(turn)
        return plan is not None

    def begin(self, worker: Worker) -> StepPlan | None:
        """Process submissions and aborts, drop expired sequences, and choose which join; returns `None` when stopping.

        Waits while there is nothing for this worker to do.
        """
        with self.lock:
            worker.turn_began = None
            while not self.has_work(worker):
                self.changed.wait()
            worker.turn_began = self._clock()
            worker.search.clear_interrupt()  # under the lock: whatever it was for is processed here
            if self.unavailable is not None:
                return None
            self._drop_unwanted(worker, worker.turn_began)
            if worker.abandoned:
                worker.remove_abandoned()
            plan = self._limited(worker, self._scheduled(worker))
            if self._config.checks_integrity:
                self.check_integrity(worker, plan.admitted, with_requests=self._are_requests_due())
            updates = self.requests.take_updates() if self.requests.updates else []
        if updates:  # dropped sequences need not wait for the step
            self._tell(updates, [])
        return plan

    def has_work(self, worker: Worker) -> bool:
        """Return whether a turn of this worker would have anything to do."""
        if worker.batch.num_rows or self.unavailable is not None or self.aborted or worker.abandoned:
            return True
        return self.requests.waiting.num_sequences > 0 and self._share(worker) > 0

    def interrupt(self) -> None:
        """End the runs under way soon. The caller holds the lock and has changed what the workers will see then."""
        for worker in self.workers:
            worker.search.interrupt()

    def interrupt_for_newcomers(self) -> None:
        """End the runs of workers that have room for waiting sequences, once they have made enough steps. The
        caller holds the lock."""
        if self.requests.waiting.num_sequences:
            most = self._even_share()
            for worker in self.workers:
                if worker.batch.num_sequences < most and worker.batch.num_free:
                    worker.search.interrupt_for_newcomers()

    def _drop_unwanted(self, worker: Worker, now_seconds: float) -> None:
        if self.aborted:
            aborted, self.aborted = self.aborted, []
            for sequence in aborted:
                self._note_given_up(sequence, now_seconds)
                self._drop(worker, sequence, Cancelled("the caller cancelled the call."), FinishReason.CANCELLED)
        for sequence in self.requests.deadlines.pop_expired(now_seconds):
            self._note_given_up(sequence, now_seconds)
            self._drop(worker, sequence, DeadlineExceeded("the call's deadline passed."), FinishReason.DEADLINE)

    def _note_given_up(self, sequence: Sequence, now_seconds: float) -> None:
        """Record how long a sequence was tried for; gRPC may cancel a call before its deadline is noticed here."""
        if sequence.expected_seconds and sequence in self.requests:
            self._throughput.given_up(sequence.expected_seconds, now_seconds - sequence.arrived_seconds)

    def _drop(self, worker: Worker, sequence: Sequence, error: ServiceError, reason: FinishReason) -> None:
        leader = self.requests.drop(sequence, error, reason)
        if leader is not None:
            home = self.worker_of.pop(leader)
            home.abandoned.append(leader)
            if home is not worker:  # which may be in a run, or about to wait
                home.search.interrupt()
                self.changed.notify_all()

    def _limited(self, worker: Worker, plan: StepPlan) -> StepPlan:
        """Return a plan with the limits of its run."""
        assert worker.turn_began is not None
        deadline = self.requests.deadlines.next_seconds()
        watched = self._watched(worker) if self.requests.coalescing.watched_by else ()
        seconds_left = None if deadline is None else deadline - worker.turn_began
        limits = worker.limits(
            plan.admitted, watched, seconds_left, are_waiting=self.requests.waiting.num_sequences > 0
        )
        return StepPlan(plan.admitted, plan.num_tokens, plan.num_padded_tokens, limits)

    def _scheduled(self, worker: Worker) -> StepPlan:
        num_waiting, num_free = self.requests.waiting.num_sequences, worker.batch.num_free
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
            for sequence in plan.admitted:
                self.worker_of[sequence] = worker
        return plan

    def _share(self, worker: Worker) -> int:
        """Return how many waiting sequences this worker may take so that all workers run about equally many."""
        if len(self.workers) == 1:
            return self.requests.waiting.num_sequences
        return self._even_share() - worker.batch.num_sequences

    def _even_share(self) -> int:
        """Return how many sequences each worker would run if all workers ran equally many, rounded up."""
        total = self.requests.waiting.num_sequences + sum([each.batch.num_sequences for each in self.workers])
        return -(-total // len(self.workers))

    def end(self, worker: Worker, turn: Turn) -> None:
        """Record and report the results of a turn."""
        result = turn.result
        assert worker.turn_began is not None
        with self.lock:
            joined = [*turn.plan.admitted, *self.requests.take_followers()]
            for sequence in joined:
                sequence.admitted_seconds, sequence.encoded_seconds = turn.began, turn.encoded
            with_first_token = []
            for leader, part in result.first_tokens:
                if leader in self.worker_of:
                    for sequence in self.requests.coalescing.members(leader):
                        seconds = turn.encoded + part * (turn.stepped - turn.encoded)
                        sequence.first_token_seconds = max(seconds, sequence.arrived_seconds)
                        with_first_token.append(sequence)
            now_seconds = self._clock()
            for leader, hypotheses in result.finished:
                self._throughput.ended(len(leader.source_ids), len(hypotheses[0].token_ids) + 1)
                if leader.expected_seconds:
                    self._throughput.took(leader.expected_seconds, now_seconds - leader.arrived_seconds)
                else:
                    self._throughput.not_compared()
                if self._leaves(worker, leader):
                    self.requests.finish(leader, hypotheses)
            for leader, error in (*turn.refused, *result.failed):
                if self._leaves(worker, leader):
                    self.requests.fail(leader, self._explained(error))
            if result.num_steps and not result.has_run_failed:
                self._throughput.turned(
                    turn.num_rows,
                    now_seconds - worker.turn_began,
                    result.num_steps,
                    result.num_row_steps,
                    num_encoded=len(turn.plan.admitted),
                    encode_seconds=turn.encoded - turn.began,
                )
            if self._config.checks_integrity:
                self.check_integrity(worker, with_requests=self._are_requests_due())
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
                busy_seconds=now_seconds - worker.turn_began,
                encode_seconds=turn.encoded - turn.began if has_encoded else 0.0,
                num_encoded=len(turn.plan.admitted),
                num_followers=len(joined) - len(turn.plan.admitted),
                encoded_tokens=turn.plan.num_tokens if has_encoded else 0,
                padded_tokens=turn.plan.num_padded_tokens if has_encoded else 0,
                run_seconds=turn.stepped - turn.encoded if turn.num_rows else 0.0,
                num_steps=result.num_steps,
                num_row_steps=result.num_row_steps,
                batch_size=turn.num_rows,
                num_generated=result.num_generated,
                queue_seconds=[max(turn.began - sequence.arrived_seconds, 0.0) for sequence in joined],
                first_token_seconds=[each.first_token_seconds - each.arrived_seconds for each in with_first_token],
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
            with self.lock:
                self.requests.put_back(updates)  # `fail_all` will deliver them
            raise

    def check_integrity(self, worker: Worker, joining: Iterable[Sequence] = (), *, with_requests: bool = True) -> None:
        """Check the state shared by workers, and its consistency with that of `worker`, on whose thread this runs.

        Without `with_requests`, the places of the requests are left out.

        Raises:
            IntegrityError: the state is inconsistent; says where.
        """
        if self.unavailable is not None:  # all sequences have their updates, whatever the state still holds
            return
        if with_requests:
            self.requests.check_integrity()
        leaders = self.requests.coalescing.leaders
        is_right = len(leaders) == len(self.worker_of) and self.worker_of.keys() == set(leaders)
        expect(is_right, f"{len(leaders)} sequences are decoded, {len(self.worker_of)} are assigned to workers")
        worker.check_integrity([each for each, home in self.worker_of.items() if home is worker], list(joining))

    def _are_requests_due(self) -> bool:
        """Return whether to check the requests now: checking many takes long, so it is done less often."""
        self._checks_until_due -= 1
        if self._checks_until_due > 0:
            return False
        self._checks_until_due = len(self.requests.live) // _CHECKED_AT_ONCE
        return True

    def _progress(self, worker: Worker) -> list[SequenceProgress]:
        if not self.requests.coalescing.watched_by:
            return []
        return [
            each for leader in self._watched(worker) for each in self.requests.progress(leader, worker.certain(leader))
        ]

    def _watched(self, worker: Worker) -> list[Sequence]:
        """Return those of a worker's sequences whose tokens somebody reads as they come."""
        watched = self.requests.coalescing.watched
        return [leader for leader in watched if self.worker_of[leader] is worker] if watched else []

    def _leaves(self, worker: Worker, leader: Sequence) -> bool:
        """Record that a sequence has left its rows; returns false if it was given up meanwhile and needs no update."""
        if leader in worker.abandoned:
            worker.abandoned.remove(leader)
            return False
        del self.worker_of[leader]
        return True

    def _explained(self, error: EngineFailure) -> ServiceError:
        if self.unavailable is not None:
            return self._not_finished()  # the run failed because `stop` terminated it
        return error

    def _not_finished(self) -> Unavailable:
        advice, reason = "try another server, or try again", Public(self.unavailable or "")
        return Unavailable("the call was not finished: {reason}", reason=reason, advice=advice)

    def fail_all(self) -> None:
        """Fail all accepted sequences with `Unavailable`, and report it."""
        with self.lock:
            self.requests.fail_all(self._not_finished())
            updates = self.requests.take_updates()
        try:
            if updates:
                self._listener.on_updates(updates, [])
        except Exception:
            _log.exception("the listener failed while all sequences were being failed")
