"""Turns among callers, for what only so many may do at a time."""

import asyncio
import math
from collections import Counter, OrderedDict, deque
from collections.abc import Hashable


class Turns:
    """Lets so many proceed at a time, and so many of one caller; of callers that wait each has its turn (RFC 970).

    For the event loop's thread only.
    """

    def __init__(self, most: int, most_of_one: float = math.inf) -> None:
        self.num_free = most
        self._most_of_one = most_of_one
        self._running: Counter[Hashable] = Counter()
        self._waiting: OrderedDict[Hashable, deque[asyncio.Future[None]]] = OrderedDict()  # the first one is next

    @property
    def num_waiting(self) -> int:
        return sum(map(len, self._waiting.values()))

    def num_waiting_of(self, caller: Hashable) -> int:
        return len(self._waiting.get(caller, ()))

    def num_running_of(self, caller: Hashable) -> int:
        return self._running[caller]

    def take_free(self, caller: Hashable) -> bool:
        """Proceed if that is possible at once."""
        if not self.num_free or self._running[caller] >= self._most_of_one:
            return False
        self.num_free -= 1
        self._running[caller] += 1
        return True

    async def wait(self, caller: Hashable) -> None:
        """Proceed when it is the caller's turn."""
        turn = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(caller, deque()).append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.cancelled():
                self._leave(caller, turn)
            else:  # it had just been granted
                self.give_back(caller)
            raise

    async def take(self, caller: Hashable) -> None:
        """Proceed, at once or in turn."""
        if not self.take_free(caller):
            await self.wait(caller)

    def give_back(self, caller: Hashable) -> None:
        """End a turn of a caller; the next that waits has it."""
        self.num_free += 1
        self._running[caller] -= 1
        if not self._running[caller]:
            del self._running[caller]
        for other, turns in self._waiting.items():
            turn = next((each for each in turns if not each.cancelled()), None)
            if turn is not None and self.take_free(other):
                self._waiting.move_to_end(other)
                self._leave(other, turn)
                turn.set_result(None)
                return

    def _leave(self, caller: Hashable, turn: asyncio.Future[None]) -> None:
        turns = self._waiting[caller]
        turns.remove(turn)
        if not turns:
            del self._waiting[caller]
