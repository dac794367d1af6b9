"""How long to wait before something that has failed is started again, and when to give it up."""

from collections.abc import Callable

FIRST_DELAY_SECONDS = 0.1
MOST_DELAY_SECONDS = 30.0
GOOD_SECONDS = 60.0  # of work, after which earlier failures are forgotten
MAX_RESTARTS = 10  # in a row: they take some 80 s; what they do not mend may be mended by whoever starts the program


class Backoff:
    """Consecutive failures of one thing. Each doubles the delay before the next restart, up to a maximum.

    A series ends when the thing has worked for long enough. A restart that fails is one more failure.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._num_failures = 0
        self._works_since: float | None = None
        self._due = 0.0

    @property
    def num_failures(self) -> int:
        return self._num_failures

    @property
    def has_given_up(self) -> bool:
        return self._num_failures > MAX_RESTARTS

    @property
    def seconds_left(self) -> float:
        """Return the time until the next restart; 0 when it is due."""
        return max(self._due - self._clock(), 0.0)

    def failed(self, stuck_seconds: float = 0.0) -> None:
        """Record a failure, or a failed restart, before which the thing had done nothing for `stuck_seconds`."""
        now = self._clock()
        if self._works_since is not None and now - stuck_seconds - self._works_since >= GOOD_SECONDS:
            self._num_failures = 0
        self._works_since = None
        self._due = now + min(FIRST_DELAY_SECONDS * 2.0**self._num_failures, MOST_DELAY_SECONDS)
        self._num_failures += 1

    def restarted(self) -> None:
        """Record that the thing works again, from now on."""
        self._works_since = self._clock()
