"""Limit on the bytes of messages and answers held at a time, so that a flood of calls can't fill the memory."""

from service.domain.errors import MemoryFull

# Memory of a call that has begun: its record (17 KiB as measured), and the part of its message that may arrive before
# it is read (`connections.UNREAD_BYTES`).
CALL_BYTES = 32 * 2**10

# A message takes at most this fraction (1/n) of the bytes left: as memory runs short, large messages are rejected
# first, and a flood of them leaves room for small ones.
_PARTS = 16
_PAUSE_SECONDS = 1.0  # it is unknown when calls in progress will end


class ByteBudget:
    """Counts the bytes that calls hold. For the event loop's thread only."""

    def __init__(self, max_bytes: int, largest_bytes: int) -> None:
        """Allow at least twice `largest_bytes`: a message of that size must fit while nothing else is held."""
        self.max_bytes = max(max_bytes, 2 * (largest_bytes + CALL_BYTES))
        self.num_bytes = 0
        self._parts = min(_PARTS, self.max_bytes // (largest_bytes + CALL_BYTES))

    def hold(self) -> "Hold":
        """Return the hold of one call, empty at first."""
        return Hold(self)

    def take(self, num_bytes: int) -> None:
        """Count `num_bytes` more as held.

        Raises:
            MemoryFull: there is no room for them.
        """
        if num_bytes * self._parts > self.max_bytes - self.num_bytes:
            raise MemoryFull(
                "there is no room for {number} bytes beside the messages of other calls",
                _PAUSE_SECONDS,
                number=num_bytes,
                allowed=f"{self.max_bytes // 2**20} MiB for all calls together",
                advice="try again later, or send smaller messages",
            )
        self.num_bytes += num_bytes


class Hold:
    """Bytes that one call holds."""

    __slots__ = ("_budget", "_num_bytes")

    def __init__(self, budget: ByteBudget) -> None:
        self._budget = budget
        self._num_bytes = 0

    def grow(self, num_bytes: int) -> None:
        """Hold `num_bytes` more.

        Raises:
            MemoryFull: as for `ByteBudget.take`; nothing has changed then.
        """
        self._budget.take(num_bytes)
        self._num_bytes += num_bytes

    def shrink(self, num_bytes: int) -> None:
        """Hold `num_bytes` less."""
        self._budget.num_bytes -= num_bytes
        self._num_bytes -= num_bytes

    def release(self) -> None:
        """Release all bytes; may be called again."""
        self.shrink(self._num_bytes)
