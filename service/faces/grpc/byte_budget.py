"""How many bytes of messages and answers the server holds at a time, so that no flood of them fills its memory."""

from service.domain.errors import MemoryFull

# What a call takes that is begun: the record of it (17 KiB as measured), and what may have arrived of a message that
# nobody has asked for yet (`connections.UNREAD_BYTES`).
CALL_BYTES = 32 * 2**10

# A message takes at most one part in so many of what is left: as room gets scarce, large ones are refused first, and a
# flood of these leaves room for small ones.
_PARTS = 16
_PAUSE_SECONDS = 1.0  # nobody knows when calls under way will end


class ByteBudget:
    """Counts the bytes that calls hold; belongs to the event loop's thread."""

    def __init__(self, max_bytes: int, largest_bytes: int) -> None:
        """A message of `largest_bytes` must fit while nothing else is held, so there is twice as much at least."""
        self.max_bytes = max(max_bytes, 2 * (largest_bytes + CALL_BYTES))
        self.num_bytes = 0
        self._parts = min(_PARTS, self.max_bytes // (largest_bytes + CALL_BYTES))

    def hold(self) -> "Hold":
        """What one call holds: nothing yet."""
        return Hold(self)

    def take(self, num_bytes: int) -> None:
        """Count so many more bytes as held.

        Raises:
            MemoryFull: there is no room for them.
        """
        if num_bytes * self._parts > self.max_bytes - self.num_bytes:
            raise MemoryFull(
                f"there is no room for {num_bytes} bytes beside the messages of other calls; allowed are "
                f"{self.max_bytes // 2**20} MiB together. Try again later, or send smaller ones.",
                _PAUSE_SECONDS,
            )
        self.num_bytes += num_bytes


class Hold:
    """Bytes that one call holds."""

    __slots__ = ("_budget", "_num_bytes")

    def __init__(self, budget: ByteBudget) -> None:
        self._budget = budget
        self._num_bytes = 0

    def grow(self, num_bytes: int) -> None:
        """Hold so many bytes more.

        Raises:
            MemoryFull: as for `ByteBudget.take`; then nothing has changed.
        """
        self._budget.take(num_bytes)
        self._num_bytes += num_bytes

    def shrink(self, num_bytes: int) -> None:
        """Hold so many bytes less."""
        self._budget.num_bytes -= num_bytes
        self._num_bytes -= num_bytes

    def release(self) -> None:
        """Hold nothing any more; may be called again."""
        self.shrink(self._num_bytes)
