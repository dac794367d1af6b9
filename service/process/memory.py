"""The process's memory: how it is returned to the system, and which errors mean that there is none left."""

import errno
import gc
import os
from pathlib import Path
from typing import Any

_M_MMAP_THRESHOLD = -3  # glibc's malloc.h

# Errors of C++ and kernels are recognizable only by their text. Threads can't start without memory for their stacks.
_SIGNS = (
    "bad_alloc",
    "bad allocation",
    "failed to allocate memory",
    "cannot allocate memory",
    "failed to map segment",
    "can't start new thread",
    "pthread_create",
)


def map_large_blocks() -> None:
    """Make the C library map each block of a mebibyte or more separately, and unmap it when it is freed.

    glibc starts that way, but freeing such a block raises the threshold, up to 32 MiB: weights of later models then lie
    among smaller blocks, and are not returned. Over twelve replacements under traffic a process held 640 to 780 MiB;
    with the threshold fixed, 360 to 420 MiB. See mallopt(3).
    """
    set_option = getattr(_c_library(), "mallopt", None)
    if set_option is not None:
        set_option(_M_MMAP_THRESHOLD, 1 << 20)


def give_back() -> None:
    """Collect garbage, return free memory to the system, and freeze all objects so far.

    Stops all threads for tens of ms.

    A loaded server has some 70,000 permanent objects. Traversing them stopped all threads for as long, again and again
    under load, which is why they are frozen. Those frozen before are collected among, too.

    glibc keeps freed memory for the arena of the thread that allocated it: after some reloads a process would hold
    several times the memory it uses. See malloc_trim(3); other C libraries have no such call, and nothing is returned.
    """
    gc.unfreeze()
    gc.collect()
    gc.freeze()
    # New objects after which the collector looks for garbage, by default 700. Calls under way leave little that only it
    # finds: with 10,000, 96 callers of the shipped model got 519 calls/s instead of 482 (`benchmarks.serving`).
    gc.set_threshold(10_000)
    trim = getattr(_c_library(), "malloc_trim", None)
    if trim is not None:
        trim(0)


def resident_bytes(pid: int) -> int:
    """Return how much memory a process has at the moment; 0 if that is not known, or it has ended."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1])  # see proc_pid_statm(5)
    except (OSError, ValueError, IndexError):
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")


def memory_shortage(error: BaseException) -> BaseException | None:
    """Return the earliest error in this one's chain, itself included, due to a lack of memory; `None` if none is."""
    found: BaseException | None = None
    each: BaseException | None = error
    while each is not None:
        if _is_shortage(each):
            found = each
        each = each.__cause__ or each.__context__
    return found


def _is_shortage(error: BaseException) -> bool:
    if isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno == errno.ENOMEM):
        return True
    said = str(error).lower()
    return any(sign in said for sign in _SIGNS)


def _c_library() -> Any:
    import ctypes  # only servers need it, not every command

    return ctypes.CDLL(None)
