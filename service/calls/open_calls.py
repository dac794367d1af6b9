"""Open calls: a stop waits for these only, and each holds memory until it is answered.

gRPC's own stop also waits for unresponsive peers, for calls begun but never sent, and sometimes for a call that it
accepted but passed to no handler (seen with 1.81, in 1 % of stops with busy callers).

Bytes of messages and answers are limited, so that a flood of calls can't fill the memory.
"""

import asyncio
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager

from service.calls.turns import Turns
from service.domain.errors import MemoryFull, MessageTooSlow, ServiceError

# Memory of a call that has begun: its record (17 KiB as measured), and the part of its message that may arrive before
# it is read (`faces.grpc.server.UNREAD_BYTES`).
CALL_BYTES = 32 * 2**10

# A message takes at most this fraction (1/n) of the bytes left: as memory runs short, large messages are rejected
# first, and a flood of them leaves room for small ones. Of what is larger than a message, documents, a half.
_PARTS = 16
_HALF = 2  # 1/n of all bytes is the share of one owner
_PARTS_OF_SHARE = 4  # of what is left of its owner's share a message takes at most 1/n, for the same reason

# What is read, checked or sent at a time: more takes the event loop milliseconds, in which no other call is accepted.
PIECE_BYTES = 64 * 2**10


