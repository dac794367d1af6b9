"""gRPC side of the call pipeline (`service.calls.pipeline`): takes every call from its first byte to its last.

Begin -> identify -> receive the message in its turn -> admit -> serve: parse, answer -> trailers, or an error's status.
This is one coroutine per call; an interceptor for each step took a quarter of a short text's time outside the engine.
"""

import inspect
import time
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar
from urllib.parse import unquote

import grpc

from service.calls.open_calls import OpenCalls
from service.calls.pipeline import REQUEST_ID_KEY, CallPipeline, Metadata
from service.domain.call import TIMING_KEY, Call, CallKind, host_of_address, server_timing
from service.domain.errors import ServiceError
from service.faces.grpc import health, reflection
from service.faces.grpc.absent_callers import end, forget, write
from service.faces.grpc.api import GrpcApi, ReadPriority
from service.faces.grpc.intake import Intake, parse
from service.faces.grpc.status import status_of

Context = grpc.aio.ServicerContext[Any, Any]
T = TypeVar("T")

if TYPE_CHECKING:  # generic in the stubs only
    Handler = grpc.RpcMethodHandler[Any, Any]
    Interceptor = grpc.aio.ServerInterceptor[Any, Any]
else:
    Handler = grpc.RpcMethodHandler
    Interceptor = grpc.aio.ServerInterceptor
Continuation = Callable[[grpc.HandlerCallDetails], Awaitable[Handler]]

# Probes have no keys, and the list of methods is public anyway.
_KEYLESS_SERVICES = tuple(f"/{name}/" for name in (health.SERVICE_NAME, *reflection.SERVICE_NAMES))


class CallInterceptor(Interceptor):
    """Handles every call of every method; must be the only interceptor.

    To gRPC, all handlers take streams: it would receive all single messages at once, `Intake` does so in turn. Handlers
    are built once per known method.
    """

    def __init__(self, apis: Sequence[GrpcApi], pipeline: CallPipeline, intake: Intake, open_calls: OpenCalls) -> None:
        self._keyless = _KEYLESS_SERVICES + tuple(api.path(method) for api in apis for method in api.keyless)
        self._listing = frozenset(api.path(method) for api in apis for method in api.listing)
        self._priority_of = {api.path(method): read for api in apis for method, read in api.priority_of.items()}
        self._kinds = {api.path(method): kind for api in apis for method, kind in api.kinds.items()}
        pipeline.knows((path.removeprefix("/"), kind) for path, kind in self._kinds.items())
        self._pipeline = pipeline
        self._intake = intake
        self._open_calls = open_calls
        self._handlers: dict[str, Handler] = {}

    async def intercept_service(self, continuation: Continuation, details: grpc.HandlerCallDetails) -> Handler:
        handler = self._handlers.get(details.method)
        if handler is None:
            handler = await continuation(details)
            if handler is not None:
                calls = _MethodHandler(
                    self._pipeline,
                    self._intake,
                    self._open_calls,
                    handler,
                    details.method,
                    self._kinds.get(details.method, CallKind.OTHER),
                    needs_key=not details.method.startswith(self._keyless),
                    takes_tokens=details.method not in self._listing,
                    priority_of=self._priority_of.get(details.method),
                )
                handler = self._handlers[details.method] = calls.handler()
        return handler


