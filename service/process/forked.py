"""A process forked from this one, and the connection between the two: reports one way, and the end of either both ways.

A child ends the connection by ending, however it ends, and so does its parent: a child notices that its parent was
killed. A child's beats tell its parent that it does not hang. The parent must have a single thread; what other threads
do is not copied, and locks that they hold stay locked.
"""

import contextlib
import json
import os
import signal
import socket
import traceback
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import NoReturn, Protocol

from service.process.standard_streams import leave

_MOST_REPORT_BYTES = 65_536
_BEAT = b"."


class Closable(Protocol):
    """Something of the parent's that its children must not keep open."""

    def close(self) -> None:
        """Close it."""


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a child ended before it was ready: the exit code, and the lines to print."""

    code: int
    lines: tuple[str, ...]


@dataclass(slots=True)
class Reports:
    """What a child has reported so far; `ready` is the text that it was ready with."""

    ready: str | None = None
    failure: Failure | None = None
    num_beats: int = 0
    has_ended: bool = field(default=False)


class Parent:
    """A child's connection to its parent."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection

    def fileno(self) -> int:
        """Return the descriptor; it becomes readable when the parent has ended."""
        return self._connection.fileno()

    def is_ready(self, text: str) -> None:
        """Report that this process does its work from now on; `text` is for the parent."""
        self._report({"ready": text})

    def has_failed(self, failure: Failure) -> None:
        self._report({"code": failure.code, "lines": [line[: _MOST_REPORT_BYTES // 8] for line in failure.lines[:4]]})

    def beat(self) -> None:
        """Show that this process does not hang. Never blocks, not even if the parent hangs."""
        with contextlib.suppress(OSError):
            self._connection.send(_BEAT, socket.MSG_DONTWAIT)

    def _report(self, report: object) -> None:
        with contextlib.suppress(OSError):  # the parent has ended
            self._connection.send(json.dumps(report).encode())


class Child:
    """A forked process. Its pid stays reserved until `end` has returned its exit code."""

    def __init__(self, pid: int, connection: socket.socket) -> None:
        self.pid = pid
        self.reports = Reports()
        self._connection = connection

    def fileno(self) -> int:
        """Return the descriptor; it is readable when there is something to `read`."""
        return self._connection.fileno()

    def read(self) -> None:
        """Add what the child has reported meanwhile to `reports`."""
        while not self.reports.has_ended:
            try:
                data = self._connection.recv(_MOST_REPORT_BYTES, socket.MSG_DONTWAIT)
            except BlockingIOError:
                return
            except OSError:
                data = b""
            if not data:
                self.reports.has_ended = True
                return
            if data == _BEAT:
                self.reports.num_beats += 1
                continue
            report = json.loads(data)
            if "ready" in report:
                self.reports.ready = report["ready"]
            else:
                self.reports.failure = Failure(report["code"], tuple(report["lines"]))

    def signal(self, number: signal.Signals) -> None:
        os.kill(self.pid, number)

    def end(self) -> int | None:
        """Return its exit code if it has ended: 128 and the number if by a signal, as shells do."""
        pid, status = os.waitpid(self.pid, os.WNOHANG)
        if not pid:
            return None
        code = os.waitstatus_to_exitcode(status)
        self.read()
        return 128 - code if code < 0 else code

    def close(self) -> None:
        self._connection.close()


def fork(run: Callable[[Parent], int], to_close: Iterable[Closable]) -> Child:
    """Run `run` in a forked process, which ends with the exit code that it returns; `to_close` is closed there.

    The child starts without this process's handlers of signals: SIGTERM ends it with 0, SIGHUP and SIGINT do nothing
    (a terminal sends them to all processes, and the parent tells its children what to do).
    """
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    try:
        pid = os.fork()
        if not pid:
            _live(run, theirs, (ours, *to_close), blocked)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
    theirs.close()
    return Child(pid, ours)


def _live(
    run: Callable[[Parent], int],
    connection: socket.socket,
    to_close: Iterable[Closable],
    blocked: set[int | signal.Signals],
) -> NoReturn:
    code = os.EX_SOFTWARE
    try:
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGCHLD, signal.SIGUSR1, signal.SIGUSR2):
            signal.signal(number, signal.SIG_DFL)
        for number in (signal.SIGHUP, signal.SIGINT):
            signal.signal(number, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, lambda *_: os._exit(os.EX_OK))
        for each in to_close:
            each.close()
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
        code = run(Parent(connection))
    except BaseException:
        traceback.print_exc()
    finally:  # never back into the parent's code
        leave(code)