class ByteBudget:
    """Counts the bytes that calls hold. For the event loop's thread only.

    The owner of a call is its API key or, where none is needed, its host. Nobody waits for room. If the owner holds its
    share already, another of its calls that is still arriving gives up its bytes; otherwise one of the owner that holds
    most does, unless the new call's owner would then hold more. Else the call is rejected, which frees its bytes. So
    some always proceed.
    """

    def __init__(self, max_bytes: int, largest_bytes: int) -> None:
        """Allow at least twice `largest_bytes`: a message of that size must fit while nothing else is held."""
        largest_call = largest_bytes + CALL_BYTES
        self.max_bytes = max(max_bytes, 2 * largest_call)
        self.num_bytes = 0
        self._share = self.max_bytes // _HALF
        self._largest_bytes = largest_bytes
        self._parts = min(_PARTS, self.max_bytes // largest_call)
        self._parts_of_share = min(_PARTS_OF_SHARE, self._share // largest_call)
        self._of_owners: dict[str, int] = {}
        self._arriving: dict[Hold, None] = {}  # first what has not grown for longest

    def hold(self, owner: str = "") -> "Hold":
        return Hold(self, owner)

    def change(self, hold: "Hold", num_bytes: int) -> None:
        """Add bytes to a hold, or take some; raise `MemoryFull` without room, `MessageTooSlow` if it was evicted."""
        owner = hold.owner
        of_owner = self._of_owners.get(owner, 0)
        if num_bytes > 0:
            if hold.failure is not None:
                raise hold.failure
            # More than both limits ask for, and yet there is room, for nearly every call.
            room = self._parts * (hold.num_bytes + num_bytes)
            if room > self._share - of_owner or room > self.max_bytes - self.num_bytes:
                self._make_room(hold, num_bytes)
                of_owner = self._of_owners.get(owner, 0)
            if hold.evict is not None:
                self._arriving.pop(hold, None)
                self._arriving[hold] = None
        self.num_bytes += num_bytes
        hold.num_bytes += num_bytes
        if of_owner + num_bytes:
            self._of_owners[owner] = of_owner + num_bytes
        else:
            self._of_owners.pop(owner, None)

    def _make_room(self, hold: "Hold", num_bytes: int) -> None:
        owner, size = hold.owner, hold.num_bytes + num_bytes
        counted = min(size, self._largest_bytes)
        room = max(size, self._parts_of_share * counted) - hold.num_bytes
        lacking = room - (self._share - self._of_owners.get(owner, 0))
        if lacking > 0 and not self._evict(owner, hold, lacking):
            raise MemoryFull(
                "there is no room for {number} bytes beside the messages of your other calls",
                number=num_bytes,
                allowed=f"{self._share // 2**20} MiB for all calls of one API key or host",
                advice="wait for one to end",
            )
        room = max(_HALF * size, self._parts * counted) - hold.num_bytes
        while room > self.max_bytes - self.num_bytes:
            most = max(self._of_owners, key=self._of_owners.__getitem__)
            is_more = self._of_owners[most] > self._of_owners.get(owner, 0) + num_bytes
            if not is_more or not self._evict(most, hold, 1):
                raise MemoryFull(
                    "there is no room for {number} bytes beside the messages of other calls",
                    number=num_bytes,
                    allowed=f"{self.max_bytes // 2**20} MiB for all calls together",
                    advice="try again later, or send smaller messages",
                )

    @contextmanager
    def arriving(self, hold: "Hold", evict: Callable[[ServiceError], None]) -> Iterator[None]:
        """Let others evict this hold while its message arrives: it is released, and `evict` called with the error."""
        hold.evict = evict
        try:
            yield
        finally:
            hold.evict = None
            self._arriving.pop(hold, None)

    def _evict(self, owner: str, asking: "Hold", num_bytes: int) -> bool:
        """Give up so many bytes of arriving calls, longest silent first, or none; return whether there were enough."""
        theirs = [each for each in self._arriving if each.owner == owner and each is not asking]
        if sum(each.num_bytes for each in theirs) < num_bytes:
            return False
        for hold in theirs:
            num_bytes -= hold.num_bytes
            self._give_up(hold)
            if num_bytes <= 0:
                break
        return True

    def _give_up(self, hold: "Hold") -> None:
        del self._arriving[hold]
        hold.release()
        hold.failure = MessageTooSlow(
            "the message did not arrive in time, and other calls needed its memory",
            advice="try again, or send it faster",
        )
        if hold.evict is not None:
            hold.evict(hold.failure)


class Hold:
    """Bytes that one call holds; those of all calls of the same `owner` have a limit."""

    __slots__ = ("budget", "evict", "failure", "num_bytes", "owner")

    def __init__(self, budget: ByteBudget, owner: str = "") -> None:
        self.budget = budget
        self.num_bytes = 0
        self.owner = owner
        self.evict: Callable[[ServiceError], None] | None = None  # while its message arrives
        self.failure: ServiceError | None = None  # once it has made room

    def grow(self, num_bytes: int) -> None:
        self.budget.change(self, num_bytes)

    def shrink(self, num_bytes: int) -> None:
        self.budget.change(self, -num_bytes)

    def release(self) -> None:
        self.budget.change(self, -self.num_bytes)

    def hand_over(self, num_bytes: int) -> "Hold":
        """Return a hold of so many of these bytes, for work that may end before or after this call."""
        taken = Hold(self.budget, self.owner)
        taken.num_bytes = min(num_bytes, self.num_bytes)
        self.num_bytes -= taken.num_bytes
        return taken


class OpenCalls:
    """Counts calls from their message's arrival, or stream's start, to their answer; not of `ignored` services."""

    def __init__(self, ignored: tuple[str, ...] = ()) -> None:
        self._ignored = tuple(f"/{name}/" for name in ignored)
        self._count = 0
        self._none = asyncio.Event()
        self._none.set()

    def counts(self, method: str) -> bool:
        return not method.startswith(self._ignored)

    def began(self) -> None:
        if not self._count:
            self._none.clear()
        self._count += 1

    def ended(self) -> None:
        self._count -= 1
        if not self._count:
            self._none.set()

    async def none_for(self, seconds: float) -> None:
        """Wait until no call is open, now and `seconds` later."""
        while True:
            await self._none.wait()
            await asyncio.sleep(seconds)
            if not self._count:
                return


class CallHold(Hold):
    """A call's bytes and, from its message's arrival, its place among open calls."""

    __slots__ = ("_is_open", "_open_calls")

    def __init__(self, budget: ByteBudget, open_calls: OpenCalls | None) -> None:
        super().__init__(budget)
        self._open_calls = open_calls
        self._is_open = False

    def begin(self, owner: str, num_bytes: int = 0) -> None:
        """Hold an owner's call from now on: its own bytes, and those of its message that have arrived."""
        self.owner = owner
        self.budget.change(self, CALL_BYTES + num_bytes)

    def open(self) -> None:
        if self._open_calls is not None:
            self._is_open = True
            self._open_calls.began()

    def end(self, _: object = None) -> None:
        """Give everything back, once the answer is sent or the caller is gone."""
        self.budget.change(self, -self.num_bytes)
        if self._is_open and self._open_calls is not None:
            self._is_open = False
            self._open_calls.ended()


class LargeMessages:
    """Makes large messages wait for each other, so that the event loop has time for all others in between."""

    def __init__(self) -> None:
        self._turns = Turns(1)

    async def turn(self, caller: Hashable) -> None:
        """Wait for a caller's turn to send a large message; a pause in proportion to its blocking time follows."""
        await self._turns.take(caller)
        loop = asyncio.get_running_loop()
        began_seconds = loop.time()
        # Limits large messages to a tenth of the event loop's time.
        loop.call_soon(lambda: loop.call_later(9 * (loop.time() - began_seconds), self._turns.give_back, caller))
