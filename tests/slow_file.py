"""A file that takes long to open, as on a network file system that does not respond."""

import contextlib
import fcntl
import os
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest


@contextlib.contextmanager
def slow_to_open(path: Path) -> Iterator[Callable[[], bool]]:
    """Block other processes that open the file until the block is left, or for 45 s (Linux's lease-break-time).

    Yield a function that returns whether a process is waiting. Call it in the main thread only: Linux notifies by a
    signal.
    """
    waits = threading.Event()
    before = signal.signal(signal.SIGIO, lambda *_: waits.set())
    descriptor = os.open(path, os.O_RDWR)
    try:
        try:
            fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_WRLCK)
        except OSError as error:
            pytest.skip(f"this file system has no leases: {error}")
        yield waits.is_set
    finally:
        os.close(descriptor)
        signal.signal(signal.SIGIO, before)
