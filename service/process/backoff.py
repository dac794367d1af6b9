"""How long to wait before something that has failed is started again."""

from collections.abc import Callable


class Backoff:
    """Consecutive failures of one thing. Each doubles the delay before the next restart, up to a maximum.

    A series ends when the thing has worked for long enough. A restart that fails is one more failure.
    """

    def __init__(
        self, clock: Callable[[], float], *, first_seconds: float, most_seconds: float, good_seconds: float
    ) -> None:
        """Delay the first restart by `first_seconds` and none by more than `most_seconds`; forget all failures after
        `good_seconds` of work."""
        self._clock = clock
        self._first_seconds = first_seconds
        self._most_seconds = most_seconds
        self._good_seconds = good_seconds
        self._num_failures = 0
        self._works_since: float | None = None
        self._due = 0.0

    @property
    def num_failures(self) -> int:
        """Return the number of consecutive failures."""
        return self._num_failures

    @property
    def seconds_left(self) -> float:
        """Return the time until the next restart; 0 when it is due."""
        return max(self._due - self._clock(), 0.0)

    def failed(self, stuck_seconds: float = 0.0) -> None:
        """Record a failure, or a failed restart, before which the thing had done nothing for `stuck_seconds`."""
        now = self._clock()
        if self._works_since is not None and now - stuck_seconds - self._works_since >= self._good_seconds:
            self._num_failures = 0
        self._works_since = None
        self._due = now + min(self._first_seconds * 2.0**self._num_failures, self._most_seconds)
        self._num_failures += 1

    def restarted(self) -> None:
        """Record that the thing works again, from now on."""
        self._works_since = self._clock()
