"""Open calls, so that a stop waits for these only, and what each takes of the server until its answer is sent.

gRPC's own stop waits for more: for unresponsive peers, for calls that were begun but never sent, and occasionally for a
call that it accepted but passed to no handler (seen with 1.81, in 1 % of stops with busy callers).
"""

import asyncio
from collections.abc import Hashable

from service.calls.byte_budget import CALL_BYTES, ByteBudget, Hold
from service.calls.turns import Turns

# What is read, checked or sent at a time: more takes the event loop milliseconds, in which no other call is accepted.
PIECE_BYTES = 64 * 2**10
_REST = 9  # limits large messages to a tenth of the event loop's time


class OpenCalls:
    """Counts calls from the arrival of their message, or the start of their stream, until their answer is sent.

    Calls of `ignored` services, given by full name, don't count.
    """

    def __init__(self, ignored: tuple[str, ...] = ()) -> None:
        self._ignored = tuple(f"/{name}/" for name in ignored)
        self._count = 0
        self._none = asyncio.Event()
        self._none.set()

    def counts(self, method: str) -> bool:
        """Return whether calls of a method, as in `/service/Method`, count."""
        return not method.startswith(self._ignored)

    def began(self) -> None:
        """Count one more."""
        self._count += 1
        self._none.clear()

    def ended(self) -> None:
        """Count one less."""
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
        """Hold nothing yet; count as open in `open_calls`, if there are any."""
        super().__init__(budget)
        self._open_calls = open_calls
        self._is_open = False

    def begin(self, owner: str, num_bytes: int = 0) -> None:
        """Hold an owner's call from now on: its own bytes, and those of its message that have arrived."""
        self.owner = owner
        self.grow(CALL_BYTES + num_bytes)

    def open(self) -> None:
        if self._open_calls is not None:
            self._is_open = True
            self._open_calls.began()

    def end(self, _: object = None) -> None:
        """Give everything back, once the answer is sent or the caller is gone."""
        self.release()
        if self._is_open and self._open_calls is not None:
            self._is_open = False
            self._open_calls.ended()


class LargeMessages:
    """Makes large messages wait for each other, so that the event loop has time for all others in between."""

    def __init__(self) -> None:
        self._turns = Turns(1)

    async def turn(self, caller: Hashable) -> None:
        """Wait for the turn of a caller's large message.

        The next one begins when the event loop has had several times as long as this one blocks it.
        """
        await self._turns.take(caller)
        loop = asyncio.get_running_loop()
        began_seconds = loop.time()
        loop.call_soon(lambda: loop.call_later(_REST * (loop.time() - began_seconds), self._turns.give_back, caller))
