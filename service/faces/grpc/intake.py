"""Receiving of messages and sending of answers within the server's byte limit."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import grpc

from service.domain.errors import InvalidRequest
from service.faces.grpc.byte_budget import CALL_BYTES, ByteBudget, Hold
from service.faces.grpc.open_calls import OpenCalls
from service.faces.grpc.receptions import Receptions

Context = grpc.aio.ServicerContext[Any, Any]

_END: Any = grpc.aio.EOF  # type: ignore[attr-defined]  # the stubs don't know it
_GONE_SECONDS = 0.1  # gRPC reports the end of messages first, and this much later that the caller has disconnected
_SHARE_OF_RECEPTIONS = 4  # 1/n of all bytes is for messages being received, and 1/n for those of streams
_MOST_SINGLES = 32  # all may arrive in one iteration of the event loop
# Parsing and checking a larger message takes the event loop milliseconds, in which gRPC accepts no other call.
_LARGE_BYTES = 64 * 2**10
_REST = 9  # limits large messages to a tenth of the event loop's time


@dataclass(frozen=True, slots=True)
class Memory:
    """Memory for calls, in three parts: messages being received, messages being received on streams of requests, and
    data held for calls until their answers are sent.

    Each message of the first two parts counts with the largest allowed size; so does each stream that waits for its
    next message.
    """

    held: ByteBudget
    singles: Receptions
    streams: Receptions
    largest_bytes: int

    @classmethod
    def of(cls, max_bytes: int, largest_bytes: int) -> "Memory":
        """Divide `max_bytes` among the parts; messages have at most `largest_bytes`."""
        streams = max(2, max_bytes // _SHARE_OF_RECEPTIONS // largest_bytes)
        singles = min(streams, _MOST_SINGLES)
        held = ByteBudget(max_bytes - (singles + streams) * largest_bytes, largest_bytes)
        return cls(held, Receptions(singles), Receptions(streams), largest_bytes)

    @property
    def max_bytes(self) -> int:
        """Return the maximum of bytes in flight."""
        return self.held.max_bytes + (self.singles.limit + self.streams.limit) * self.largest_bytes

    @property
    def num_bytes(self) -> int:
        """Return the bytes in flight, including those of messages being received that may still arrive."""
        return self.held.num_bytes + (self.singles.num_under_way + self.streams.num_under_way) * self.largest_bytes


class Stay:
    """What a call takes until its answer is sent: bytes, and from its message's arrival a place among open calls."""

    __slots__ = ("_hold", "_is_open", "_open_calls")

    def __init__(self, hold: Hold, open_calls: OpenCalls | None) -> None:
        """Count as open in `open_calls`, if there are any."""
        self._hold = hold
        self._open_calls = open_calls
        self._is_open = False

    def open(self) -> None:
        """Count as an open call from now on."""
        if self._open_calls is not None:
            self._is_open = True
            self._open_calls.began()

    def grow(self, num_bytes: int) -> None:
        """See `Hold.grow`."""
        self._hold.grow(num_bytes)

    def replace(self, num_before: int, num_after: int) -> None:
        """Hold the bytes of an answer in place of those of its message.

        Raises:
            MemoryFull: as for `Hold.grow`.
        """
        self._hold.shrink(num_before)
        self._hold.grow(num_after)

    def end(self, _: object) -> None:
        """Give everything back; gRPC calls this once the answer is sent, or the caller is gone."""
        self._hold.release()
        if self._is_open and self._open_calls is not None:
            self._open_calls.ended()


class Intake:
    """Receives each call's message in its turn, where gRPC itself would receive all of them, however many."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._large = asyncio.Lock()

    def begin(self, context: Context, open_calls: OpenCalls | None) -> Stay:
        """Begin a call's stay.

        Raises:
            MemoryFull: there is no room for another call.
        """
        hold = self._memory.held.hold()
        hold.grow(CALL_BYTES)
        stay = Stay(hold, open_calls)
        # Not when the handler returns: its answer has yet to be sent. The stubs accept no function here.
        context.add_done_callback(stay.end)  # type: ignore[arg-type]
        return stay

    async def receive(self, context: Context, stay: Stay) -> bytes:
        """Return the call's message; from its arrival on the call is open.

        Raises:
            InvalidRequest: there is none.
            MemoryFull: there is no room for it.
            MessageTooSlow: it took too long while others waited.
        """
        message: Any = await self._memory.singles.receive(context.read, context.peer)
        if message is _END:
            await asyncio.sleep(_GONE_SECONDS)  # usually the caller has disconnected, and this task is cancelled
            raise InvalidRequest("the call has no message", advice="send one")
        stay.grow(len(message))
        if len(message) > _LARGE_BYTES:
            await self._turn_of_large()
        stay.open()
        return message  # type: ignore[no-any-return]

    async def each(self, context: Context) -> AsyncIterator[bytes]:
        """Yield the messages of a stream of requests."""
        while (message := await self._memory.streams.receive(context.read, context.peer)) is not _END:
            yield message

    async def _turn_of_large(self) -> None:
        """Wait for the turn of a large message: several times as long as the last one blocked the event loop."""
        await self._large.acquire()
        loop = asyncio.get_running_loop()
        began_seconds = loop.time()
        loop.call_soon(lambda: loop.call_later(_REST * (loop.time() - began_seconds), self._large.release))
