"""Downloads one file: resumes where an earlier attempt ended, and retries after a failed connection."""

import shutil
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

from service.bundle.errors import BundleError, one_line

ATTEMPTS = 5
_PROGRESS_SECONDS = 5.0

T = TypeVar("T")


class Unreachable(Exception):
    """A request failed in a way that another attempt may not; the message says how."""


def say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def retried(request: Callable[[], T]) -> T:
    """Return what a request returns, after up to `ATTEMPTS` attempts with pauses of 1, 2, 4 and 8 s between them."""
    for attempt in range(ATTEMPTS):
        try:
            return request()
        except Unreachable as error:
            problem = one_line(error)
        if attempt + 1 < ATTEMPTS:
            say(f"{problem}; attempt {attempt + 2} of {ATTEMPTS} follows")
            time.sleep(2.0**attempt)
    raise BundleError(f"{problem}; {ATTEMPTS} attempts failed. Run this again to resume where it stopped.")


def download(name: str, read: Callable[[int], Iterator[bytes]], size: int, path: Path) -> None:
    """Complete the file at `path`, which may have some of the `size` bytes already.

    Nothing of it is verified. `read` yields what follows from an offset on, and may end early; then it is called again.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab") as file:
        if path.stat().st_size > size:
            file.truncate(0)
        have = path.stat().st_size
        free = shutil.disk_usage(path.parent).free
        if size - have > free:
            raise BundleError(f"{name} needs {size - have} more bytes; {path.parent} has {free} free.")
        told, idle = time.monotonic(), 0
        while have < size:
            before = have
            for chunk in read(have):
                have += len(chunk)
                if have > size:
                    raise BundleError(f"{name} is longer than the expected {size} bytes.")
                file.write(chunk)
                if time.monotonic() - told >= _PROGRESS_SECONDS:
                    told = time.monotonic()
                    say(f"{name}: {have / 1e6:.0f} of {size / 1e6:.0f} MB")
            idle = 0 if have > before else idle + 1
            if idle == ATTEMPTS:
                raise BundleError(f"{name} ends after {have} of {size} bytes.")
