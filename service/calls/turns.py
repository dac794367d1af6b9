"""A fair semaphore: callers take turns at what only a few may do at a time."""

import asyncio
import math
import sys
import time
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Hashable, Iterable
from contextlib import asynccontextmanager

from service.domain.call import current_call
from service.domain.errors import DeadlineExceeded, Overloaded


class Turns:
    """Lets so many proceed at a time, and so many of one caller, in turn (RFC 970). For the event loop only."""

    def __init__(self, most: int, most_of_one: float = math.inf) -> None:
        self.num_free = most
        self._most_of_one = most_of_one
        self._running: dict[Hashable, int] = {}
        self._waiting: OrderedDict[Hashable, deque[asyncio.Future[None]]] = OrderedDict()  # the first one is next

    @property
    def num_waiting(self) -> int:
        return sum(map(len, self._waiting.values()))

    def num_waiting_of(self, caller: Hashable) -> int:
        return len(self._waiting.get(caller, ()))

    def num_running_of(self, caller: Hashable) -> int:
        return self._running.get(caller, 0)

    def take_free(self, caller: Hashable) -> bool:
        """Take a turn without waiting; return whether that was possible."""
        num_running = self._running.get(caller, 0)
        if not self.num_free or num_running >= self._most_of_one:
            return False
        self.num_free -= 1
        self._running[caller] = num_running + 1
        return True

    async def wait(self, caller: Hashable) -> None:
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
        if not self.take_free(caller):
            await self.wait(caller)

    def give_back(self, caller: Hashable) -> None:
        """End a turn of a caller; it goes to the next that waits."""
        self.num_free += 1
        self._running[caller] -= 1
        if not self._running[caller]:
            del self._running[caller]
        for other in self._in_order() if self._waiting else ():
            turns = self._waiting[other]
            turn = next((each for each in turns if not each.cancelled()), None)
            if turn is not None and self.take_free(other):
                self._waiting.move_to_end(other)
                self._leave(other, turn)
                turn.set_result(None)
                return

    def _in_order(self) -> Iterable[Hashable]:
        return self._waiting

    def _leave(self, caller: Hashable, turn: asyncio.Future[None]) -> None:
        turns = self._waiting[caller]
        turns.remove(turn)
        if not turns:
            del self._waiting[caller]


def current_caller() -> str:
    """Return the current call's caller: the name of its key or, without keys, its host (`Call.origin`)."""
    origin = current_call().origin
    return str(origin[0]) if origin else ""


def share_of(most: int, num_of_others: int) -> int:
    """Return one caller's share of `most`: half of what others leave, so that another caller always finds some.

    (Choudhury, Hahne, "Dynamic queue length thresholds for shared-memory packet switches", ToN 6 (2), 1998.)
    """
    left = most - num_of_others
    return left // 2 or left


@asynccontextmanager
async def until(deadline_seconds: float, what: str) -> AsyncIterator[None]:
    """End the `with` block at a deadline, on the clock of `time.monotonic()`; the error names `what` went on."""
    try:
        async with asyncio.timeout(deadline_seconds - time.monotonic()):
            yield
    except TimeoutError:
        raise DeadlineExceeded(f"the deadline passed while {what}", advice="allow more time") from None


class DocumentTurns(Turns):
    """Turns of documents, limited in number and per caller (`share_of`), and fair in bytes: a line waits for no book.

    (Golestani, "A self-clocked fair queueing scheme for broadband applications", INFOCOM 1994.)
    """

    def __init__(self, most_at_once: int, most_of_one: int, most_waiting: int = sys.maxsize) -> None:
        super().__init__(most_at_once, most_of_one)
        self._most_waiting = most_waiting
        self._num_served_bytes = 0  # to each caller, had all waited from the start
        self._claims: dict[Hashable, int] = {}  # what will be served by the time a waiting caller has its bytes

    @asynccontextmanager
    async def turn(self, caller: Hashable, num_bytes: int, deadline_seconds: float) -> AsyncIterator[None]:
        if not self.take_free(caller):
            self._check(caller)
            self._claims[caller] = self._claims.get(caller, self._num_served_bytes) + num_bytes
            async with until(deadline_seconds, "the document waited for others"):
                await self.wait(caller)
        try:
            yield
        finally:
            self.give_back(caller)

    def _in_order(self) -> Iterable[Hashable]:
        return sorted(self._waiting, key=self._claims.__getitem__)

    def _leave(self, caller: Hashable, turn: asyncio.Future[None]) -> None:
        super()._leave(caller, turn)
        if caller not in self._waiting:
            self._num_served_bytes = max(self._num_served_bytes, self._claims.pop(caller))

    def _check(self, caller: Hashable) -> None:
        num_own = self.num_waiting_of(caller)
        if num_own >= share_of(self._most_waiting, self.num_waiting - num_own):
            raise Overloaded(
                "your documents being translated: {number}, waiting: {num_waiting}",
                number=self.num_running_of(caller),
                num_waiting=num_own,
                advice="try again later",
            )
