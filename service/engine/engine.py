"""The engine: accepts sequences, runs them together turn by turn, and reports how each one ended."""

import logging
import threading
import time
from collections.abc import Callable, Iterable
from collections.abc import Sequence as Sequence_

from service.domain.call import Origin
from service.domain.errors import Public, Unavailable
from service.domain.translation import Priority
from service.engine.admission import Admission, check_possible
from service.engine.config import EngineConfig
from service.engine.cpus import lower_priority, show_thread_name
from service.engine.reports import EngineListener, EngineSnapshot
from service.engine.runner import Runner
from service.engine.sequence import Sequence
from service.engine.throughput import Throughput
from service.engine.turns import Turns
from service.engine.worker import Worker

_log = logging.getLogger(__name__)

_FAILED = "the engine has failed and is being restarted"


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
        self.listener = listener
        self._clock = clock
        self._runners = runners
        self.throughput = Throughput(len(runners), runners[0].spec.max_slots, full_turn_seconds)
        self._lock = threading.RLock()  # guards all state shared by workers; entered in C, unlike a condition
        self._changed = threading.Condition(self._lock)
        self._failure: BaseException | None = None
        self._reset("the engine has not started")

    def _reset(self, unavailable: str | None) -> None:
        """Initialize the state: empty rows and queue, new threads; `unavailable` says why it takes no work yet."""
        config = self._config
        self.turns = Turns(
            self._runners, config, self.listener, self.throughput, self._lock, self._changed, self._clock, unavailable
        )
        self._admission = Admission(self.turns.requests, self.throughput, config.max_waiting, config.max_queue_seconds)
        self._threads = [
            threading.Thread(target=self.run, args=(worker,), name=f"engine-{number}", daemon=True)
            for number, worker in enumerate(self.workers)
        ]

    @property
    def workers(self) -> list[Worker]:
        """Return the workers, each with a runner, rows and a thread of its own."""
        return self.turns.workers

    @property
    def bytes_per_slot(self) -> int:
        """Return the device memory reserved for the keys and values of one row at its maximum length."""
        return self.workers[0].runner.spec.bytes_per_slot

    @property
    def can_change_scores(self) -> bool:
        """Return whether it accepts sequences whose options change scores, such as a repetition penalty."""
        return self.workers[0].runner.spec.has_logits

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
        """Accept work without starting threads, for tests that run each worker's turns (`Turns.run`) themselves."""
        for runner in self._runners:
            runner.reset()
        self.turns.unavailable = self._failure = None

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
        with self._lock:
            self._check_can_restart()
            self._reset(None)
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
        workers = self.turns.workers
        max_slots = max([worker.batch.max_slots for worker in workers])
        check_possible(sequences, self._config.max_waiting, max_slots, workers[0].runner.spec)
        with self._lock:
            self._check_available()
            if not self.turns.requests.live.isdisjoint(sequences):
                raise ValueError("a sequence was submitted twice")
            num_rows = sum([worker.batch.num_rows for worker in workers])
            num_free = sum([worker.batch.max_slots for worker in workers]) - num_rows
            self._admission.check(sequences, num_free, num_rows // len(workers), self._clock())
            try:
                self.turns.requests.admit(sequences)
            except Exception as error:  # the state may be half updated
                failure = error
            else:
                self.turns.interrupt_for_newcomers()
                self._changed.notify_all()
                return
        _log.critical("the engine's state may be inconsistent", exc_info=failure)
        self.fail(failure)
        raise self._not_accepted(_FAILED)

    def run(self, worker: Worker) -> None:
        """Run a worker's turns until the engine stops or fails; its thread does nothing else."""
        lower_priority()
        show_thread_name()
        try:
            while self.turns.run(worker):
                pass
        except BaseException as error:
            _log.critical("the engine's loop died", exc_info=error)
            self.fail(error)
        else:
            self.turns.fail_all()

    def abort(self, sequences: Iterable[Sequence]) -> None:
        """Give up sequences: their slots are free within two steps. Thread-safe, idempotent."""
        with self._lock:
            aborted = [sequence for sequence in sequences if sequence in self.turns.requests]
            if aborted:
                self.turns.aborted.extend(aborted)
                self.turns.interrupt()
            self._changed.notify_all()

    def fail(self, error: BaseException, reason: str = _FAILED) -> None:
        """Terminate the runs under way, accept no more work, and fail accepted sequences with `Unavailable` and
        `reason`.

        Thread-safe; does not wait for the threads. Has no effect on an engine that has already failed or was stopped.
        """
        with self._lock:
            is_first = self.turns.unavailable is None
            if is_first:
                self.turns.unavailable, self._failure = reason, error
            self._changed.notify_all()
        try:
            if is_first:
                for runner in self._runners:
                    runner.terminate()
                self.listener.on_failure(error)
        finally:
            self.turns.fail_all()

    def stop(self, timeout_seconds: float) -> bool:
        """Fail what is left with `Unavailable`, terminate the runs under way and end the threads. Idempotent.

        Returns:
            Whether the threads ended in time. If not, one hangs in native code; its sequences are failed from here.
        """
        give_up_seconds = time.monotonic() + timeout_seconds
        with self._lock:
            self.turns.unavailable, self._failure = "the engine has stopped", None
            self._changed.notify_all()
        for runner in self._runners:
            runner.terminate()
        for thread in self._threads:
            if thread.is_alive():
                thread.join(max(give_up_seconds - time.monotonic(), 0.0))
        has_ended = not self.has_threads
        if not has_ended:
            self.turns.fail_all()
        return has_ended

    def snapshot(self) -> EngineSnapshot:
        """Return the engine's current state. Thread-safe; the values may be from slightly different moments."""
        max_slots = sum(worker.batch.max_slots for worker in self.workers)
        began = (
            [moment for worker in self.workers if (moment := worker.turn_began) is not None] if self.has_threads else []
        )
        turn_seconds = max(self._clock() - min(began), 0.0) if began else 0.0
        if self.turns.unavailable is not None:  # all sequences have their updates, whatever the state still holds
            return EngineSnapshot(0, 0, 0.0, 0, 0, max_slots, is_alive=False, turn_seconds=turn_seconds)
        return EngineSnapshot(
            num_waiting=self.turns.requests.waiting.num_sequences,
            num_waiting_tokens=self.turns.requests.waiting.num_tokens,
            wait_seconds=self._admission.wait_seconds(self._num_free),
            num_running=sum(worker.batch.num_sequences for worker in self.workers),
            slots_used=sum(worker.batch.num_rows for worker in self.workers),
            max_slots=max_slots,
            is_alive=True,
            turn_seconds=turn_seconds,
        )

    def held(self) -> dict[str, int]:
        """Return the sizes of what the engine keeps for live sequences, by name; all 0 if there are none. For tests."""
        coalescing = self.turns.requests.coalescing
        return {
            "live": len(self.turns.requests.live),
            "queued": self.turns.requests.waiting.num_sequences,
            "coalesced, waiting": coalescing.num_waiting,
            "coalesced, running": coalescing.num_decoding,
            "coalesced, watched": len(coalescing.watched),
            "decoded by a worker": len(self.turns.worker_of),
            "abandoned": sum(len(worker.abandoned) for worker in self.workers),
            "rows": sum(worker.batch.num_rows for worker in self.workers),
        }

    def _start_threads(self) -> None:
        self.turns.unavailable = self._failure = None
        for thread in self._threads:
            thread.start()

    def _check_can_restart(self) -> None:
        if self._failure is None:
            raise RuntimeError("only an engine that has failed, and was not stopped, is restarted")
        if self.has_threads:
            raise RuntimeError("a thread of the engine that has failed has not ended")

    @property
    def _num_free(self) -> int:
        return sum([worker.batch.num_free for worker in self.turns.workers])

    def _check_available(self) -> None:
        if self.turns.unavailable is not None:
            raise self._not_accepted(self.turns.unavailable)

    @staticmethod
    def _not_accepted(reason: str) -> Unavailable:
        advice = "try another server, or try again soon"
        return Unavailable("the call was not accepted: {reason}", reason=Public(reason), advice=advice)
