"""The event loop of a server process (uvloop's, else asyncio's), its tasks and timers; threads that hand it work."""

import asyncio
import math
import os
import socket
import sys
from collections.abc import Callable, Coroutine, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

T = TypeVar("T")

if sys.platform == "win32":
    new_event_loop = asyncio.new_event_loop
else:
    import uvloop

    class _WakeSocket(socket.socket):
        """The socket to which a thread of gRPC writes a byte for each event of a call, some five, to wake the loop.

        gRPC reads one byte when the loop wakes, and then handles all events so far. The bytes of the others would wake
        the loop again, with nothing to do, two of four times a call. So this reads all bytes at once.
        """

        __slots__ = ()

        def recv(self, *_: object) -> bytes:
            return super().recv(4096)

    class EventLoop(uvloop.Loop):
        """uvloop's loop, which wakes once for all pending events of gRPC."""

        # The base class is generic in `args`, which this passes on as they are.
        def add_reader(self, fd: Any, callback: Callable[..., Any], *args: Any) -> None:  # type: ignore[override]
            """As the base class. gRPC's socket is known by the function that reads it, as it is not public."""
            reader = getattr(callback, "func", callback)
            if type(fd) is socket.socket and getattr(reader, "__name__", "") == "_handle_events":
                fd.__class__ = _WakeSocket
            super().add_reader(fd, callback, *args)

    new_event_loop = EventLoop


def run(main: Coroutine[Any, Any, T]) -> T:
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        return runner.run(main)


async def all_of(work: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """Return the results of coroutines that run concurrently; the first failure cancels the others, and is raised."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(each) for each in work]
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0] from None
    return [task.result() for task in tasks]


class Deadline:
    """A timer that calls a function, and that can be moved without a new timer. For the running event loop only."""

    def __init__(self, due: Callable[[], None]) -> None:
        self._due = due
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._timer_seconds = self._due_seconds = self._end_seconds = math.inf

    def set(self, seconds: float = math.inf, most_seconds: float = math.inf) -> None:
        """Call it in so many seconds, or when these are prolonged no more, but then in `most_seconds`."""
        now = self._loop.time()
        self._end_seconds = now + most_seconds
        self._due_seconds = now + min(seconds, most_seconds)
        if self._due_seconds < self._timer_seconds:
            self._set_timer()

    def prolong(self, seconds: float) -> None:
        """Call it in so many seconds from now, or at the end that was set."""
        self._due_seconds = min(self._loop.time() + seconds, self._end_seconds)

    def cancel(self) -> None:
        self._due_seconds = math.inf
        if self._timer is not None:
            self._timer.cancel()

    def _set_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer_seconds = self._due_seconds
        self._timer = self._loop.call_at(self._due_seconds, self._look)

    def _look(self) -> None:
        self._timer, self._timer_seconds = None, math.inf
        if self._loop.time() >= self._due_seconds:
            self._due()
        elif self._due_seconds < math.inf:
            self._set_timer()


@contextmanager
def patient_threads() -> Iterator[None]:
    """Let threads that are started in here, and those that they start, wait for a CPU instead of preempting others.

    gRPC's threads wake the event loop for each of some five events of a call. A thread that wakes preempts what runs:
    most often the event loop itself, 4.6 times a call. With Linux's SCHED_BATCH it waits until the loop pauses or has
    used its time slice, and then brings several events at once (sched(7)); an idle CPU still takes it at once. Does
    nothing where there is no such policy, or a sandbox forbids it.
    """
    if sys.platform != "linux":
        yield
        return
    # Threads inherit the policy of the one that starts them; 0: the calling one.
    policy = os.sched_getscheduler(0)
    if policy == os.SCHED_OTHER:
        _schedule(os.SCHED_BATCH)
    try:
        yield
    finally:
        if policy == os.SCHED_OTHER:
            _schedule(policy)


def _schedule(policy: int) -> None:
    with suppress(OSError):
        os.sched_setscheduler(0, policy, os.sched_param(0))
