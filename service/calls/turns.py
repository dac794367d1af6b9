"""Turns among callers, for what only so many may do at a time."""

import asyncio
from collections import OrderedDict, deque
from collections.abc import Hashable


class Turns:
    """Lets `limit` proceed at a time; whoever waits gets turns by caller, however many each caller has waiting.

    For the event loop's thread only.
    """

    def __init__(self, limit: int) -> None:
        self._num_free = limit
        self._waiting: OrderedDict[Hashable, deque[asyncio.Future[None]]] = OrderedDict()

    @property
    def num_free(self) -> int:
        """Return how many more may proceed."""
        return self._num_free

    @property
    def anybody_waits(self) -> bool:
        """Return whether anybody waits."""
        return bool(self._waiting)

    def take_free(self) -> bool:
        """Proceed if that is possible at once."""
        if not self._num_free:
            return False
        self._num_free -= 1
        return True

    async def wait(self, caller: Hashable) -> None:
        """Wait until the next turn of this caller."""
        turn = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(caller, deque()).append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if not turn.cancelled():  # it had just been given the turn
                self.give_back()
            raise

    async def take(self, caller: Hashable) -> None:
        """Proceed, at once or in turn."""
        if not self.take_free():
            await self.wait(caller)

    def give_back(self) -> None:
        """Pass a turn on to the next caller that waits, or keep it."""
        while self._waiting:
            caller, turns = next(iter(self._waiting.items()))
            turn = turns.popleft()
            if turns:
                self._waiting.move_to_end(caller)
            else:
                del self._waiting[caller]
            if not turn.done():  # else it was given up
                turn.set_result(None)
                return
        self._num_free += 1
