"""How much of something each caller has used within the last minute."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass

MINUTE = 60.0


@dataclass(slots=True)
class _Window:
    """The amounts of one minute of the clock and of the minute before it."""

    number: int  # of the minute
    before: int = 0
    current: int = 0


class Usage:
    """The amount of something used within the last minute, by name.

    A sliding window counter keeps two numbers for each name: for the current minute and for the minute before, of which
    it counts the share that is less than a minute ago. A moving window would store every single token.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """Read the time in seconds from `clock`, which must not jump, as that of the day does when it is set."""
        self._clock = clock
        self._windows: dict[str, _Window] = {}

    def add(self, name: str, amount: int) -> None:
        if amount:
            window, _ = self._now(name)
            window.current += amount
            self._windows[name] = window

    def of(self, name: str) -> int:
        """Return the amount used, rounded up."""
        window, left = self._now(name)
        return math.ceil(window.before * left / MINUTE + window.current)

    def seconds_until_below(self, name: str, quota: int) -> float:
        """Return the seconds until the last minute's usage is below `quota`, if nothing is added; 0 if it is now."""
        window, left = self._now(name)
        if window.before * left / MINUTE + window.current < quota:
            return 0.0
        if window.current < quota:  # enough of the minute before leaves the window within this minute
            return left - (quota - window.current) * MINUTE / window.before
        return left + MINUTE * (1 - quota / window.current)

    def _now(self, name: str) -> tuple[_Window, float]:
        """Return the amounts as of now, and the seconds until this minute ends."""
        minute, seconds = divmod(self._clock(), MINUTE)
        window = self._windows.get(name) or _Window(int(minute))
        passed = int(minute) - window.number
        if passed:
            window = _Window(int(minute), before=window.current if passed == 1 else 0)
        return window, MINUTE - seconds
