"""The time that a call must have left when the event loop gets to it."""

import math

from service.engine.costs import Average

_LATE_SHARE = 0.05  # of the accepted calls
_STEP = 1 / 16  # of the typical time, at each call that ends
_MOST = 3.0  # typical times; a larger bound can keep out all calls with short deadlines
_HALF_LIFE_SECONDS = 0.5


class LeastTime:
    """Learns the least time that calls must have left, from those that end in time and those that end late.

    Beyond the event loop's capacity, calls wait in gRPC's queue before the server sees them, first in, first out. All
    of them have little time left by then, and are processed and late. Calls that are rejected at sight cost less, so
    that the queue gets shorter until the others have the time they need. Waiting for the engine is not learned here:
    `service.engine.admission` knows it for each call.

    Follows a quantile by stochastic approximation (Robbins and Monro, "A Stochastic Approximation Method", 1951): a
    call that ends late raises it and one in time lowers it, so that `_LATE_SHARE` of the accepted calls are late. It
    is at most `_MOST` typical times, as calls with more time are late for other reasons, and halves every
    `_HALF_LIFE_SECONDS`, as a value that rejects all calls would otherwise stay.

    Times are in seconds; moments are of any monotonic clock.
    """

    def __init__(self) -> None:
        self._seconds = 0.0
        self._moved_seconds = 0.0  # the moment
        self._typical = Average()  # of calls in time

    def seconds(self, now_seconds: float) -> float:
        """Return the least time; 0 if calls are in time."""
        if not self._seconds:
            return 0.0
        return self._seconds * math.exp2((self._moved_seconds - now_seconds) / _HALF_LIFE_SECONDS)

    def in_time(self, seconds: float, now_seconds: float) -> None:
        """Learn from a call that ended in time; it took `seconds` apart from waiting for the engine."""
        self._typical.add(seconds, 1)
        if self._seconds:
            self._move(-_LATE_SHARE, now_seconds)

    def late(self, now_seconds: float) -> None:
        self._move(1.0 - _LATE_SHARE, now_seconds)

    def _move(self, steps: float, now_seconds: float) -> None:
        typical = self._typical.mean
        self._seconds = min(max(self.seconds(now_seconds) + steps * _STEP * typical, 0.0), _MOST * typical)
        self._moved_seconds = now_seconds
