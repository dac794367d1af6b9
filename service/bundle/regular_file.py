"""Opens files from strangers: regular ones. A pipe would be waited for, and some devices never end."""

import errno
import os
import stat
from collections.abc import Callable
from io import BufferedReader
from pathlib import Path

_KINDS: tuple[tuple[Callable[[int], bool], str], ...] = (
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISDIR, "a folder"),
)


class NotAFile(OSError):
    """A file that is not a regular one; `strerror` says what it is."""

    def __str__(self) -> str:
        return f"{self.filename} can't be read: {self.strerror}"


def open_regular(path: Path) -> BufferedReader:
    _check(path, path.stat().st_mode)  # before it is opened, as that is enough to make some devices do something
    flags = os.O_RDONLY | os.O_CLOEXEC
    try:
        descriptor = os.open(path, flags | os.O_NONBLOCK)
    except BlockingIOError:  # a regular file that another program has a lease on, which it gives back when asked
        descriptor = os.open(path, flags)
    try:
        _check(path, os.fstat(descriptor).st_mode)  # another one may be there now
    except OSError:
        os.close(descriptor)
        raise
    return os.fdopen(descriptor, "rb")


def check_regular(path: Path) -> None:
    """Check a file that a library opens by its path."""
    open_regular(path).close()


def _check(path: Path, mode: int) -> None:
    if not stat.S_ISREG(mode):
        kind = next((name for is_kind, name in _KINDS if is_kind(mode)), "a device")
        raise NotAFile(errno.EINVAL, f"it is {kind}, not a file", str(path))
