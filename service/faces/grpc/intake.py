"""Receiving and parsing of messages, and sending of answers, within the server's byte limit."""

import asyncio
from collections.abc import AsyncIterator, Callable, Hashable
from dataclasses import dataclass
from typing import Any, TypeVar

import grpc
from google.protobuf.message import DecodeError

from service.calls.byte_budget import ByteBudget
from service.calls.call_hold import PIECE_BYTES, CallHold, LargeMessages
from service.calls.open_calls import OpenCalls
from service.domain.errors import InvalidRequest
from service.faces.grpc.receptions import Receptions

T = TypeVar("T")
Context = grpc.aio.ServicerContext[Any, Any]

_END: Any = grpc.aio.EOF  # type: ignore[attr-defined]  # the stubs don't know it
_GONE_SECONDS = 0.1  # gRPC reports the end of messages first, and this much later that the caller has disconnected
_SHARE_OF_RECEPTIONS = 4  # 1/n of all bytes is for messages being received, and 1/n for those of streams
_MOST_SINGLES = 32  # all may arrive in one iteration of the event loop


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


class Intake:
    """Receives each call's message in its turn, where gRPC itself would receive all of them, however many."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._large = LargeMessages()

    def begin(self, context: Context, open_calls: OpenCalls | None, owner: str) -> CallHold:
        """Begin to hold memory for a call of an owner, see `ByteBudget`.

        Raises:
            MemoryFull: there is no room for another call.
        """
        hold = CallHold(self._memory.held, open_calls)
        # Not when the handler returns: its answer has yet to be sent. The stubs accept no function here.
        context.add_done_callback(hold.end)  # type: ignore[arg-type]
        hold.begin(owner)
        return hold

    async def receive(self, context: Context, hold: CallHold, caller: Hashable) -> bytes:
        """Return the call's message; from its arrival on the call is open.

        Raises:
            InvalidRequest: there is none.
            MemoryFull: there is no room for it.
            MessageTooSlow: it took too long while others waited.
        """
        message: Any = await self._memory.singles.receive(context.read, context.peer())
        if message is _END:
            await asyncio.sleep(_GONE_SECONDS)  # usually the caller has disconnected, and this task is cancelled
            raise InvalidRequest("the call has no message", advice="send one")
        hold.grow(len(message))
        if len(message) > PIECE_BYTES:
            await self._large.turn(caller)
        hold.open()
        return message  # type: ignore[no-any-return]

    async def each(self, context: Context) -> AsyncIterator[bytes]:
        while (message := await self._memory.streams.receive(context.read, context.peer())) is not _END:
            yield message


def parse(deserialize: Callable[[bytes], T], message: bytes) -> T:
    """Parse a message.

    Raises:
        InvalidRequest: the bytes are not a valid message.
    """
    try:
        return deserialize(message)
    except DecodeError as error:
        raise InvalidRequest(
            "the request is not a valid message of this method", advice="check that its text is valid UTF-8"
        ) from error
