"""Gives compute threads lower priority than the threads that serve callers."""

import os
import sys
import threading
from contextlib import suppress

STEPS_BACK = 4  # of 19: with 1 or 2 rejections took as long as with 0, with 9 no less than with 4


def lower_priority() -> None:
    """Give the calling thread, and those it starts from now on, lower priority than the process's other threads.

    Workers keep every CPU busy. At equal priority, each of the handful of times that a call wakes the event loop, it
    waits up to a 4 ms tick for a CPU, or is preempted while it holds the GIL. At five times its capacity, a server on
    two CPUs took 20 to 46 ms (99th percentile) to reject calls, and 10 to 11 ms with its workers at lower priority.
    Other processes of the same control group take precedence as well.

    Linux has a niceness per thread, from -20 to 19, inherited by child threads; elsewhere it is per process, and
    nothing is done. Nor is anything done where a sandbox forbids it, or for the main thread, whose niceness is the
    reference.
    """
    own, main = threading.get_native_id(), os.getpid()
    if sys.platform == "linux" and own != main:
        with suppress(OSError):
            niceness = os.getpriority(os.PRIO_PROCESS, main) + STEPS_BACK
            os.setpriority(os.PRIO_PROCESS, own, min(niceness, 19))
