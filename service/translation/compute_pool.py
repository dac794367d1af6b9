"""Thread pool for computations of calls: short work first, abandoned work is cancelled.

Each piece of work holds a thread until it is done, but only one thread runs at a time: Python runs on one CPU, which
the event loop and the engine need, too. With two running threads, small calls beside hostile texts took 294 ms (p99),
with one 120 ms (`tests/faults/test_attacks.py`). At its checkpoints, a piece that has run for a time slice yields to
the one that has run the least (least attained service first: Kleinrock, Queueing Systems II, 1976, section 4.4),
counted by caller and then by piece. So work of milliseconds never waits for work of seconds, and no caller delays
another one.

Each piece needs a stack of its own while it pauses: on one stack, it could not go on before those begun later.
"""

import asyncio
import contextvars
import queue
import threading
import time
from collections import Counter
from collections.abc import Callable, Hashable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, TypeVar

from service.domain.checkpoint import checkpoints
from service.domain.errors import Cancelled, DeadlineExceeded, Overloaded, Unavailable
from service.engine.cpus import lower_priority, show_thread_name

T = TypeVar("T")

_NUM_THREADS = 8
_NUM_RESERVED = 2  # that one caller leaves to others, and work larger than `_SMALL` to smaller work
_SMALL = 16_384  # characters
_MAX_QUEUED = 1024  # pieces waiting for a thread
_MAX_QUEUED_OF_ONE_CALLER = _MAX_QUEUED // 4
_SLICE_SECONDS = 0.005
# After so long, work lets the interpreter go for a moment. The event loop, which needs it several times for each call,
# would wait 5 ms each time (`sys.getswitchinterval`); shorter intervals for all threads made that worse.
_HELD_SECONDS = 0.001
_MOMENT_SECONDS = 0.000_001  # the system makes some 50 microseconds of it; 0 would take the interpreter back at once


def _taken_lock() -> threading.Lock:
    lock = threading.Lock()
    lock.acquire()
    return lock


@dataclass(slots=True, eq=False)
class _Work:
    """One piece of work. Its mutable state is guarded by the pool's lock, except for `is_given_up`."""

    function: Callable[[], Any] | None  # until it runs
    size: int
    deadline_seconds: float
    caller: Hashable
    context: contextvars.Context | None = field(default_factory=contextvars.copy_context)  # so that logs name the call
    loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.get_running_loop)
    outcome: "asyncio.Future[Any]" = field(default_factory=lambda: asyncio.get_running_loop().create_future())
    turn: threading.Lock = field(default_factory=_taken_lock)  # released when its next turn begins
    has_begun: bool = False  # and holds a thread
    used: float = 0.0  # seconds it has run
    resumed: float = 0.0  # when its turn, or the part not counted yet, began
    let_go: float = 0.0  # when it last let the interpreter go
    is_given_up: bool = False

    def run(self, passed: Callable[[], None]) -> Callable[[], None]:
        """Run the function, calling `passed` at checkpoints, and drop it; return a function reporting the outcome."""
        function, context = self.function, self.context
        assert function is not None, "work runs once"
        assert context is not None
        self.function = self.context = None
        try:
            result = context.run(_checked, function, passed)
        except BaseException as error:
            return self.failed(error)
        return lambda: self._report(result, None)

    def failed(self, error: BaseException) -> Callable[[], None]:
        return lambda: self._report(None, error)

    def _report(self, result: Any, error: BaseException | None) -> None:
        if not self.is_given_up:
            with suppress(RuntimeError):  # the loop is closed, so nothing waits
                self.loop.call_soon_threadsafe(_settle, self.outcome, result, error)


