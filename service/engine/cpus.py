"""The CPUs: how many of them this process may use, and which of its threads come first."""

import os
import sys
import threading
from contextlib import suppress
from pathlib import Path

_CGROUP_QUOTA = Path("/sys/fs/cgroup/cpu.max")  # "<quota> <period>" in microseconds, or "max <period>"
# Of 19: with 1 or 2 rejections took as long as with 0, with 9 no less than with 4 (`benchmarks.overload`).
STEPS_BACK = 4


def available_cpus(quota_file: Path = _CGROUP_QUOTA) -> int:
    """Return the number of CPUs allowed by affinity and by the container's quota, if there is one; at least 1."""
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        quota, period = quota_file.read_text(encoding="ascii").split()
        return max(1, min(allowed, round(int(quota) / int(period))))
    except (OSError, ValueError, ZeroDivisionError):  # no cgroup v2, or no limit
        return allowed


def lower_priority() -> None:
    """Give the calling thread, and those it starts from now on, lower priority than the process's other threads.

    Workers keep every CPU busy. At equal priority, the event loop waits up to a 4 ms tick for a CPU each of the few
    times that a call wakes it, or is preempted while it holds the GIL. At five times its capacity, a server on two CPUs
    took 20 to 46 ms (99th percentile) to reject calls, and 10 to 11 ms with its workers at lower priority
    (`benchmarks.overload`). Other processes of the same control group take precedence as well.

    Linux has a niceness per thread, from -20 to 19, inherited by child threads. Nothing is done elsewhere, where it is
    per process, where a sandbox forbids it, or for the main thread, whose niceness is the reference.
    """
    own, main = threading.get_native_id(), os.getpid()
    if sys.platform == "linux" and own != main:
        with suppress(OSError):
            niceness = os.getpriority(os.PRIO_PROCESS, main) + STEPS_BACK
            os.setpriority(os.PRIO_PROCESS, own, min(niceness, 19))


def show_thread_name() -> None:
    """Give the calling thread its Python name, in at most 15 bytes, in the system's eyes too: in `top -H` and /proc.

    Child threads of libraries inherit it. Python does so itself from 3.14 on. Does nothing where there is no /proc.
    """
    own = threading.current_thread()
    with suppress(OSError):
        Path(f"/proc/self/task/{own.native_id}/comm").write_text(own.name, encoding="utf-8")
