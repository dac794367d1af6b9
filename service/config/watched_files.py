"""Files that may be replaced while the server runs: they are read again, unless the new contents can't be used."""

import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Generic, TypeVar

_LOG = logging.getLogger(__name__)

_Stamp = tuple[tuple[int, int, int, int] | None, ...]

T = TypeVar("T")


class FileProblem(Exception):
    """Files of the settings can't be used; one line with their names, the reason and the remedy."""


class WatchedFiles(Generic[T]):
    """The combined contents of some files. Call `refresh` from one thread at a time; any may read `current`."""

    def __init__(self, paths: Sequence[Path], read: Callable[[], T]) -> None:
        """Read the files with `read`, which reads all of `paths` and raises `FileProblem` for invalid ones."""
        self._paths = tuple(paths)
        self._read = read
        self._stamp = self._look()
        self.current = read()
        self._problem = ""
        self._is_logged = False

    def refresh(self) -> bool:
        """Read the files again if they have changed; return whether the contents in use were replaced.

        Unusable ones leave them, and are logged once, when found twice in a row: files are often replaced one by one.
        """
        stamp = self._look()
        if stamp == self._stamp:
            self._problem = ""
            return False
        try:
            fresh = self._read()
        except FileProblem as problem:
            is_same = str(problem) == self._problem
            if is_same and not self._is_logged:
                _LOG.error("%s The previous contents stay in use.", problem)
            self._is_logged = is_same
            self._problem = str(problem)
            return False
        if self._look() != stamp:  # changed while they were read
            return False
        self._stamp, self.current, self._problem, self._is_logged = stamp, fresh, "", False
        return True

    def _look(self) -> _Stamp:
        return tuple(map(_stamp_of, self._paths))


def _stamp_of(path: Path) -> tuple[int, int, int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def read_file(path: Path, what: str) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise FileProblem(f"{path} ({what}) can't be read: {error.strerror}.") from error


def warn_if_world_readable(path: Path, what: str) -> None:
    try:
        is_open = bool(path.stat().st_mode & 0o004)
    except OSError:
        return  # reported by the code that reads it
    if is_open:
        _LOG.warning("%s (%s) can be read by every user of this machine; chmod o-r it.", path, what)
