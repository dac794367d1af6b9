"""Takes messages in, and lets answers out, within the bytes that the server may hold."""

import asyncio
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import grpc

from service.calls.pipeline import CallPipeline
from service.domain.errors import InvalidRequest, ServiceError
from service.faces.grpc.byte_budget import CALL_BYTES, ByteBudget, Hold
from service.faces.grpc.calls import refuse
from service.faces.grpc.interceptors import Context, Continuation, Handler, Interceptor
from service.faces.grpc.receptions import Receptions

T = TypeVar("T")

_END: Any = grpc.aio.EOF  # type: ignore[attr-defined]  # the stubs don't know it
_GONE_SECONDS = 0.1  # in which gRPC tells of a caller who went, after it has told that no message will come
_SHARE_OF_RECEPTIONS = 4  # one part in so many of all bytes is for messages on their way, and one for those of streams
_MOST_SINGLES = 32  # all may arrive in one round of the event loop
# To parse and to check a larger message takes the event loop milliseconds, in which gRPC takes in no other call.
_LARGE_BYTES = 64 * 2**10
_REST = 9  # so large messages have a tenth of its time


@dataclass(frozen=True, slots=True)
class Memory:
    """What calls may take of the memory, in three parts: messages that are being received, the same on streams of
    requests, and what is held of calls until their answers are sent.

    Each of the first two is worth the largest message there may be; streams that wait for their next count there.
    """

    held: ByteBudget
    singles: Receptions
    streams: Receptions
    largest_bytes: int

    @classmethod
    def of(cls, max_bytes: int, largest_bytes: int) -> "Memory":
        """Divide `max_bytes` among them; messages have at most `largest_bytes`."""
        streams = max(2, max_bytes // _SHARE_OF_RECEPTIONS // largest_bytes)
        singles = min(streams, _MOST_SINGLES)
        held = ByteBudget(max_bytes - (singles + streams) * largest_bytes, largest_bytes)
        return cls(held, Receptions(singles), Receptions(streams), largest_bytes)

    @property
    def max_bytes(self) -> int:
        """Most bytes that there may be in flight."""
        return self.held.max_bytes + (self.singles.limit + self.streams.limit) * self.largest_bytes

    @property
    def num_bytes(self) -> int:
        """Bytes in flight, with those that may yet arrive of messages on their way."""
        return self.held.num_bytes + (self.singles.num_under_way + self.streams.num_under_way) * self.largest_bytes


class IntakeInterceptor(Interceptor):
    """Receives what gRPC would receive by itself, however much: the message of a call, when it is its turn.

    So to gRPC all handlers outside of this one are of streams of requests, which are read by their handlers. Inside of
    it requests are bytes, one by one where a caller streams them. Must be outside of all that asks for messages.
    """

    def __init__(self, memory: Memory, pipeline: CallPipeline) -> None:
        self._memory = memory
        self._pipeline = pipeline
        self._large = asyncio.Lock()

    async def intercept_service(self, continuation: Continuation, details: grpc.HandlerCallDetails) -> Handler:
        """As `grpc.aio.ServerInterceptor`."""
        handler: Any = await continuation(details)  # the stubs know sync handlers only
        if handler is None:
            return None  # type: ignore[return-value]
        serialize = handler.response_serializer

        async def begun(context: Context) -> Hold:
            hold = self._memory.held.hold()
            hold.grow(CALL_BYTES)
            # Not when the handler returns: its answer is yet to be sent. The stubs take no function here.
            context.add_done_callback(lambda _: hold.release())  # type: ignore[arg-type]
            return hold

        async def received(context: Context, hold: Hold) -> bytes:
            message: Any = await self._memory.singles.receive(context.read, context.peer)
            if message is _END:
                await asyncio.sleep(_GONE_SECONDS)  # as a rule the caller has gone, and this task is cancelled
                raise InvalidRequest("the call has no message; send one.")
            hold.grow(len(message))
            if len(message) > _LARGE_BYTES:
                await self._turn_of_large()
            return message  # type: ignore[no-any-return]

        async def unary_unary(context: Context) -> bytes:
            hold = await begun(context)
            message = await received(context, hold)
            response = await handler.unary_unary(message, context)
            answer: bytes = serialize(response) if serialize else response
            hold.shrink(len(message))
            hold.grow(len(answer))
            return answer

        async def unary_stream(context: Context) -> None:
            await handler.unary_stream(await received(context, await begun(context)), context)

        async def stream_stream(context: Context) -> None:
            await begun(context)
            await handler.stream_stream(self._each(context), context)

        def within_memory(call: Callable[[Context], Awaitable[T]]) -> Callable[[Any, Context], Awaitable[T]]:
            async def behaviour(_: Any, context: Context) -> T:
                try:
                    try:
                        return await call(context)
                    except ServiceError as error:
                        refusal = error.with_traceback(None)  # which would hold the message
                    return await refuse(self._pipeline, refusal, context)
                except grpc.aio.AbortError as error:
                    _forget(error)
                    raise

            return behaviour

        if handler.unary_unary is not None:
            return grpc.stream_unary_rpc_method_handler(within_memory(unary_unary))
        call = unary_stream if handler.unary_stream is not None else stream_stream
        return grpc.stream_stream_rpc_method_handler(within_memory(call), None, serialize)

    async def _turn_of_large(self) -> None:
        """After one large message the next waits several times as long as the event loop was held up by it."""
        await self._large.acquire()
        loop = asyncio.get_running_loop()
        began_seconds = loop.time()
        loop.call_soon(lambda: loop.call_later(_REST * (loop.time() - began_seconds), self._large.release))

    async def _each(self, context: Context) -> AsyncIterator[bytes]:
        while (message := await self._memory.streams.receive(context.read, context.peer)) is not _END:
            yield message


def _forget(error: grpc.aio.AbortError) -> None:
    """Have an error that ended a call hold nothing of it.

    gRPC keeps the error with the call, and the error the frames that it went through, which hold the message and
    the call: all that would stay until Python's collector comes by.
    """
    traceback.clear_frames(error.__traceback__)
    error.__context__ = error.__traceback__ = None
