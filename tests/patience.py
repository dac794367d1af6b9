"""How long tests wait on a machine that is slow or busy: every bound is multiplied by how slow it was found to be."""

import os
import subprocess
import sys

# Measured once, by the first of the processes that a test run starts; the others are told.
_VARIABLE = "DRAGOMAN_TESTS_SLOWNESS"
_QUICK_SECONDS = 0.5  # that the work takes on a machine with nothing else to do
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
    """How many times longer than there it takes, by the wall's clock: others at work and quotas count as well.

    All CPUs work at once, as tests have them, for longer than a period of a quota is.
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
    """A bound on what takes less than `seconds` on a machine that is neither slow nor busy."""
    return seconds * SLOWNESS
