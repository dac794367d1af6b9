"""How long a queue may be: some seconds while it is a burst that drains, and short once it has stood."""

# A burst may wait so long for its first slots; what of it comes later than the interval meets the limit of a queue that
# has stood. So the first is what an idle server takes in at once, the second how long it goes on doing so.
BURST_SECONDS = 10.0
INTERVAL_SECONDS = 2.0


class ControlledDelay:
    """Tells a good queue from a bad one by time, as CoDel does: Nichols, Jacobson, "Controlling Queue Delay", ACM Queue
    10 (5), 2012.

    A queue that was short at some moment of the last interval holds a burst, which turns into throughput. One that was
    longer than the target all the time only makes everybody wait. What CoDel then drops one by one, faster and faster,
    is here refused before it comes in, by a limit that falls to the target; and as a queue that is held at a limit is
    below it again and again, it has to be short for an interval to be trusted again.

    Has no clock: times are of any one that does not go back.
    """

    def __init__(self) -> None:
        self._long_since: float | None = None  # `None` while the queue is short
        self._last_long = 0.0
        self._has_stood = False

    def limit_seconds(self, now_seconds: float, wait_seconds: float, target_seconds: float) -> float:
        """The longest that a newcomer may wait, where the queue takes `wait_seconds` now and should `target_seconds`.

        Ask at each arrival: between two of them a queue can only get shorter.
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
