"""How many CPUs this process may use: in a container that is less than what the machine has."""

import os
from pathlib import Path

_CGROUP_QUOTA = Path("/sys/fs/cgroup/cpu.max")  # "<quota> <period>" in microseconds, or "max <period>"


def available_cpus(quota_file: Path = _CGROUP_QUOTA) -> int:
    """CPUs by affinity, and by the container's quota where there is one; at least 1."""
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        quota, period = quota_file.read_text(encoding="ascii").split()
        return max(1, min(allowed, round(int(quota) / int(period))))
    except (OSError, ValueError, ZeroDivisionError):  # no cgroup v2, or no limit
        return allowed
