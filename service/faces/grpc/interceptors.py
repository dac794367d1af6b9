"""Wrapping of handlers by interceptors, and the generic interceptors: build handlers once, and parse messages."""

import inspect
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeVar

import grpc
from google.protobuf.message import DecodeError

from service.domain.errors import InvalidRequest
from service.faces.grpc.absent_callers import write

Context = grpc.aio.ServicerContext[Any, Any]
Behaviour = Callable[[Any, Context], Awaitable[Any]]

T = TypeVar("T")

if TYPE_CHECKING:  # generic in the stubs only
    Handler = grpc.RpcMethodHandler[Any, Any]
    Interceptor = grpc.aio.ServerInterceptor[Any, Any]
else:
    Handler = grpc.RpcMethodHandler
    Interceptor = grpc.aio.ServerInterceptor
H = TypeVar("H", bound=Handler | None)
Continuation = Callable[[grpc.HandlerCallDetails], Awaitable[Handler]]


class OnceInterceptor(Interceptor):
    """Has the other interceptors build their handler of a method once instead of per call. Must be the outermost.

    Handlers may therefore depend only on the method of a call, and only known methods have one.
    """

    def __init__(self) -> None:
        self._handlers: dict[str, Handler] = {}

    async def intercept_service(self, continuation: Continuation, details: grpc.HandlerCallDetails) -> Handler:
        """See `grpc.aio.ServerInterceptor`."""
        handler = self._handlers.get(details.method)
        if handler is None:
            handler = await continuation(details)
            if handler is not None:
                self._handlers[details.method] = handler
        return handler


class ParsingInterceptor(Interceptor):
    """Parses requests, so that an invalid message is reported as the caller's error, not the server's.

    Must be the innermost interceptor: the others see bytes, and reject calls before these are parsed.
    """

    async def intercept_service(self, continuation: Continuation, details: grpc.HandlerCallDetails) -> Handler:
        """See `grpc.aio.ServerInterceptor`."""
        handler = await continuation(details)

        async def parsed(call: Behaviour, request: Any, context: Context) -> Any:
            return await call((_each_parsed if handler.request_streaming else _parsed)(handler, request), context)

        return around(handler, parsed, parses=False)


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


def _parsed(handler: Handler, request: bytes) -> Any:
    return request if handler.request_deserializer is None else parse(handler.request_deserializer, request)


async def _each_parsed(handler: Handler, requests: AsyncIterable[bytes]) -> AsyncIterator[Any]:
    async for request in requests:
        yield _parsed(handler, request)


def around(handler: H, wrapper: Callable[[Behaviour, Any, Context], Awaitable[Any]], *, parses: bool = True) -> H:
    """Run `wrapper` around a handler; a handler of streams may write its answers itself or yield them.

    Sync handlers, and `None` for unknown methods, are returned unchanged.
    """
    if handler is None:
        return handler
    call: Behaviour  # the stubs only know sync handlers
    if handler.unary_unary is not None:
        call, new_handler = handler.unary_unary, grpc.unary_unary_rpc_method_handler  # type: ignore[assignment]
    elif inspect.iscoroutinefunction(handler.stream_unary):
        call, new_handler = handler.stream_unary, grpc.stream_unary_rpc_method_handler
    elif inspect.iscoroutinefunction(handler.unary_stream):
        call, new_handler = handler.unary_stream, grpc.unary_stream_rpc_method_handler
    elif inspect.iscoroutinefunction(handler.stream_stream):
        call, new_handler = handler.stream_stream, grpc.stream_stream_rpc_method_handler
    elif inspect.isasyncgenfunction(handler.stream_stream):
        call, new_handler = _writing(handler.stream_stream), grpc.stream_stream_rpc_method_handler
    else:
        return handler

    async def behaviour(request: Any, context: Context) -> Any:
        return await wrapper(call, request, context)

    return new_handler(  # type: ignore[return-value]
        behaviour,
        request_deserializer=handler.request_deserializer if parses else None,
        response_serializer=handler.response_serializer,
    )


def _writing(answers: Callable[[Any, Context], AsyncIterator[Any]]) -> Behaviour:
    async def call(requests: Any, context: Context) -> None:
        async for answer in answers(requests, context):
            await write(context, answer)

    return call
