"""The event loop of a server process, its tasks, and threads that hand work on to it.

It is uvloop's, which is in C, where there is one, else asyncio's.
"""

import asyncio
import os
import sys
from collections.abc import Coroutine, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

try:
    import uvloop
except ImportError:  # on Windows
    new_event_loop = asyncio.new_event_loop
else:
    new_event_loop = uvloop.new_event_loop

T = TypeVar("T")


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine on a new event loop and return its result, as `asyncio.run`."""
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


@contextmanager
def patient_threads() -> Iterator[None]:
    """Let threads that are started in here, and those that they start, wait for a CPU instead of preempting others.

    gRPC's threads read sockets and queues, and wake the event loop for each of some five events of a call. A thread
    that wakes preempts what runs: most often the event loop itself, which it has just woken, 4.6 times a call.
    With Linux's SCHED_BATCH it waits until the loop pauses or has used its time slice, and then brings several events
    at once (sched(7)). An idle CPU still takes it at once.

    Does nothing where there is no such policy, or where a sandbox forbids it.
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