class ComputePool:
    """Runs functions that pass checkpoints. Call `run` on the event loop's thread only."""

    def __init__(self) -> None:
        """Start all threads now: one started lazily might die for lack of memory, and the loop wait for it forever."""
        self._lock = threading.Lock()
        self._waiting: list[_Work] = []  # for a turn; some of it has begun and holds a thread
        self._running: _Work | None = None
        self._begun: queue.SimpleQueue[_Work | None] = queue.SimpleQueue()  # taken by an idle thread; `None` ends one
        self._num_idle = _NUM_THREADS
        self._num_held: Counter[Hashable] = Counter()  # threads by caller
        self._num_large: Counter[Hashable] = Counter()  # threads with large work by caller
        self._used: dict[Hashable, float] = {}  # seconds of work by caller that holds threads
        self._is_closed = False
        for _ in range(_NUM_THREADS):
            threading.Thread(target=self._serve, name="compute", daemon=True).start()

    async def run(
        self, function: Callable[[], T], size: int, deadline_seconds: float | None = None, caller: Hashable = ""
    ) -> T:
        """Run `function` on a thread and return its result.

        `size` is the size of its input in characters. Cancelling this ends the function at its next checkpoint, without
        waiting, as does the deadline (of `time.monotonic()`).
        """
        work = _Work(function, size, float("inf") if deadline_seconds is None else deadline_seconds, caller)
        with self._lock:
            self._check_room(caller)
            self._waiting.append(work)
            self._go_on()
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
        with self._lock:
            self._is_closed = True
            queued = [work for work in self._waiting if not work.has_begun]
            self._waiting = [work for work in self._waiting if work.has_begun]
            self._go_on()
        for work in queued:
            work.failed(_stopping())()
        for _ in range(_NUM_THREADS):
            self._begun.put(None)

    def _check_room(self, caller: Hashable) -> None:
        if self._is_closed:
            raise _stopping()
        queued = [work.caller for work in self._waiting if not work.has_begun]
        num_own = queued.count(caller)
        if len(queued) >= _MAX_QUEUED or num_own >= _MAX_QUEUED_OF_ONE_CALLER:
            raise Overloaded(
                "long texts waiting to be processed: {number}, {num_own} of them this caller's",
                number=len(queued),
                num_own=num_own,
                advice="try again later",
            )

    def _give_up(self, work: _Work) -> None:
        """Drop work that has not begun; end work that has at its next turn, which is soon."""
        work.is_given_up = True
        with self._lock:
            if not work.has_begun and work in self._waiting:
                self._waiting.remove(work)

    def _serve(self) -> None:
        lower_priority()
        show_thread_name()
        while (work := self._begun.get()) is not None:
            report = self._ran(work)
            self._let_go(work)
            del work
            report()
            del report  # a waiting thread must not keep a call's data alive

    def _ran(self, work: _Work) -> Callable[[], None]:
        work.resumed = work.let_go = time.monotonic()
        try:
            self._check_wanted(work, work.resumed)
        except Exception as error:
            return work.failed(error)
        return work.run(lambda: self._check(work))

    def _check(self, work: _Work) -> None:
        """Pass a checkpoint: end the work, or yield to others."""
        now = time.monotonic()
        if now - work.let_go >= _HELD_SECONDS:
            time.sleep(_MOMENT_SECONDS)
            now = work.let_go = time.monotonic()
        if work.is_given_up or self._is_closed or now - work.resumed >= _SLICE_SECONDS:
            self._check_wanted(work, now)
            if self._has_yielded(work, now):
                work.turn.acquire()
                work.resumed = time.monotonic()
                self._check_wanted(work, work.resumed)

    def _check_wanted(self, work: _Work, now: float) -> None:
        if self._is_closed:
            raise _stopping()
        if work.is_given_up:
            raise Cancelled("the caller disconnected.")
        if now >= work.deadline_seconds:
            raise _out_of_time()

    def _has_yielded(self, work: _Work, now: float) -> bool:
        """Pass the turn on if other work has run less; return whether it did."""
        with self._lock:
            self._count(work, now)
            first = self._first()
            if first is None or self._order(work) <= self._order(first):
                return False
            self._waiting.append(work)
            self._grant(first)
            return True

    def _let_go(self, work: _Work) -> None:
        with self._lock:
            self._count(work, time.monotonic())
            self._num_idle += 1
            self._num_large[work.caller] -= work.size > _SMALL
            self._num_held[work.caller] -= 1
            if not self._num_held[work.caller]:
                del self._num_held[work.caller], self._num_large[work.caller], self._used[work.caller]
            self._running = None
            self._go_on()

    def _go_on(self) -> None:
        """Grant the next turn, holding the lock, unless one is taken."""
        if self._running is None and (first := self._first()) is not None:
            self._grant(first)

    def _first(self) -> _Work | None:
        return min(filter(self._may_run, self._waiting), key=self._order, default=None)

    def _grant(self, work: _Work) -> None:
        """Wake the thread of this work, and no other: each that wakes needs the interpreter, as the event loop does."""
        self._waiting.remove(work)
        self._running = work
        if work.has_begun:
            work.turn.release()
        else:
            work.has_begun = True
            self._num_idle -= 1
            self._used.setdefault(work.caller, self._least_used())
            self._num_held[work.caller] += 1
            self._num_large[work.caller] += work.size > _SMALL
            self._begun.put(work)

    def _may_run(self, work: _Work) -> bool:
        if work.has_begun:
            return True
        most = _NUM_THREADS - _NUM_RESERVED
        if not self._num_idle or self._num_held[work.caller] >= most:
            return False
        if work.size <= _SMALL:
            return True
        num_own, num_all = self._num_large[work.caller], self._num_large.total()
        return num_own < most - _NUM_RESERVED and num_all < most

    def _order(self, work: _Work) -> tuple[bool, float, float, int]:
        used = self._used.get(work.caller)
        is_wanted = not work.is_given_up  # else it only gives its thread back
        return is_wanted, self._least_used() if used is None else used, work.used, work.size

    def _least_used(self) -> float:
        """Return the initial usage of a new caller: idle time earns no credit."""
        return min(self._used.values(), default=0.0)

    def _count(self, work: _Work, now: float) -> None:
        seconds, work.resumed = now - work.resumed, now
        work.used += seconds
        self._used[work.caller] += seconds


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
