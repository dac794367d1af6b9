"""Timeouts for slow or busy machines: every bound is multiplied by the measured slowness of this one."""

import os
import subprocess
import sys

# Measured once, by the first process of a test run, which passes it on to the others.
_VARIABLE = "DRAGOMAN_TESTS_SLOWNESS"
_QUICK_SECONDS = 0.5  # duration of the work on an otherwise idle machine
_WORK = """
import time
def work():
    began = time.monotonic()
    for _ in range(10_000_000):
        pass
    return time.monotonic() - began
print(work())
"""
_MOST = 20.0


def _slowness() -> float:
    """Measure how many times longer the work takes here, in wall-clock time: other processes and quotas count as well.

    All CPUs work at once, as they do in tests, for longer than the period of a CPU quota.
    """
    workers = [
        subprocess.Popen([sys.executable, "-S", "-E", "-c", _WORK], stdout=subprocess.PIPE, text=True)
        for _ in range(os.cpu_count() or 1)
    ]
    seconds = max(float(worker.communicate()[0]) for worker in workers)
    return min(max(1.0, seconds / _QUICK_SECONDS), _MOST)


if _VARIABLE not in os.environ:
    os.environ[_VARIABLE] = str(_slowness())
SLOWNESS = float(os.environ[_VARIABLE])


def patient(seconds: float) -> float:
    """Return a bound for work that takes less than `seconds` on a machine that is neither slow nor busy."""
    return seconds * SLOWNESS
