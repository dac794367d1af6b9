"""Standard output and standard error, whatever they are: closed, full, broken, or never read by anybody.

Whoever writes to a pipe that is full waits until it is read, and a server must not wait for that: not to answer, and
not to end. A command has nothing else to do, and waits; but where writing fails, it says so in its own way.
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
_LAST_LINES_SECONDS = 0.5


def hold_numbers() -> None:
    """Have those of the three standard descriptors that are closed stand for something that can't be used.

    Else the next file or socket that is opened would get their number, and what is meant for people be written to it.
    """
    for number in (0, OUTPUT, ERROR):
        try:
            os.fstat(number)
        except OSError:  # the lowest free number is the one that is opened, so it is this one
            os.open(os.devnull, os.O_WRONLY if number == 0 else os.O_RDONLY)


def leave(code: int) -> NoReturn:
    """End the process now, whatever its threads do. Its last lines are written if that takes no time to speak of."""
    drain(_LAST_LINES_SECONDS)
    os._exit(code)


def drain(seconds: float = _LAST_LINES_SECONDS) -> None:
    """Wait until what the process has told on standard error so far is written, for a bounded time."""
    if isinstance(sys.stderr, QueuedText):
        sys.stderr.drain(seconds)


class Descriptor(io.RawIOBase):
    """Writes to a file descriptor, whole and at once. Nothing is kept, so nothing can fail later, or be waited for."""

    def __init__(self, number: int, failed: Callable[[OSError], object]) -> None:
        """`failed` is told of each write that fails, and raises what the writer is to see."""
        self._number = number
        self._failed = failed

    def writable(self) -> bool:
        """As `io.RawIOBase`."""
        return True

    def fileno(self) -> int:
        """As `io.RawIOBase`."""
        return self._number

    def isatty(self) -> bool:
        """As `io.RawIOBase`."""
        return os.isatty(self._number)

    def write(self, data: Any) -> int:
        """Write all of it; nothing is written, too, and fails where something would."""
        try:
            write_all(self._number, data)
        except OSError as error:
            self._failed(error)
        return len(data)


class QueuedText(io.TextIOBase):
    """Text for a file descriptor that a thread of its own writes. Who prints never waits, on any thread.

    What does not fit into the queue, of `_MOST_WAITING_BYTES`, is left out, as is what can't be written; when lines
    can be written again, `tell_missing` is called with the number of those that were left out, on the writing thread.
    """

    encoding = "utf-8"
    errors = "backslashreplace"

    def __init__(self, number: int, tell_missing: Callable[[int], object]) -> None:
        self._number = number
        self._tell_missing = tell_missing
        self._chunks: queue.SimpleQueue[bytes | threading.Event] = queue.SimpleQueue()
        self._lock = threading.RLock()  # a finalizer may print on the thread that holds it
        self._waiting_bytes = 0
        self._num_missing = 0
        threading.Thread(target=self._write_chunks, name=f"descriptor {number}", daemon=True).start()

    def writable(self) -> bool:
        """As `io.TextIOBase`."""
        return True

    def fileno(self) -> int:
        """As `io.TextIOBase`."""
        return self._number

    def isatty(self) -> bool:
        """As `io.TextIOBase`."""
        return os.isatty(self._number)

    def write(self, text: str) -> int:
        """Have the text written soon, or left out. Never waits."""
        data = text.encode(self.encoding, self.errors)
        with self._lock:
            if self._waiting_bytes and self._waiting_bytes + len(data) > _MOST_WAITING_BYTES:
                self._num_missing += text.count("\n")
            else:
                self._waiting_bytes += len(data)
                self._chunks.put(data)
        return len(text)

    def drain(self, seconds: float) -> bool:
        """Wait until all that was printed so far is written, at most so long; whether it is."""
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
                elif self._waiting_bytes <= _MOST_WAITING_BYTES // 2:  # there is room to tell it
                    num_missing, self._num_missing = self._num_missing, 0
            if num_missing:
                self._tell_missing(num_missing)


def write_all(number: int, data: bytes) -> None:
    """Write to a file descriptor, also to one that does not wait by itself.

    Raises:
        OSError: writing failed; a part may be written.
    """
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
