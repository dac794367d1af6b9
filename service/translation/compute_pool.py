"""Computations of calls on one thread: short work first, abandoned work is ended.

Python runs on one CPU at a time, which the event loop and the engine need, too: with two threads, small calls beside
hostile texts took 294 ms (p99), with one 120 ms (`tests/faults/test_attacks.py`). So pieces of work take turns on one
thread, each as a greenlet. At its checkpoints, a piece that has run for a time slice yields to the one that has run the
least (least attained service first: Kleinrock, Queueing Systems II, 1976, section 4.4), counted by caller and then by
piece. So work of milliseconds never waits for work of seconds, however much of that there is, and no caller delays
another one.
"""

import asyncio
import contextvars
import threading
import time
from collections import Counter
from collections.abc import Callable, Hashable
from contextlib import suppress
from typing import Any, TypeVar

from greenlet import greenlet

from service.domain.checkpoint import checkpoints
from service.domain.errors import Cancelled, DeadlineExceeded, Overloaded, Unavailable
from service.engine.cpus import lower_priority, show_thread_name

T = TypeVar("T")

# What has begun takes memory: limits on the pieces of one caller, and on those larger than `_SMALL`.
_MOST_OF_ONE_CALLER = 6
_MOST_LARGE = 6
_MOST_LARGE_OF_ONE_CALLER = 4
_SMALL = 16_384  # characters
_MAX_QUEUED = 1024  # pieces that have not begun
_MAX_QUEUED_OF_ONE_CALLER = 256
_SLICE_SECONDS = 0.005
_HINT_SECONDS = 1.0


class _Work:
    """One piece of work. The pool's thread owns it, but for `is_given_up`."""

    def __init__(self, function: Callable[[], Any], size: int, deadline_seconds: float, caller: Hashable) -> None:
        self.function: Callable[[], Any] | None = function
        self.context: contextvars.Context | None = contextvars.copy_context()  # so that log lines name the call
        self.turn: greenlet | None = None  # once it has begun
        self.size = size
        self.deadline_seconds = deadline_seconds
        self.caller = caller
        self.loop = asyncio.get_running_loop()
        self.outcome: asyncio.Future[Any] = self.loop.create_future()
        self.used = 0.0  # seconds it has run
        self.resumed = 0.0  # when its turn began
        self.is_given_up = False

    @property
    def is_large(self) -> bool:
        return self.size > _SMALL

    def report(self, result: Any, error: BaseException | None) -> None:
        """Report the outcome to the event loop. Thread-safe."""
        with suppress(RuntimeError):  # the loop is closed, so nothing waits
            self.loop.call_soon_threadsafe(_settle, self.outcome, result, error)


