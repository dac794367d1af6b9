"""Which of several processes hangs, judged by the time since each has last shown that it runs.

A machine that was suspended, or has far too much to do, silences all of them: none is ended for that at once.
"""

import time
from collections.abc import Sequence

LOOK_SECONDS = 1.0  # between two beats of a process, and two looks at what should run
POLL_SECONDS = 0.02  # between two looks at what is about to end
# How long one may be silent, for its supervisor and for probes: what does not run answers no calls either. If all are
# silent, that is rather the machine's fault than that of each.
HUNG_SECONDS = 10.0
ALL_SILENT_SECONDS = 6 * HUNG_SECONDS


def hung(silent_seconds: Sequence[float]) -> int | None:
    """Return the index of the process that has been silent for longest, if that is too long; else `None`."""
    if not silent_seconds:
        return None
    longest = max(silent_seconds)
    limit = HUNG_SECONDS if min(silent_seconds) < HUNG_SECONDS / 2 else ALL_SILENT_SECONDS
    return silent_seconds.index(longest) if longest >= limit else None


class Presence:
    """Measures the time during which this process could see what others do: not while it, or the machine, slept."""

    def __init__(self) -> None:
        self._seconds = 0.0
        self._looked_at_seconds = time.monotonic()

    def seconds(self) -> float:
        """Return the time so far; call it at each look."""
        now = time.monotonic()
        self._seconds += min(now - self._looked_at_seconds, 2 * LOOK_SECONDS)
        self._looked_at_seconds = now
        return self._seconds
