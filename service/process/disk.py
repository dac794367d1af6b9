"""What has been written reaches the disk, and one process writes at a time."""

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path


def flush(path: Path) -> None:
    """Flush the system's cache of a file or folder to disk, so that a power cut leaves what is there now."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def held(folder: Path, *, alone: bool) -> Iterator[None]:
    """Create a folder, and keep other processes from it: all if `alone`, else those that are to be alone.

    The end of a process ends its hold; nothing is held on a file system without locks. The folder is deleted if it is
    new, and stays empty.
    """
    is_new = not folder.exists()
    folder.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_NB | (fcntl.LOCK_EX if alone else fcntl.LOCK_SH))
        except BlockingIOError:
            raise
        except OSError:
            pass
        yield
    finally:
        os.close(descriptor)
        if is_new:
            with contextlib.suppress(OSError):
                folder.rmdir()
