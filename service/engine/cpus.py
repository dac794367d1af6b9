"""The CPUs' capabilities, and how many of them this process may use: in a container perhaps fewer than there are."""

import os
from pathlib import Path

_CPU_INFO = Path("/proc/cpuinfo")
_CGROUP_QUOTA = Path("/sys/fs/cgroup/cpu.max")  # "<quota> <period>" in microseconds, or "max <period>"


def available_cpus(quota_file: Path = _CGROUP_QUOTA) -> int:
    """Return the number of CPUs allowed by affinity and by the container's quota, if there is one; at least 1."""
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        quota, period = quota_file.read_text(encoding="ascii").split()
        return max(1, min(allowed, round(int(quota) / int(period))))
    except (OSError, ValueError, ZeroDivisionError):  # no cgroup v2, or no limit
        return allowed


def saturates_int8(cpu_info: Path = _CPU_INFO) -> bool:
    """Return whether sums of int8 products may overflow: on x86 without VNNI they are added up in pairs of 16 bits."""
    try:
        lines = cpu_info.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return False
    flags = next((set(line.partition(":")[2].split()) for line in lines if line.startswith("flags")), None)
    return flags is not None and flags.isdisjoint({"avx512_vnni", "avx_vnni"})
