"""How the system schedules threads that only hand work on to the event loop."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress


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
