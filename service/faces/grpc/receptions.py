"""Limit on the messages being received at a time, each of which may reach the largest allowed size.

It is unknown how large a message will be, or whether it arrives at all. Until it is read, gRPC buffers at most
`server.UNREAD_BYTES` of it; from then on up to the largest size. So only a limited number is read at a time, and
callers that begin calls but send little must not block others.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from service.calls.turns import Turns
from service.domain.errors import MessageTooSlow

# A message that takes longer is slow: a small one arrives with its call and is received immediately.
SLOW_SECONDS = 0.01
PATIENCE_SECONDS = 5.0  # a message that has been arriving for longer makes room for others

T = TypeVar("T")


class _Reception:
    __slots__ = ("is_evicted", "since_seconds", "task")

    def __init__(self, task: "asyncio.Task[object] | None", since_seconds: float) -> None:
        self.task = task
        self.since_seconds = since_seconds
        self.is_evicted = False


class Receptions:
    """The messages being received. For the event loop's thread only."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._turns = Turns(limit)  # of connections, however many calls each has begun
        self._under_way: dict[_Reception, None] = {}  # oldest first
        self._timer: asyncio.TimerHandle | None = None

    @property
    def num_under_way(self) -> int:
        return self.limit - self._turns.num_free

    async def receive(self, read: Callable[[], Awaitable[T]], connection: str) -> T:
        """Return what `read` receives, in the turn of the caller's connection.

        Raises:
            MessageTooSlow: it took too long while others waited.
        """
        if not self._turns.take_free(connection):
            self._watch()
            await self._turns.wait(connection)
        reception = _Reception(asyncio.current_task(), asyncio.get_running_loop().time())
        self._under_way[reception] = None
        try:
            return await read()
        except asyncio.CancelledError:
            if reception.is_evicted and reception.task is not None and not reception.task.uncancel():
                raise MessageTooSlow(
                    "the message did not arrive in time while others were waiting; the server receives {limit} at once",
                    limit=self.limit,
                    advice="try again, or send smaller messages",
                ) from None
            raise  # the caller has disconnected, too
        finally:
            del self._under_way[reception]
            self._turns.give_back(connection)

    def _watch(self) -> None:
        if self._timer is None:
            loop = asyncio.get_running_loop()
            # One iteration of the loop later, to first receive what arrived while the loop was blocked.
            self._timer = loop.call_later(SLOW_SECONDS, loop.call_soon, self._make_room, loop.time())

    def _make_room(self, began_seconds: float) -> None:
        """Evict surplus slow messages among those in progress when the watch began.

        While others wait, at most half of the messages being received may be slow. Beyond that, those that have taken
        longer than `PATIENCE_SECONDS` are dropped first, then the latest: so messages that progress are not lost to
        those that never end.
        """
        self._timer = None
        if not self._turns.num_waiting:
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
