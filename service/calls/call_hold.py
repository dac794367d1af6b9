"""What a call takes of the server until its answer is sent: bytes, and a place among the open calls."""

import asyncio
from collections.abc import Hashable

from service.calls.byte_budget import CALL_BYTES, ByteBudget, Hold
from service.calls.open_calls import OpenCalls
from service.calls.turns import Turns

# What is read, checked or sent at a time: more takes the event loop milliseconds, in which no other call is accepted.
PIECE_BYTES = 64 * 2**10
_REST = 9  # limits large messages to a tenth of the event loop's time


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
