"""Checkpoints of long computations for a call, about a millisecond apart, at which they may be interrupted.

Code that scans a caller's text passes one at least every few thousand characters. On threads of the `ComputePool` it
yields to shorter work, and aborts abandoned work. Elsewhere it does nothing, so functions remain pure. (Trio's name.)
"""

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

T = TypeVar("T")

_current: ContextVar[Callable[[], None] | None] = ContextVar("checkpoint", default=None)


def checkpoint() -> None:
    """Yield to other work that should run first; raise a `ServiceError` if nobody waits for this work any more."""
    passed = _current.get()
    if passed is not None:
        passed()


def paced(items: Iterable[T], every: int = 64) -> Iterator[T]:
    """Yield the items, with a checkpoint before each `every` of them."""
    passed = _current.get()
    return iter(items) if passed is None else _interrupted(items, every, passed)


def _interrupted(items: Iterable[T], every: int, passed: Callable[[], None]) -> Iterator[T]:
    for number, item in enumerate(items):
        if number % every == 0:
            passed()
        yield item


@contextmanager
def checkpoints(passed: Callable[[], None]) -> Iterator[None]:
    """Call `passed` at each checkpoint within the `with` block."""
    token = _current.set(passed)
    try:
        yield
    finally:
        _current.reset(token)


def done_within(seconds: float, function: Callable[[], None]) -> bool:
    """Call a function, aborted at the first checkpoint after this much CPU time; return whether it finished.

    Reading the CPU time takes a system call, the clock does not: it is read only after half of `seconds` by the clock.
    """
    earliest, end = time.monotonic() + seconds / 2, 0.0

    def passed() -> None:
        nonlocal end
        if time.monotonic() > earliest:
            now = time.thread_time()
            end = end or now + seconds / 2
            if now > end:
                raise _TakesLongerError

    token = _current.set(passed)
    try:
        function()
    except _TakesLongerError:
        return False
    finally:
        _current.reset(token)
    return True


class _TakesLongerError(Exception):
    """A function passed a checkpoint too late."""