class ComputePool:
    """Runs functions that pass checkpoints. Call `run` on the event loop's thread only."""

    def __init__(self) -> None:
        """Start the thread: one started lazily might die for lack of memory before it signals that it runs, and the
        event loop would wait for it forever."""
        self._arrived = threading.Condition()  # guards `_queued`
        self._queued: list[_Work] = []
        self._begun: list[_Work] = []
        self._used: dict[Hashable, float] = {}  # seconds of work by caller of whom some has begun
        self._is_closed = False
        threading.Thread(target=self._serve, name="compute", daemon=True).start()

    async def run(
        self, function: Callable[[], T], size: int, deadline_seconds: float | None = None, caller: Hashable = ""
    ) -> T:
        """Run `function` on the thread and return its result. `size` is the size of its input in characters.

        Cancelling this coroutine ends the function at its next checkpoint, and so does the deadline (on the clock of
        `time.monotonic()`); neither waits for the function.

        Raises:
            DeadlineExceeded: the deadline passed.
            Overloaded: too much work is waiting already.
            Unavailable: the pool is closed.
        """
        work = _Work(function, size, float("inf") if deadline_seconds is None else deadline_seconds, caller)
        with self._arrived:
            self._check_room(caller)
            self._queued.append(work)
            self._arrived.notify()
        try:
            async with asyncio.timeout_at(deadline_seconds):
                result: T = await work.outcome
                return result
        except TimeoutError:
            raise _out_of_time() from None
        finally:
            self._give_up(work)

    def close(self) -> None:
        """End all work at its next checkpoint, without waiting for it."""
        with self._arrived:
            self._is_closed = True
            queued, self._queued = self._queued, []
            self._arrived.notify()
        for work in queued:
            work.report(None, _stopping())

    def _check_room(self, caller: Hashable) -> None:
        if self._is_closed:
            raise _stopping()
        num_own = sum(work.caller == caller for work in self._queued)
        if len(self._queued) >= _MAX_QUEUED or num_own >= _MAX_QUEUED_OF_ONE_CALLER:
            raise Overloaded(
                "{number} long texts are waiting to be processed, {num_own} of them this caller's",
                _HINT_SECONDS,
                number=len(self._queued),
                num_own=num_own,
                advice="try again later",
            )

    def _give_up(self, work: _Work) -> None:
        work.is_given_up = True
        with self._arrived:
            if work in self._queued:
                self._queued.remove(work)

    def _serve(self) -> None:
        """Give turns until the pool is closed and all work has ended."""
        lower_priority()
        show_thread_name()
        while (work := self._next()) is not None:
            self._give_turn(work)
            del work  # a waiting thread must not keep a call's data alive

    def _give_turn(self, work: _Work) -> None:
        turn = work.turn = work.turn or greenlet(self._compute)
        work.resumed = time.monotonic()
        turn.switch(work)
        seconds = time.monotonic() - work.resumed
        work.used += seconds
        self._used[work.caller] += seconds
        if turn.dead:
            self._begun.remove(work)
            if all(other.caller != work.caller for other in self._begun):
                del self._used[work.caller]

    def _next(self) -> _Work | None:
        """Wait for work and return what has the next turn; `None` once the pool is closed and nothing is left."""
        with self._arrived:
            while True:
                work = min((*self._begun, *filter(self._may_begin, self._queued)), key=self._order, default=None)
                if work is not None and work in self._queued:
                    self._queued.remove(work)
                    self._used.setdefault(work.caller, self._least_used())
                    self._begun.append(work)
                if work is not None or self._is_closed:
                    return work
                self._arrived.wait()

    def _may_begin(self, work: _Work) -> bool:
        num_large = Counter(other.caller for other in self._begun if other.is_large)
        return sum(other.caller == work.caller for other in self._begun) < _MOST_OF_ONE_CALLER and (
            not work.is_large
            or (num_large[work.caller] < _MOST_LARGE_OF_ONE_CALLER and num_large.total() < _MOST_LARGE)
        )

    def _order(self, work: _Work) -> tuple[bool, float, float, int]:
        """Return what sorts work by who comes first: what is to be ended, then what has run the least."""
        used = self._used.get(work.caller)
        is_to_end = work.is_given_up or self._is_closed
        return not is_to_end, self._least_used() if used is None else used, work.used, work.size

    def _least_used(self) -> float:
        """Return the initial usage of a new caller: idle time earns no credit."""
        return min(self._used.values(), default=0.0)

    def _compute(self, work: _Work) -> None:
        """Run a piece of work to its end, in a greenlet of its own."""
        function, context = work.function, work.context
        assert function is not None, "work runs once"
        assert context is not None
        work.function = work.context = None
        try:
            self._check_wanted(work)
            work.report(context.run(_checked, function, lambda: self._pass(work)), None)
        except BaseException as error:
            work.report(None, error)

    def _pass(self, work: _Work) -> None:
        """Pass a checkpoint: end the work, or yield to others."""
        if work.is_given_up or self._is_closed or time.monotonic() - work.resumed >= _SLICE_SECONDS:
            self._check_wanted(work)
            assert work.turn is not None
            assert work.turn.parent is not None, "the thread gave it the turn"
            work.turn.parent.switch()
            self._check_wanted(work)

    def _check_wanted(self, work: _Work) -> None:
        if self._is_closed:
            raise _stopping()
        if work.is_given_up:
            raise Cancelled("the caller disconnected.")
        if time.monotonic() >= work.deadline_seconds:
            raise _out_of_time()


def _checked(function: Callable[[], T], passed: Callable[[], None]) -> T:
    with checkpoints(passed):
        return function()


def _settle(outcome: "asyncio.Future[Any]", result: Any, error: BaseException | None) -> None:
    if outcome.done():
        return
    if error is None:
        outcome.set_result(result)
    else:
        outcome.set_exception(error)


def _stopping() -> Unavailable:
    return Unavailable("the server is stopping", advice="try another one")


def _out_of_time() -> DeadlineExceeded:
    return DeadlineExceeded("the deadline passed while the texts were being processed.")
