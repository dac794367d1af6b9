"""What was used in the last minute, by name; the only importer of limits.

Its sliding window counter keeps two numbers for each name: those of this minute and of the minute before, of which it
counts the share that is not yet a minute ago. Its moving window would keep every single token.
"""

from limits import RateLimitItemPerMinute
from limits.storage import MemoryStorage
from limits.strategies import SlidingWindowCounterRateLimiter

# What is used is counted here and held against quotas elsewhere: a call's tokens count even where they exceed one.
_UNBOUNDED = 2**62


class Usage:
    """How much of something was used within a minute."""

    def __init__(self) -> None:
        self._storage = MemoryStorage()
        self._limiter = SlidingWindowCounterRateLimiter(self._storage)
        self._item = RateLimitItemPerMinute(_UNBOUNDED)

    def add(self, name: str, amount: int) -> None:
        """So much more was used."""
        if amount:
            self._limiter.hit(self._item, name, cost=amount)

    def seconds_until_below(self, name: str, quota: int) -> float:
        """When less than `quota` will have been used in the minute before, if nothing is added; 0: now."""
        minute = self._item.get_expiry()
        before, before_left, current, current_left = self._storage.get_sliding_window(self._item.key_for(name), minute)
        if before * before_left / minute + current < quota:
            return 0.0
        if current < quota:  # enough of what was used in the minute before leaves the window while this one lasts
            return before_left - (quota - current) * minute / before
        return (current_left - minute) + minute * (1 - quota / current)
