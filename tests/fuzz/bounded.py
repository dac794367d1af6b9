"""Targets that must be fast: if a few thousand bytes are slow, the code takes quadratic time or worse."""

import time
from collections.abc import Callable

Target = Callable[[bytes], None]

MAX_BYTES = 4096
MAX_SECONDS = 1.0


class TooSlow(Exception):
    """An input of at most `MAX_BYTES` took more than `MAX_SECONDS` of this process's CPU time."""


def bounded(target: Target) -> Target:
    """Wrap a target so that it also fails where it takes too long; what it loads the first time is not counted."""
    target(b"")

    def run(data: bytes) -> None:
        started = time.process_time()
        target(data)
        seconds = time.process_time() - started
        if seconds > MAX_SECONDS:
            raise TooSlow(f"{len(data)} bytes took {seconds:.2f} s; allowed: {MAX_SECONDS:g} s.")

    return run
