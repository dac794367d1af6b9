"""`python -m tests.unit.process.supervised FOLDER SECONDS KIND...`: a program that supervises one process of each kind.

It prints "ready" when all are, and writes each process's pid to FOLDER. SECONDS is how long one may be silent. Pytest
itself has threads, and must not fork.
"""

import functools
import logging
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

from service.process import backoff, hangs
from service.process.forked import Failure, Parent
from service.process.supervision import ChildFailed, Role, Supervision


def steady(parent: Parent, _: int) -> int:
    """Work until told to stop."""
    parent.is_ready("steady")
    return wait()


def last(parent: Parent, _: int) -> int:
    """Work until told to stop, and say so."""

    def stop(*_: object) -> None:
        print("the last one stops", flush=True)
        os._exit(0)

    signal.signal(signal.SIGTERM, stop)
    parent.is_ready("last")
    return wait()


def broken(parent: Parent, _: int) -> int:
    """Tell why it can't start."""
    parent.has_failed(Failure(78, ("it is broken.", "mend it")))
    return 78


def silent(_: Parent, __: int) -> int:
    """End before it is ready, without a word."""
    return 3


def once(parent: Parent, number: int) -> int:
    """Work the first time it is started, and never again."""
    if number:
        return 3
    parent.is_ready("once")
    return wait()


def stubborn(parent: Parent, _: int) -> int:
    """Ignore what it is told."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    parent.is_ready("stubborn")
    return wait()


def beating(parent: Parent, _: int) -> int:
    """Work, and show it, until told to stop."""
    parent.is_ready("beating")
    while True:
        parent.beat()
        time.sleep(0.05)


def loading(parent: Parent, _: int) -> int:
    """Show it once, and take long to be ready."""
    parent.beat()
    time.sleep(2 * hangs.HUNG_SECONDS)  # longer than one that is ready may be silent
    return beating(parent, _)


def wait() -> int:
    while True:
        time.sleep(60)


def numbered(folder: Path, name: str, work: Callable[[Parent, int], int], parent: Parent) -> int:
    """Work with the number of times that this role was started before."""
    number = len(list(folder.glob(f"{name}.*")))
    (folder / f"{name}.{number}").write_text(str(os.getpid()))
    return work(parent, number)


def main(folder: Path, hung_seconds: float, kinds: list[str]) -> int:
    """Supervise, and return the exit code."""
    hangs.HUNG_SECONDS, hangs.ALL_SILENT_SECONDS = hung_seconds, 5 * hung_seconds
    backoff.FIRST_DELAY_SECONDS = backoff.MOST_DELAY_SECONDS = 0.01
    logging.basicConfig(level="INFO", format="%(message)s")
    roles = [
        Role(kind, functools.partial(numbered, folder, kind, globals()[kind]), stays_last=kind == "last")
        for kind in kinds
    ]
    try:
        return Supervision(roles, lambda texts: print("ready", sorted(texts.values()), flush=True), 1.0).run()
    except ChildFailed as error:
        print(error.failure)
        return error.failure.code


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), float(sys.argv[2]), sys.argv[3:]))
