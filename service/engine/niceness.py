"""Sets threads that compute back behind those that talk to callers."""

import os
import sys
import threading
from contextlib import suppress

STEPS_BACK = 4  # of 19: with 1 and 2 refusals took as long as without, with 9 no less than with 4


def set_back() -> None:
    """Let the calling thread, and those that it starts from now on, go after the process's other threads.

    Lanes keep every CPU busy, and on equal terms the event loop waits for a CPU, up to a tick of 4 ms, at each of the
    handful of wakings that a call takes, if it is not set aside in the midst of holding Python's lock. At five times
    the load that it can do, a server on two CPUs refused calls within 20 to 46 ms (99 %), with its lanes set back
    within 10 to 11. Other processes of the same control group go first as well.

    Linux counts a thread's niceness from -20 to 19, and its children inherit it; other systems keep one for the whole
    process, and nothing is done. Nor where a sandbox forbids it, nor to the main thread, from which steps are counted.
    """
    own, main = threading.get_native_id(), os.getpid()
    if sys.platform == "linux" and own != main:
        with suppress(OSError):
            niceness = os.getpriority(os.PRIO_PROCESS, main) + STEPS_BACK
            os.setpriority(os.PRIO_PROCESS, own, min(niceness, 19))
