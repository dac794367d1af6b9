"""One call of a planted handler, taken the whole way of calls without gRPC's server."""

from collections.abc import Awaitable, Callable
from typing import Any, cast

import grpc

from service.calls.open_calls import OpenCalls
from service.calls.pipeline import CallPipeline
from service.faces.dragoman.grpc import dragoman_api
from service.faces.google.grpc import google_api
from service.faces.grpc.calls import CallInterceptor
from service.faces.grpc.intake import Intake, Memory

METADATA = (("x-request-id", "mine"),)


class Context:
    """The context of a call whose message has arrived, and whose answer is sent when the test decides."""

    def __init__(self, message: bytes = b"") -> None:
        self.message = message
        self.ended: tuple[Any, ...] | None = None
        self.trailers: tuple[Any, ...] = ()
        self.sent: Callable[[Any], None] = lambda _: None
        self.left_seconds: float | None = None
        self.was_read = False

    def peer(self) -> str:
        return "ipv4:192.0.2.1:5000"

    def invocation_metadata(self) -> tuple[tuple[str, str], ...]:
        return METADATA

    def set_trailing_metadata(self, trailers: tuple[Any, ...]) -> None:
        self.trailers = trailers

    def trailing_metadata(self) -> tuple[Any, ...]:
        return self.trailers

    def time_remaining(self) -> float | None:
        return self.left_seconds

    def add_done_callback(self, callback: Callable[[Any], None]) -> None:
        self.sent = callback

    async def read(self) -> bytes:
        self.was_read = True
        return self.message

    async def abort(self, *how: Any) -> None:
        self.ended = how
        raise grpc.aio.AbortError


async def serve(
    method: str,
    answer: Callable[[Any, Any], Awaitable[Any]],
    context: Context,
    pipeline: CallPipeline,
    open_calls: OpenCalls,
) -> Any:
    """Return the answer to a call of `method`, whose handler is `answer`."""

    async def continuation(details: Any) -> Any:
        return grpc.unary_unary_rpc_method_handler(cast(Any, answer))

    apis = dragoman_api(cast(Any, None), 1.0), google_api(cast(Any, None), 1.0)
    way = CallInterceptor(apis, pipeline, Intake(Memory.of(2**26, 2**20)), open_calls)
    details = cast(grpc.HandlerCallDetails, type("Details", (), {"method": method}))
    handler: Any = await way.intercept_service(continuation, details)
    return await handler.stream_unary(None, context)
