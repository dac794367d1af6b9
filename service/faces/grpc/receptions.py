"""How many messages are being received at a time, each of which may become as large as any may be.

Nobody knows how large a message will be, or whether it comes at all. Until it is asked for, gRPC takes no more of it
than `connections.UNREAD_BYTES`; from then on it may be the largest. So only so many are asked for at a time, and who
begins calls and says little must keep nobody out.
"""

import asyncio
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable
from typing import TypeVar

from service.domain.errors import MessageTooSlow

# A message that is not here after so long is slow: a small one comes with its call, and is received at once.
SLOW_SECONDS = 0.01
# While others wait, at most half of what is being received may be slow. Of more, those are given up that have taken
# longer than this, and then the latest: so what began well is not lost to what never ends.
PATIENCE_SECONDS = 5.0
_PAUSE_SECONDS = 1.0

T = TypeVar("T")


class _Reception:
    __slots__ = ("is_evicted", "since_seconds", "task")

    def __init__(self, task: "asyncio.Task[object] | None", since_seconds: float) -> None:
        self.task = task
        self.since_seconds = since_seconds
        self.is_evicted = False


class Receptions:
    """Messages that are being received; belongs to the event loop's thread."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._num_free = limit
        self._under_way: dict[_Reception, None] = {}  # the oldest first
        # By connection, which get their turns one after the other, however many calls each has begun.
        self._waiting: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()
        self._timer: asyncio.TimerHandle | None = None

    @property
    def num_under_way(self) -> int:
        """So many messages are being received."""
        return self.limit - self._num_free

    async def receive(self, read: Callable[[], Awaitable[T]], connection: Callable[[], str]) -> T:
        """What `read` receives, in the turn of the caller's connection; which that is, is only asked if need be.

        Raises:
            MessageTooSlow: it took too long while others waited.
        """
        if self._num_free:
            self._num_free -= 1
        else:
            await self._turn_of(connection())
        reception = _Reception(asyncio.current_task(), asyncio.get_running_loop().time())
        self._under_way[reception] = None
        try:
            return await read()
        except asyncio.CancelledError:
            if reception.is_evicted and reception.task is not None and not reception.task.uncancel():
                raise MessageTooSlow(
                    f"the message did not arrive in time; the server receives {self.limit} at once, and others wait. "
                    "Try again, or send smaller ones.",
                    _PAUSE_SECONDS,
                ) from None
            raise  # the caller has gone, too
        finally:
            del self._under_way[reception]
            self._hand_on()

    async def _turn_of(self, connection: str) -> None:
        turn = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(connection, deque()).append(turn)
        self._watch()
        try:
            await turn
        except asyncio.CancelledError:
            if not turn.cancelled():
                self._hand_on()
            raise

    def _hand_on(self) -> None:
        """Give what is free to who waits, or keep it."""
        while self._waiting:
            connection, turns = next(iter(self._waiting.items()))
            turn = turns.popleft()
            if turns:
                self._waiting.move_to_end(connection)
            else:
                del self._waiting[connection]
            if not turn.done():  # else its caller has gone
                turn.set_result(None)
                return
        self._num_free += 1

    def _watch(self) -> None:
        if self._timer is None:
            loop = asyncio.get_running_loop()
            # One round of the loop later: what arrived while it stood still is to be taken in first.
            self._timer = loop.call_later(SLOW_SECONDS, loop.call_soon, self._make_room, loop.time())

    def _make_room(self, began_seconds: float) -> None:
        """Look at those that were under way when the watch began."""
        self._timer = None
        if not self._waiting:
            return
        slow = [each for each in self._under_way if each.since_seconds <= began_seconds and not each.is_evicted]
        num_surplus = len(slow) - self.limit // 2
        if num_surplus > 0:
            late_seconds = began_seconds - PATIENCE_SECONDS
            late = [each for each in slow if each.since_seconds <= late_seconds]
            rest = slow[len(late) :]
            for reception in [*late, *reversed(rest)][:num_surplus]:
                reception.is_evicted = True
                if reception.task is not None:
                    reception.task.cancel()
        self._watch()
