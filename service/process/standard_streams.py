"""Standard output and standard error in any state: closed, full, broken, or never read.

Writing to a full pipe blocks until it is read, which must not keep a server from answering or exiting. A command may
block.
"""

import io
import os
import queue
import select
import sys
import threading
from collections.abc import Callable
from typing import Any, NoReturn

OUTPUT, ERROR = 1, 2

_MOST_WAITING_BYTES = 4 * 2**20


def hold_numbers() -> None:
    """Open unusable replacements for those of the three standard descriptors that are closed.

    Otherwise the next file or socket opened would get their number, and output meant for people would be written to it.
    """
    for number in (0, OUTPUT, ERROR):
        try:
            os.fstat(number)
        except OSError:  # open() returns the lowest free number, so it is this one
            os.open(os.devnull, os.O_WRONLY if number == 0 else os.O_RDONLY)


def leave(code: int) -> NoReturn:
    """End the process now, whatever its threads do; flush standard error for half a second at most."""
    if isinstance(sys.stderr, QueuedText):
        sys.stderr.drain(0.5)
    os._exit(code)


class Descriptor(io.RawIOBase):
    """Writes to a file descriptor, completely and immediately. Unbuffered, so nothing can fail or block later."""

    def __init__(self, number: int, failed: Callable[[OSError], object]) -> None:
        """Call `failed` with the error of each failed write; it raises the exception for the writer."""
        self._number = number
        self._failed = failed

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._number

    def isatty(self) -> bool:
        return os.isatty(self._number)

    def write(self, data: Any) -> int:
        """Write all of it; even empty data is written, and fails if other data would."""
        try:
            write_all(self._number, data)
        except OSError as error:
            self._failed(error)
        return len(data)


class QueuedText(io.TextIOBase):
    """Text for a file descriptor, written by a thread of its own. Printing never blocks, on any thread.

    Text beyond `_MOST_WAITING_BYTES`, or that can't be written, is dropped; when lines can be written again,
    `report_missing` is called on the writing thread with the number of dropped ones.
    """

    encoding = "utf-8"
    errors = "backslashreplace"

    def __init__(self, number: int, report_missing: Callable[[int], object]) -> None:
        self._number = number
        self._report_missing = report_missing
        self._chunks: queue.SimpleQueue[bytes | threading.Event] = queue.SimpleQueue()
        self._lock = threading.RLock()  # a finalizer may print on the thread that holds it
        self._waiting_bytes = 0
        self._num_missing = 0
        threading.Thread(target=self._write_chunks, name=f"descriptor {number}", daemon=True).start()

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._number

    def isatty(self) -> bool:
        return os.isatty(self._number)

    def write(self, text: str) -> int:
        """Queue the text for writing, or drop it. Never blocks."""
        data = text.encode(self.encoding, self.errors)
        with self._lock:
            if self._waiting_bytes and self._waiting_bytes + len(data) > _MOST_WAITING_BYTES:
                self._num_missing += text.count("\n")
            else:
                self._waiting_bytes += len(data)
                self._chunks.put(data)
        return len(text)

    def drain(self, seconds: float) -> bool:
        """Wait until all text so far is written, at most so long; return whether it is."""
        is_written = threading.Event()
        self._chunks.put(is_written)
        return is_written.wait(seconds)

    def _write_chunks(self) -> None:
        while True:
            chunk = self._chunks.get()
            if isinstance(chunk, threading.Event):
                chunk.set()
                continue
            is_written = True
            try:
                write_all(self._number, chunk)
            except OSError:
                is_written = False
            num_missing = 0
            with self._lock:
                self._waiting_bytes -= len(chunk)
                if not is_written:
                    self._num_missing += chunk.count(b"\n")
                elif self._waiting_bytes <= _MOST_WAITING_BYTES // 2:  # there is room to report it
                    num_missing, self._num_missing = self._num_missing, 0
            if num_missing:
                self._report_missing(num_missing)


def write_all(number: int, data: bytes) -> None:
    """Write to a file descriptor completely, even to a non-blocking one."""
    rest = memoryview(data)
    while True:
        try:
            rest = rest[os.write(number, rest) :]
        except BlockingIOError:
            waiting = select.poll()
            waiting.register(number, select.POLLOUT)
            waiting.poll()
        if not rest:
            return
