"""Turns that callers share fairly, and the share of each of what there is only so much of."""

import asyncio
import time
from collections import Counter, OrderedDict, deque
from collections.abc import AsyncIterator, Hashable
from contextlib import asynccontextmanager

from service.domain.call import current_call
from service.domain.errors import DeadlineExceeded, Overloaded

_PAUSE_SECONDS = 2.0  # it is unknown when a document will be done


def current_caller() -> str:
    """Return who makes the current call: the name of the key, or without keys the host; see `Call.origin`."""
    origin = current_call().origin
    return str(origin[0]) if origin else ""


def share_of(most: int, num_of_others: int) -> int:
    """Return how much one caller may have of `most`, of which others have some: half of what these leave.

    So there is always something left for another caller (Choudhury, Hahne, "Dynamic queue length thresholds for
    shared-memory packet switches", IEEE/ACM Transactions on Networking 6 (2), 1998).
    """
    left = most - num_of_others
    return left // 2 or left


class FairTurns:
    """So many turns at a time, and so many of one caller; the others wait, and callers that wait take turns (RFC 970).

    For one event loop only.
    """

    def __init__(self, most_at_once: int, most_of_one: int, most_waiting: int) -> None:
        """Let as many wait for a turn, and of one caller its `share_of` these."""
        self._most_at_once = most_at_once
        self._most_of_one = most_of_one
        self._most_waiting = most_waiting
        self._running: Counter[Hashable] = Counter()
        self._waiting: OrderedDict[Hashable, deque[asyncio.Future[None]]] = OrderedDict()  # the first one is next

    @asynccontextmanager
    async def turn(self, caller: Hashable, deadline_seconds: float) -> AsyncIterator[None]:
        """Have a turn during the `with` block; the deadline is on the clock of `time.monotonic()`.

        Raises:
            Overloaded: too many documents wait for one.
            DeadlineExceeded: so does this one, until then.
        """
        if self._may_run(caller):
            self._running[caller] += 1
        else:
            await self._wait(caller, deadline_seconds)
        try:
            yield
        finally:
            self._end(caller)

    def _may_run(self, caller: Hashable) -> bool:
        return self._running.total() < self._most_at_once and self._running[caller] < self._most_of_one

    async def _wait(self, caller: Hashable, deadline_seconds: float) -> None:
        own = self._waiting.get(caller, ())
        num_of_others = sum(map(len, self._waiting.values())) - len(own)
        if len(own) >= share_of(self._most_waiting, num_of_others):
            raise Overloaded(
                "{number} documents of yours are being translated, and {num_waiting} wait",
                _PAUSE_SECONDS,
                number=self._running[caller],
                num_waiting=len(own),
                advice="try again later",
            )
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(caller, deque()).append(turn)
        try:
            async with asyncio.timeout(deadline_seconds - time.monotonic()):
                await turn
        except BaseException as error:
            if turn.cancelled():
                self._leave(caller, turn)
            else:  # it was granted in the same moment
                self._end(caller)
            if isinstance(error, TimeoutError):
                raise DeadlineExceeded(
                    "the deadline passed while it waited for other documents", advice="allow more time"
                ) from None
            raise

    def _leave(self, caller: Hashable, turn: "asyncio.Future[None]") -> None:
        own = self._waiting[caller]
        own.remove(turn)
        if not own:
            del self._waiting[caller]

    def _end(self, caller: Hashable) -> None:
        self._running[caller] -= 1
        if not self._running[caller]:
            del self._running[caller]
        while (turn := self._next()) is not None:
            turn.set_result(None)

    def _next(self) -> "asyncio.Future[None] | None":
        """Take the turn that is next to be granted from those that are waited for, if there is one."""
        for caller, own in self._waiting.items():
            turn = next((each for each in own if not each.cancelled()), None)
            if turn is not None and self._may_run(caller):
                self._running[caller] += 1
                self._waiting.move_to_end(caller)
                self._leave(caller, turn)
                return turn
        return None
