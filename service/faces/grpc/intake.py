"""Receiving of messages and sending of answers within the server's byte limit."""

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


class IntakeInterceptor(Interceptor):
    """Receives each call's message in its turn, where gRPC itself would receive all of them, however many.

    To gRPC, all handlers outside this interceptor therefore take streams of requests, which the handlers read. Inside,
    requests are bytes, one by one where the caller streams them. Must be outside all interceptors that read messages.
    """

    def __init__(self, memory: Memory, pipeline: CallPipeline) -> None:
        self._memory = memory
        self._pipeline = pipeline
        self._large = asyncio.Lock()

    async def intercept_service(self, continuation: Continuation, details: grpc.HandlerCallDetails) -> Handler:
        """See `grpc.aio.ServerInterceptor`."""
        handler: Any = await continuation(details)  # the stubs only know sync handlers
        if handler is None:
            return None  # type: ignore[return-value]
        serialize = handler.response_serializer

        async def begun(context: Context) -> Hold:
            hold = self._memory.held.hold()
            hold.grow(CALL_BYTES)
            # Not when the handler returns: its answer has yet to be sent. The stubs accept no function here.
            context.add_done_callback(lambda _: hold.release())  # type: ignore[arg-type]
            return hold

        async def received(context: Context, hold: Hold) -> bytes:
            message: Any = await self._memory.singles.receive(context.read, context.peer)
            if message is _END:
                await asyncio.sleep(_GONE_SECONDS)  # usually the caller has disconnected, and this task is cancelled
                raise InvalidRequest("the call has no message", advice="send one")
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
                        refusal = error.with_traceback(None)  # it would keep the message alive
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
        """Wait for the turn of a large message: several times as long as the last one blocked the event loop."""
        await self._large.acquire()
        loop = asyncio.get_running_loop()
        began_seconds = loop.time()
        loop.call_soon(lambda: loop.call_later(_REST * (loop.time() - began_seconds), self._large.release))

    async def _each(self, context: Context) -> AsyncIterator[bytes]:
        while (message := await self._memory.streams.receive(context.read, context.peer)) is not _END:
            yield message


def _forget(error: grpc.aio.AbortError) -> None:
    """Remove an error's references to the call that it ended.

    gRPC keeps the error with the call, and the error keeps its frames, which refer to the message and the call: all of
    that would stay in memory until Python's garbage collector runs.
    """
    traceback.clear_frames(error.__traceback__)
    error.__context__ = error.__traceback__ = None
