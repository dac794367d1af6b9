"""Limit on the bytes of messages and answers held at a time, so that a flood of calls can't fill the memory."""

import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from service.domain.errors import MemoryFull, MessageTooSlow, ServiceError

# Memory of a call that has begun: its record (17 KiB as measured), and the part of its message that may arrive before
# it is read (`faces.grpc.server.UNREAD_BYTES`).
CALL_BYTES = 32 * 2**10

# A message takes at most this fraction (1/n) of the bytes left: as memory runs short, large messages are rejected
# first, and a flood of them leaves room for small ones. Of what is larger than a message, documents, a half.
_PARTS = 16
_HALF = 2  # 1/n of all bytes is what the calls of one API key may hold
PATIENCE_SECONDS = 5.0  # a message that has been arriving for longer makes room for others


class ByteBudget:
    """Counts the bytes that calls hold. For the event loop's thread only."""

    def __init__(self, max_bytes: int, largest_bytes: int, clock: Callable[[], float] = time.monotonic) -> None:
        """Allow at least twice `largest_bytes`: a message of that size must fit while nothing else is held."""
        self.max_bytes = max(max_bytes, 2 * (largest_bytes + CALL_BYTES))
        self.num_bytes = 0
        self._largest_bytes = largest_bytes
        self._parts = min(_PARTS, self.max_bytes // (largest_bytes + CALL_BYTES))
        self._clock = clock
        self._of_owners: Counter[str] = Counter()
        self._arriving: dict[Hold, tuple[float, Callable[[ServiceError], None]]] = {}  # oldest first

    def hold(self) -> "Hold":
        """Return the hold of one call, empty at first."""
        return Hold(self)

    def take(self, num_bytes: int, owner: str) -> None:
        """Count `num_bytes` more as held by the calls of an owner, if any.

        Raises:
            MemoryFull: there is no room for them.
        """
        if owner and self._of_owners[owner] + num_bytes > self.max_bytes // _HALF:
            raise MemoryFull(
                "there is no room for {number} bytes beside the messages of your other calls",
                number=num_bytes,
                allowed=f"{self.max_bytes // _HALF // 2**20} MiB for all calls with one API key",
                advice="wait for one to end",
            )
        room = max(_HALF * num_bytes, self._parts * min(num_bytes, self._largest_bytes))
        while room > self.max_bytes - self.num_bytes:
            if not self._make_room():
                raise MemoryFull(
                    "there is no room for {number} bytes beside the messages of other calls",
                    number=num_bytes,
                    allowed=f"{self.max_bytes // 2**20} MiB for all calls together",
                    advice="try again later, or send smaller messages",
                )
        self.give_back(-num_bytes, owner)

    def give_back(self, num_bytes: int, owner: str) -> None:
        """Count `num_bytes` less."""
        self.num_bytes -= num_bytes
        if owner:
            self._of_owners[owner] -= num_bytes
            if not self._of_owners[owner]:
                del self._of_owners[owner]

    @contextmanager
    def arriving(self, hold: "Hold", evict: Callable[[ServiceError], None]) -> Iterator[None]:
        """Let a hold make room for others during the `with` block, if its message takes long to arrive.

        Then `evict` is called with what to tell the caller, and the hold is released.
        """
        self._arriving[hold] = (self._clock(), evict)
        try:
            yield
        finally:
            self._arriving.pop(hold, None)

    def _make_room(self) -> bool:
        """Evict the message that has been arriving for longest, if that is too long; return whether there was one."""
        if not self._arriving:
            return False
        hold, (since_seconds, evict) = next(iter(self._arriving.items()))
        if self._clock() - since_seconds < PATIENCE_SECONDS:
            return False
        del self._arriving[hold]
        hold.release()
        evict(
            MessageTooSlow(
                "the message did not arrive in time while others needed the room",
                advice="try again, or send it faster",
            )
        )
        return True


class Hold:
    """Bytes that one call holds; those of calls with the same `owner`, the name of an API key, have a limit."""

    __slots__ = ("_budget", "_num_bytes", "_owner")

    def __init__(self, budget: ByteBudget) -> None:
        self._budget = budget
        self._num_bytes = 0
        self._owner = ""

    def belong_to(self, owner: str) -> None:
        """Count the bytes as those of an owner from now on.

        Raises:
            MemoryFull: the owner has no room for them; nothing is held then.
        """
        if owner != self._owner:
            num_bytes = self._num_bytes
            self.release()
            self._owner = owner
            self.grow(num_bytes)

    def grow(self, num_bytes: int) -> None:
        """Hold `num_bytes` more.

        Raises:
            MemoryFull: as for `ByteBudget.take`; nothing has changed then.
        """
        self._budget.take(num_bytes, self._owner)
        self._num_bytes += num_bytes

    def shrink(self, num_bytes: int) -> None:
        """Hold `num_bytes` less."""
        self._budget.give_back(num_bytes, self._owner)
        self._num_bytes -= num_bytes

    def release(self) -> None:
        """Release all bytes; may be called again."""
        self.shrink(self._num_bytes)