class _MethodHandler:
    """The handler of one method's calls. All methods belong to the event loop's thread."""

    def __init__(
        self,
        pipeline: CallPipeline,
        intake: Intake,
        open_calls: OpenCalls,
        handler: Any,
        method: str,
        kind: CallKind,
        *,
        needs_key: bool,
        takes_tokens: bool,
        priority_of: ReadPriority | None,
    ) -> None:
        self._pipeline = pipeline
        self._intake = intake
        self._open_calls = open_calls if open_calls.counts(method) else None
        self._method = method.removeprefix("/")
        self._kind = kind
        self._needs_key = pipeline.asks_for_keys and needs_key
        self._takes_tokens = takes_tokens
        self._priority_of = priority_of
        self._is_unary = handler.unary_unary is not None
        self._is_streamed = bool(handler.request_streaming)
        self._deserialize = handler.request_deserializer
        self._serialize = handler.response_serializer
        self._behaviour = behaviour_of(handler)

    def handler(self) -> Any:
        if self._is_unary:
            return grpc.stream_unary_rpc_method_handler(self._forgotten(self._answer))
        way = self._forgotten(self._write_all) if self._is_streamed else self._forgotten(self._answer)
        return grpc.stream_stream_rpc_method_handler(way, None, self._serialize)

    @staticmethod
    def _forgotten(way: Callable[[Context], Awaitable[T]]) -> Callable[[Any, Context], Awaitable[T]]:
        async def behaviour(_: Any, context: Context) -> T:
            try:
                return await way(context)
            except grpc.aio.AbortError as error:
                forget(error)
                raise

        return behaviour

    async def _answer(self, context: Context) -> bytes | None:
        """Answer one message with one message; `None` if the handler has written a stream.

        The most common calls, which have a priority, are rejected unread if too little time is left, and unparsed while
        every model is overloaded. Nothing is read of callers who lack a key.
        """
        metadata = context.invocation_metadata() or ()
        call = self._begin(context, metadata)
        refusal: Exception
        try:
            if self._priority_of is not None and (left := context.time_remaining()) is not None:
                self._pipeline.check_time(left)  # before anything is received
            if self._needs_key:
                self._pipeline.identify(call, metadata)
            hold = self._intake.begin(context, self._open_calls, self._pipeline.owner(call))
            message = await self._intake.receive(context, hold, call.origin[:1])
        except ServiceError as error:
            refusal = error.with_traceback(None)  # it would keep the message alive
        else:
            try:
                if (priority_of := self._priority_of) is not None:
                    self._pipeline.admit(lambda: priority_of(message))
            except Exception as error:
                refusal = error.with_traceback(None)
            else:
                response = await self._served(call, message, context, metadata)
                if not self._is_unary:
                    return None
                answer: bytes = self._serialize(response) if self._serialize else response
                hold.budget.change(hold, len(answer) - len(message))
                return answer
        return await self._refuse(call, refusal, context)

    async def _write_all(self, context: Context) -> None:
        """Answer a stream with a stream; each request is a call of its own, served by its handler."""
        metadata = context.invocation_metadata() or ()
        call = self._begin(context, metadata)
        try:
            if self._needs_key:
                self._pipeline.identify(call, metadata)
            self._intake.begin(context, self._open_calls, self._pipeline.owner(call)).open()
        except ServiceError as error:
            refusal = error.with_traceback(None)
        else:
            context.set_trailing_metadata(((REQUEST_ID_KEY, call.request_id),))
            requests = _each_parsed(self._deserialize, self._intake.each(context))
            try:
                await self._pipeline.guard(call, lambda: self._behaviour(requests, context))
            except ServiceError as error:
                failure = _without_frames(error)
            else:
                self._add_timing(call, context)
                return
            await self._end(call, failure, context)
        await self._refuse(call, refusal, context)

    def _begin(self, context: Context, metadata: Metadata) -> Call:
        peer = context.peer()
        return self._pipeline.begin(self._method, metadata, host_of(peer), peer, protocol="grpc", kind=self._kind)

    async def _served(self, call: Call, message: bytes, context: Context, metadata: Metadata) -> Any:
        """Serve a call, and send its id and timing as trailers; end a failed one with the status of its error."""
        context.set_trailing_metadata(((REQUEST_ID_KEY, call.request_id),))
        deserialize, behaviour = self._deserialize, self._behaviour

        def work() -> Awaitable[Any]:
            return behaviour(message if deserialize is None else parse(deserialize, message), context)

        try:
            response = await self._pipeline.serve(
                call, work, metadata, context.time_remaining, takes_tokens=self._takes_tokens
            )
        except ServiceError as error:
            failure = _without_frames(error)
        else:
            self._add_timing(call, context)
            return response
        return await self._end(call, failure, context)

    async def _end(self, call: Call, failure: ServiceError, context: Context) -> NoReturn:
        trailers = (*(context.trailing_metadata() or ()), *_timing(call))
        await end(context, status_of(failure), trailers)

    async def _refuse(self, call: Call, error: Exception, context: Context) -> NoReturn:
        status = status_of(self._pipeline.refuse(call, error))
        await end(context, status, ((REQUEST_ID_KEY, call.request_id),))

    @staticmethod
    def _add_timing(call: Call, context: Context) -> None:
        if timing := _timing(call):
            context.set_trailing_metadata((*(context.trailing_metadata() or ()), *timing))


def _without_frames(error: ServiceError) -> ServiceError:
    """Return an error without its frames and its context, which would keep the message alive."""
    error.__context__ = None
    return error.with_traceback(None)


def _timing(call: Call) -> tuple[tuple[str, str], ...]:
    if not call.num_texts:
        return ()
    return ((TIMING_KEY, server_timing(call.seconds, call.total_seconds)),)


def behaviour_of(handler: Any) -> Callable[[Any, Context], Awaitable[Any]]:
    """Return a handler's coroutine function; a handler of streams may write its answers itself or yield them."""
    for behaviour in (handler.unary_unary, handler.unary_stream, handler.stream_stream):
        if inspect.iscoroutinefunction(behaviour):
            return behaviour  # type: ignore[no-any-return]
    answers = handler.stream_stream
    assert inspect.isasyncgenfunction(answers), f"{handler} is neither a coroutine function nor an async generator"

    async def written(requests: Any, context: Context) -> None:
        async for answer in answers(requests, context):
            await write(context, answer)

    return written


async def _each_parsed(
    deserialize: Callable[[bytes], Any] | None, messages: AsyncIterable[bytes]
) -> AsyncIterator[Any]:
    async for message in messages:
        yield message if deserialize is None else parse(deserialize, message)


def host_of(peer: str) -> str:
    """Return the host of a gRPC peer, such as `ipv4:192.0.2.1:5000` or `ipv6:%5B2001:db8::1%5D:5000`.

    All Unix sockets (`unix:`) count as one host.
    """
    kind, _, address = peer.partition(":")
    host = address.rpartition(":")[0]
    if kind != "ipv6":
        return host if kind == "ipv4" else kind
    return host_of_address(unquote(host).strip("[]"))


def deadline_of(context: "grpc.aio.ServicerContext[Any, Any]", default_seconds: float) -> float:
    """Return the caller's deadline, or else the default one, on the clock of `time.monotonic()`."""
    remaining = context.time_remaining()
    return time.monotonic() + (default_seconds if remaining is None else remaining)
