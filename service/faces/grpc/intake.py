"""Receiving and parsing of messages, and sending of answers, within the server's byte limit."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable
from dataclasses import dataclass
from typing import Any, TypeVar

import grpc
from google.protobuf.message import DecodeError

from service.calls.open_calls import PIECE_BYTES, ByteBudget, CallHold, LargeMessages, OpenCalls
from service.calls.turns import Turns
from service.domain.errors import InvalidRequest, MessageTooSlow

T = TypeVar("T")
Context = grpc.aio.ServicerContext[Any, Any]

# A message that takes longer is slow: a small one arrives with its call and is received immediately.
SLOW_SECONDS = 0.01
PATIENCE_SECONDS = 5.0  # a message that has been arriving for longer makes room for others
_END: Any = grpc.aio.EOF  # type: ignore[attr-defined]  # the stubs don't know it
_GONE_SECONDS = 0.1  # gRPC reports the end of messages first, and this much later that the caller has disconnected


class _Reception:
    __slots__ = ("is_evicted", "since_seconds", "task")

    def __init__(self, task: "asyncio.Task[object] | None", since_seconds: float) -> None:
        self.task = task
        self.since_seconds = since_seconds
        self.is_evicted = False


class Receptions:
    """Limit on the messages being received at a time, each of which may reach the largest allowed size.

    gRPC buffers at most `server.UNREAD_BYTES` of a message before it is read, then up to the largest size. So only a
    limited number is read at a time, and callers that begin calls but send little must not block others. For the event
    loop's thread only.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._turns = Turns(limit)  # of connections, however many calls each has begun
        self._under_way: dict[_Reception, None] = {}  # oldest first
        self._timer: asyncio.TimerHandle | None = None
        self._loop = asyncio.get_running_loop()  # kept: each time, it takes a system call

    @property
    def num_under_way(self) -> int:
        return self.limit - self._turns.num_free

    async def receive(self, read: Callable[[], Awaitable[T]], connection: str) -> T:
        """Return what `read` receives, in the connection's turn; raise `MessageTooSlow` if others wait too long."""
        if not self._turns.take_free(connection):
            self._watch()
            await self._turns.wait(connection)
        reception = _Reception(asyncio.current_task(self._loop), self._loop.time())
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
            loop = self._loop
            # One iteration of the loop later, to first receive what arrived while the loop was blocked.
            self._timer = loop.call_later(SLOW_SECONDS, loop.call_soon, self._make_room, loop.time())

    def _make_room(self, began_seconds: float) -> None:
        """Evict surplus slow messages among those in progress when the watch began.

        While others wait, at most half of the messages may be slow. Beyond that, those above `PATIENCE_SECONDS` are
        dropped first, then the latest, so that messages that progress are not lost to those that never end.
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


@dataclass(frozen=True, slots=True)
class Memory:
    """Memory for single messages being received, for those of streams, and for data held until answers are sent.

    A message being received, or awaited on a stream, counts with the largest allowed size.
    """

    held: ByteBudget
    singles: Receptions
    streams: Receptions
    largest_bytes: int

    @classmethod
    def of(cls, max_bytes: int, largest_bytes: int) -> "Memory":
        """Divide `max_bytes`: a quarter for messages being received, one for streams'; each at most `largest_bytes`."""
        streams = max(2, max_bytes // 4 // largest_bytes)
        singles = min(streams, 32)  # all may arrive in one iteration of the event loop
        held = ByteBudget(max_bytes - (singles + streams) * largest_bytes, largest_bytes)
        return cls(held, Receptions(singles), Receptions(streams), largest_bytes)

    @property
    def max_bytes(self) -> int:
        return self.held.max_bytes + (self.singles.limit + self.streams.limit) * self.largest_bytes

    @property
    def num_bytes(self) -> int:
        """Return the bytes in flight, including those that messages being received may still need."""
        return self.held.num_bytes + (self.singles.num_under_way + self.streams.num_under_way) * self.largest_bytes


class Intake:
    """Receives each call's message in its turn, where gRPC itself would receive all of them, however many."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._large = LargeMessages()

    def begin(self, context: Context, open_calls: OpenCalls | None, owner: str) -> CallHold:
        """Hold memory for an owner's call from now on; raise `MemoryFull` without room (`ByteBudget`)."""
        hold = CallHold(self._memory.held, open_calls)
        # Not when the handler returns: its answer has yet to be sent. The stubs accept no function here.
        context.add_done_callback(hold.end)  # type: ignore[arg-type]
        hold.begin(owner)
        return hold

    async def receive(self, context: Context, hold: CallHold, caller: Hashable) -> bytes:
        """Return the call's message; from its arrival on the call is open.

        Raise `InvalidRequest` without one, `MemoryFull`, or `MessageTooSlow` if it took too long while others waited.
        """
        message: Any = await self._memory.singles.receive(context.read, context.peer())
        if message is _END:
            await asyncio.sleep(_GONE_SECONDS)  # usually the caller has disconnected, and this task is cancelled
            raise InvalidRequest("the call has no message", advice="send one")
        hold.budget.change(hold, len(message))
        if len(message) > PIECE_BYTES:
            await self._large.turn(caller)
        hold.open()
        return message  # type: ignore[no-any-return]

    async def each(self, context: Context) -> AsyncIterator[bytes]:
        while (message := await self._memory.streams.receive(context.read, context.peer())) is not _END:
            yield message


def parse(deserialize: Callable[[bytes], T], message: bytes) -> T:
    """Parse a message; raise `InvalidRequest` if the bytes are not one."""
    try:
        return deserialize(message)
    except DecodeError as error:
        raise InvalidRequest(
            "the request is not a valid message of this method", advice="check that its text is valid UTF-8"
        ) from error
