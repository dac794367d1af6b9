"""The engine: accepts sequences, runs them together turn by turn, and reports how each one ended."""

import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from collections.abc import Sequence as Sequence_

from service.domain.call import Origin
from service.domain.errors import Public, Unavailable
from service.domain.translation import Priority
from service.engine.admission import Admission, check_possible
from service.engine.config import EngineConfig
from service.engine.costs import Costs
from service.engine.cpus import lower_priority, show_thread_name
from service.engine.reports import EngineListener, EngineSnapshot
from service.engine.runner import Runner
from service.engine.sequence import Sequence
from service.engine.turns import Turns
from service.engine.worker import Worker

_log = logging.getLogger(__name__)

_FAILED = "the engine has failed and is being restarted"


class Engine:
    """Continuous batching: sequences join when slots are free and leave when they end, without waiting for a batch.

    This is the engine's life and interface; its workers' part is `turns`. Every sequence accepted by `submit` gets
    exactly one terminal update. An engine starts once. After a failure it may be restarted; once stopped, it stays
    stopped.
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

        `step_seconds` are a worker's measured seconds per step, by its rows. Without, queues are not limited until the
        first step.
        """
        self._config = config
        self.listener = listener
        self._clock = clock
        self._runners = runners
        self.costs = Costs(len(runners), max(runner.spec.max_slots for runner in runners), step_seconds)
        self._lock = threading.RLock()  # entered in C, unlike a condition
        self.failure: BaseException | None = None  # what made the engine fail, until it is restarted or stopped
        self._reset("the engine has not started")

    def _reset(self, closed: str | None) -> None:
        """Initialize the state: empty rows and queue, new threads; `closed` says why it takes no work yet."""
        config = self._config
        self.turns = Turns(self._runners, config, self.costs, self.listener, self._clock, self._lock, closed)
        self._admission = Admission(self.turns.queue, self.costs, config.max_waiting, config.max_queue_seconds)
        self._threads = [
            threading.Thread(target=self.run, args=(worker,), name=f"engine-{number}", daemon=True)
            for number, worker in enumerate(self.turns.workers)
        ]

    @property
    def bytes_per_slot(self) -> int:
        return self._runners[0].spec.bytes_per_slot

    @property
    def can_change_scores(self) -> bool:
        return self._runners[0].spec.has_logits

    @property
    def has_threads(self) -> bool:
        """Return whether a thread of the engine is alive: after a failure, about to end or hanging in native code."""
        return any(thread.is_alive() for thread in self._threads)

    def snapshot(self) -> EngineSnapshot:
        """Return the engine's current state. Thread-safe; the values may be from slightly different moments."""
        workers, queue = self.turns.workers, self.turns.queue
        max_slots, num_rows = self.turns.max_slots, self.turns.num_rows
        began = [moment for worker in workers if (moment := worker.turn_began) is not None] if self.has_threads else []
        turn_seconds = max(self._clock() - min(began), 0.0) if began else 0.0
        if self.turns.closed is not None:  # all sequences have their updates, whatever the state still holds
            return EngineSnapshot(0, 0, 0.0, 0, 0, max_slots, is_alive=False, turn_seconds=turn_seconds)
        return EngineSnapshot(
            num_waiting=queue.waiting.num_sequences,
            num_waiting_tokens=queue.waiting.num_tokens,
            wait_seconds=self._admission.wait_seconds(max_slots - num_rows),
            num_running=sum(worker.batch.num_sequences for worker in workers),
            slots_used=num_rows,
            max_slots=max_slots,
            is_alive=True,
            turn_seconds=turn_seconds,
        )

    # From its start to its end.

    def start(self) -> None:
        self.open()
        self._start_threads()

    def open(self) -> None:
        """Accept work without starting threads, for tests that run the turns (`Turns.run_turn`) themselves."""
        for runner in self._runners:
            runner.reset()
        self.turns.closed = self.failure = None

    def restart(self, prove: Callable[[Sequence_[Runner], EngineConfig], object]) -> None:
        """Restart after a failure, on the same runners and with empty state, once `prove` has verified them."""
        self._check_can_restart()
        prove(self._runners, self._config)
        for runner in self._runners:
            runner.reset()
        with self._lock:
            self._check_can_restart()
            self._reset(None)
            self.failure = None
            self._start_threads()

    def run(self, worker: Worker) -> None:
        """Run a worker's turns until the engine stops or fails; its thread does nothing else."""
        lower_priority()
        show_thread_name()
        try:
            while self.turns.run_turn(worker):
                pass
        except BaseException as error:
            _log.critical("the engine's loop died", exc_info=error)
            self.fail(error)
        else:
            self.turns.fail_all()

    def fail(self, error: BaseException, reason: str = _FAILED) -> None:
        """Terminate runs, accept no more work, and fail accepted sequences with `Unavailable` and `reason`.

        Thread-safe; does not wait for the threads. Has no effect on an engine that has failed or was stopped.
        """
        with self._lock:
            turns = self.turns
            is_first = turns.closed is None
            if is_first:
                self.failure = error
                turns.close(reason)
        try:
            if is_first:
                for runner in self._runners:
                    runner.terminate()
                self.listener.on_failure(error)
        finally:
            turns.fail_all()

    def stop(self, timeout_seconds: float) -> bool:
        """Fail what is left with `Unavailable`, terminate the runs under way and end the threads.

        Idempotent. Return whether the threads ended in time. If not, one hangs in native code; its sequences are failed
        from here.
        """
        give_up_seconds = time.monotonic() + timeout_seconds
        with self._lock:
            self.failure = None
            self.turns.close("the engine has stopped")
        for runner in self._runners:
            runner.terminate()
        for thread in self._threads:
            if thread.is_alive():
                thread.join(max(give_up_seconds - time.monotonic(), 0.0))
        has_ended = not self.has_threads
        if not has_ended:
            self.turns.fail_all()
        return has_ended

    def _start_threads(self) -> None:
        for thread in self._threads:
            thread.start()

    def _check_can_restart(self) -> None:
        if self.failure is None:
            raise RuntimeError("only an engine that has failed, and was not stopped, is restarted")
        if self.has_threads:
            raise RuntimeError("a thread of the engine that has failed has not ended")

    # What callers do.

    def check_queue(self, priority: Priority, origin: Origin) -> None:
        """Reject a call that would wait too long, before any work; if none waits, `submit` does. Thread-safe."""
        turns = self.turns
        if turns.closed is not None:
            raise self._not_accepted(turns.closed)
        if turns.queue.waiting.num_sequences:
            self._admission.check_queue(turns.max_slots - turns.num_rows, priority, origin, self._clock())

    def check_alike(self, sequences: Sequence_[Sequence]) -> float:
        """Check that sequences such as these, which may be another engine's, would be accepted now.

        Return their seconds on an idle server, 0 while unknown. Thread-safe.
        """
        with self._lock:
            self._check_admission(sequences)
        return self._admission.alone_seconds(sequences)

    def submit(self, sequences: Sequence_[Sequence]) -> None:
        """Accept the sequences of one call, all or none; all have the same priority and origin. Thread-safe."""
        check_possible(sequences, self._config.max_waiting, self.costs.max_rows, self._runners[0].spec)
        with self._lock:
            if not self.turns.queue.live.isdisjoint(sequences):
                raise ValueError("a sequence was submitted twice")
            self._check_admission(sequences)
            try:
                self.turns.admit(sequences)
                return
            except Exception as error:  # the state may be half updated
                failure = error
        _log.critical("the engine's state may be inconsistent", exc_info=failure)
        self.fail(failure)
        raise self._not_accepted(_FAILED)

    def abort(self, sequences: Iterable[Sequence]) -> None:
        """Give up sequences: their slots are free within two steps. Thread-safe, idempotent."""
        with self._lock:
            self.turns.abort(sequences)

    def _check_admission(self, sequences: Sequence_[Sequence]) -> None:
        turns = self.turns
        if turns.closed is not None:
            raise self._not_accepted(turns.closed)
        num_rows = turns.num_rows
        num_free = turns.max_slots - num_rows
        self._admission.check(sequences, num_free, num_rows // len(turns.workers), self._clock())

    @staticmethod
    def _not_accepted(reason: str) -> Unavailable:
        advice = "try another server, or try again soon"
        return Unavailable("the call was not accepted: {reason}", reason=Public(reason), advice=advice)
