"""This process's memory as its container's limit counts it, and that limit."""

import contextlib
import math
import os
from pathlib import Path

from service.process.memory import resident_bytes

_ROLLUP = Path("/proc/self/smaps_rollup")
_GROUPS = Path("/proc/self/cgroup")  # lines of "<number>:<controllers>:<path>"; version 2 has no controllers there
_MOUNTED = Path("/sys/fs/cgroup")


def memory_bytes() -> float:
    """Return this process's resident bytes, with pages that n processes share as 1/n each (proc(5), Pss); 0 if unknown.

    So they add up to what a container is charged. Before Linux 4.14, shared pages count fully.
    """
    try:
        for line in _ROLLUP.read_bytes().splitlines():
            if line.startswith(b"Pss:"):
                return int(line.split()[1]) * 1024.0
    except OSError:
        pass
    return float(resident_bytes(os.getpid()))


def memory_limit_bytes(groups: Path = _GROUPS, mounted: Path = _MOUNTED) -> float:
    """Return how much memory this process's control group may use, in bytes; infinite without a limit (cgroups(7)).

    The lowest limit of the group and those above it counts, in version 2 `memory.max`, in 1 `memory.limit_in_bytes`.
    """
    limits = []
    with contextlib.suppress(OSError):
        for line in groups.read_text(encoding="utf-8").splitlines():
            _, controllers, path = line.split(":", 2)
            if controllers and "memory" not in controllers.split(","):
                continue
            top, name = (mounted / "memory", "memory.limit_in_bytes") if controllers else (mounted, "memory.max")
            own = top / path.lstrip("/")
            for group in (own, *own.parents):
                if group.is_relative_to(top):
                    limits.append(_limit(group / name))
    # Version 1 has no word for no limit: a number near 2 ** 63.
    return min((limit for limit in limits if limit < 2**60), default=math.inf)


def _limit(file: Path) -> float:
    try:
        return float(int(file.read_text(encoding="ascii")))
    except (OSError, ValueError):  # no such group here, or the word "max"
        return math.inf
