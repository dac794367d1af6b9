"""A heartbeat that shows other threads whether the event loop still runs: a bug or a suspended machine may block it."""

import asyncio
import time
from collections.abc import Callable

_BEAT_SECONDS = 1.0


class Heartbeat:
    """One beat per second. Call `start` and `stop` on the event loop's thread; `silent_seconds` is thread-safe."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._beat_at_seconds = clock()
        self._next: asyncio.TimerHandle | None = None

    def silent_seconds(self) -> float:
        """Return the time since the last beat: normally about a second at most."""
        return self._clock() - self._beat_at_seconds

    def start(self) -> None:
        """Start beating."""
        self._beat(asyncio.get_running_loop())

    def stop(self) -> None:
        """Stop beating."""
        if self._next is not None:
            self._next.cancel()

    def _beat(self, loop: asyncio.AbstractEventLoop) -> None:
        self._beat_at_seconds = self._clock()
        self._next = loop.call_later(_BEAT_SECONDS, self._beat, loop)
