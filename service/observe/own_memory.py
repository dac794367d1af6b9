"""This process's memory as its container's limit counts it."""

import os
from pathlib import Path

_ROLLUP = Path("/proc/self/smaps_rollup")
_STATM = Path("/proc/self/statm")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


def memory_bytes() -> float:
    """Return this process's resident memory in bytes, with pages that n processes share as 1/n each; 0 if unknown.

    A container is charged once for a page that its processes share, so theirs add up to what it is charged. Before
    Linux 4.14, shared pages count fully. See proc(5), Pss.
    """
    try:
        for line in _ROLLUP.read_bytes().splitlines():
            if line.startswith(b"Pss:"):
                return int(line.split()[1]) * 1024.0
    except OSError:
        pass
    try:
        return int(_STATM.read_bytes().split()[1]) * float(_PAGE_BYTES)
    except OSError:  # no Linux
        return 0.0
