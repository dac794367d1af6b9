"""Tells other threads whether the event loop still runs: a bug may hold it up, or a machine that stands still."""

import asyncio
import time
from collections.abc import Callable

_BEAT_SECONDS = 1.0


class Heartbeat:
    """A beat a second. `start` and `stop` belong to the event loop's thread; any may ask for `silent_seconds`."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._beat_at_seconds = clock()
        self._next: asyncio.TimerHandle | None = None

    def silent_seconds(self) -> float:
        """How long ago the last beat was: about a second at most, while all is well."""
        return self._clock() - self._beat_at_seconds

    def start(self) -> None:
        """Beat until `stop`."""
        self._beat(asyncio.get_running_loop())

    def stop(self) -> None:
        """Beat no more."""
        if self._next is not None:
            self._next.cancel()

    def _beat(self, loop: asyncio.AbstractEventLoop) -> None:
        self._beat_at_seconds = self._clock()
        self._next = loop.call_later(_BEAT_SECONDS, self._beat, loop)
