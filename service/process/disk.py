"""Files and folders: what has been written reaches the disk, one process writes at a time, temporary ones are removed.

A folder for temporary files goes with its process, or if that was killed, when the next one starts.
"""

import fcntl
import os
import shutil
import stat
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_PREFIX = "dragoman-"
# A file in it, which is locked as long as its process runs. It has this name only when it is locked, so a folder that
# is just being made is never taken for one that was left.
_OWNER = "owner"


def flush(path: Path) -> None:
    """Flush the system's cache of a file or folder to disk, so that a power cut leaves what is there now."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def held(folder: Path, *, alone: bool) -> Iterator[None]:
    """Create a folder, and keep other processes from it: all if `alone`, else those that are to be alone.

    The hold ends with the process, and needs a file system with locks. A new folder is deleted if it stays empty.
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
            with suppress(OSError):
                folder.rmdir()


class TemporaryFolder:
    """A folder in that for temporary files, for this user only. It is made when it is asked for. Thread-safe."""

    def __init__(self) -> None:
        self._making = threading.Lock()
        self._path: Path | None = None
        self._descriptor = -1

    def path(self) -> Path:
        with self._making:
            if self._path is None:
                path = Path(tempfile.mkdtemp(prefix=_PREFIX))
                try:
                    self._descriptor = _locked(path)
                except BaseException:
                    shutil.rmtree(path, ignore_errors=True)
                    raise
                self._path = path
            return self._path

    def remove(self) -> None:
        with self._making:
            if self._path is not None:
                shutil.rmtree(self._path, ignore_errors=True)
                os.close(self._descriptor)
                self._path = None


def remove_leftovers() -> None:
    """Remove such folders of this user whose processes have ended; others are left alone."""
    with suppress(OSError):  # there is no folder for temporary files
        for path in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
            with suppress(OSError):  # it is none of ours, its process runs, or another process removes it, too
                _remove_left(path)


def _locked(folder: Path) -> int:
    new = folder / f"{_OWNER}.part"
    descriptor = os.open(new, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    new.rename(folder / _OWNER)
    return descriptor


def _remove_left(path: Path) -> None:
    found = path.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
        return
    descriptor = os.open(path / _OWNER, os.O_RDWR | os.O_NOFOLLOW)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(path, ignore_errors=True)
    finally:
        os.close(descriptor)
