"""The limit on queueing delay: seconds for a burst that drains, short for a standing queue."""

# `BURST_SECONDS` is the longest wait for a first slot during a burst; the part of a burst that arrives after
# `INTERVAL_SECONDS` meets the limit of a standing queue. So the first is how much an idle server accepts at once, and
# the second for how long it does so.
BURST_SECONDS = 10.0
INTERVAL_SECONDS = 2.0


class ControlledDelay:
    """Distinguishes a burst from a standing queue by time, as CoDel does.

    A queue that was short at some moment of the last interval holds a burst, which turns into throughput. One that was
    above the target all the time only adds delay. Where CoDel then drops entries at an increasing rate, this rejects
    new ones by lowering the limit to the target. A queue held at a limit falls below it again and again, so it has to
    stay short for an interval before it counts as a burst again.

    Source: Nichols, Jacobson, "Controlling Queue Delay", ACM Queue 10 (5), 2012. Has no clock of its own: times may
    come from any monotonic clock.
    """

    def __init__(self) -> None:
        self._long_since: float | None = None  # `None` while the queue is short
        self._last_long = 0.0
        self._has_stood = False

    def limit_seconds(self, now_seconds: float, wait_seconds: float, target_seconds: float) -> float:
        """Return the longest acceptable wait for a new sequence, given the queue's current and target waits.

        Call it at each arrival: between arrivals a queue can only get shorter.
        """
        if wait_seconds < target_seconds:
            self._long_since = None
            if now_seconds - self._last_long >= INTERVAL_SECONDS:
                self._has_stood = False
        else:
            if self._long_since is None:
                self._long_since = now_seconds
            self._last_long = now_seconds
            if now_seconds - self._long_since >= INTERVAL_SECONDS:
                self._has_stood = True
        return target_seconds if self._has_stood else max(BURST_SECONDS, target_seconds)
