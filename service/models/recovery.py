"""Decides when to restart a failed engine, and when to give up: a pure policy, with the caller's clock."""

from collections.abc import Callable

MAX_RESTARTS = 10  # in a row: they take some 80 s; a failure they do not fix may be fixed by a new process

_FIRST_DELAY_SECONDS = 0.1
_MOST_DELAY_SECONDS = 30.0
_GOOD_SECONDS = 60.0  # of work, after which earlier failures are forgotten


class Recovery:
    """One engine's failures. Each consecutive one doubles the delay before the next restart, from 0.1 s up to 30 s.

    A series ends when the engine has worked for a minute. A restart that fails is one more failure.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._num_failures = 0
        self._works_since: float | None = None
        self._due = 0.0

    @property
    def num_failures(self) -> int:
        """Return the number of consecutive failures."""
        return self._num_failures

    @property
    def has_given_up(self) -> bool:
        """Return whether no further restart is worth trying."""
        return self._num_failures > MAX_RESTARTS

    @property
    def seconds_left(self) -> float:
        """Return the time until the next restart; 0 when it is due."""
        return max(self._due - self._clock(), 0.0)

    def failed(self, stuck_seconds: float = 0.0) -> None:
        """Record a failure, or a failed restart, before which the engine had done nothing for `stuck_seconds`."""
        now = self._clock()
        if self._works_since is not None and now - stuck_seconds - self._works_since >= _GOOD_SECONDS:
            self._num_failures = 0
        self._works_since = None
        self._due = now + min(_FIRST_DELAY_SECONDS * 2.0**self._num_failures, _MOST_DELAY_SECONDS)
        self._num_failures += 1

    def restarted(self) -> None:
        """Record that the engine works again."""
        self._works_since = self._clock()
