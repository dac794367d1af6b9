"""Usage in the last minute, by name; the only importer of limits.

Its sliding window counter keeps two numbers for each name: for the current minute and for the minute before, of which
it counts the share that is less than a minute ago. Its moving window would store every single token.
"""

from limits import RateLimitItemPerMinute
from limits.storage import MemoryStorage
from limits.strategies import SlidingWindowCounterRateLimiter

# Usage is only counted here and compared with quotas elsewhere: a call's tokens count even if they exceed a quota.
_UNBOUNDED = 2**62


class Usage:
    """The amount of something used within a minute, by name."""

    def __init__(self) -> None:
        self._storage = MemoryStorage()
        self._limiter = SlidingWindowCounterRateLimiter(self._storage)
        self._item = RateLimitItemPerMinute(_UNBOUNDED)

    def add(self, name: str, amount: int) -> None:
        """Add to the amount used."""
        if amount:
            self._limiter.hit(self._item, name, cost=amount)

    def seconds_until_below(self, name: str, quota: int) -> float:
        """Return the seconds until the last minute's usage is below `quota`, if nothing is added; 0 if it is now."""
        minute = self._item.get_expiry()
        before, before_left, current, current_left = self._storage.get_sliding_window(self._item.key_for(name), minute)
        if before * before_left / minute + current < quota:
            return 0.0
        if current < quota:  # enough of the previous minute's usage leaves the window within the current minute
            return before_left - (quota - current) * minute / before
        return (current_left - minute) + minute * (1 - quota / current)
