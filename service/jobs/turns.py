"""Turns that callers share fairly, and the share of each of what there is only so much of."""

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Hashable
from contextlib import asynccontextmanager

from service.calls.turns import Turns
from service.domain.call import current_call
from service.domain.errors import DeadlineExceeded, Overloaded


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


class DocumentTurns:
    """Turns of documents: as many wait as there is room for, and of one caller its `share_of` these."""

    def __init__(self, most_at_once: int, most_of_one: int, most_waiting: int = sys.maxsize) -> None:
        self._turns = Turns(most_at_once, most_of_one)
        self._most_waiting = most_waiting

    @asynccontextmanager
    async def turn(self, caller: Hashable, deadline_seconds: float) -> AsyncIterator[None]:
        """Have a turn during the `with` block; the deadline is on the clock of `time.monotonic()`."""
        if not self._turns.take_free(caller):
            self._check(caller)
            try:
                async with asyncio.timeout(deadline_seconds - time.monotonic()):
                    await self._turns.wait(caller)
            except TimeoutError:
                raise DeadlineExceeded(
                    "the deadline passed while it waited for other documents", advice="allow more time"
                ) from None
        try:
            yield
        finally:
            self._turns.give_back(caller)

    def _check(self, caller: Hashable) -> None:
        num_own = self._turns.num_waiting_of(caller)
        if num_own >= share_of(self._most_waiting, self._turns.num_waiting - num_own):
            raise Overloaded(
                "{number} documents of yours are being translated, and {num_waiting} wait",
                number=self._turns.num_running_of(caller),
                num_waiting=num_own,
                advice="try again later",
            )
