"""gRPC side of the call pipeline (`service.calls.pipeline`): begins calls, rejects them early, and ends them."""

from collections.abc import Callable, Mapping
from typing import Any, NoReturn

import grpc
from grpc_reflection.v1alpha import reflection

from service.calls.metadata import REQUEST_ID_KEY
from service.calls.pipeline import CallPipeline
from service.domain.call import TIMING_KEY, Call, current_call, server_timing
from service.domain.errors import ServiceError, Unauthenticated
from service.domain.translation import Priority
from service.faces.grpc import health
from service.faces.grpc.absent_callers import end
from service.faces.grpc.context import host_of
from service.faces.grpc.dragoman import servicer as translation_servicer
from service.faces.grpc.dragoman.messages import PRIORITIES
from service.faces.grpc.google import servicer as google_servicer
from service.faces.grpc.interceptors import Behaviour, Context, Continuation, Handler, Interceptor, around, parse
from service.faces.grpc.kserve import servicer as kserve_servicer
from service.faces.grpc.pb.dragoman.v1 import translation_pb2 as pb
from service.faces.grpc.status import Metadata, status_of

# Probes have no keys, and the list of methods is public anyway.
_NEED_NO_KEY = (
    f"/{health.SERVICE_NAME}/",
    f"/{reflection.SERVICE_NAME}/",
    f"/{kserve_servicer.SERVICE_NAME}/ServerLive",
    f"/{kserve_servicer.SERVICE_NAME}/ServerReady",
)


def _own_priority(message: bytes) -> Priority:
    return PRIORITIES.get(parse(pb.TranslateRequest.FromString, message).priority, Priority.NORMAL)


def _normal_priority(message: bytes) -> Priority:
    return Priority.NORMAL


# The most common methods, and how to read a call's priority. KServe's calls are rejected later, for the same reasons.
_PRIORITY_OF: Mapping[str, Callable[[bytes], Priority]] = {
    f"/{translation_servicer.SERVICE_NAME}/Translate": _own_priority,
    f"/{google_servicer.SERVICE_NAME}/TranslateText": _normal_priority,
}


class ArrivalInterceptor(Interceptor):
    """Begins every call, and admits those with a valid API key.

    Must be outside all interceptors that receive messages: nothing is read from callers without a key.
    """

    def __init__(self, pipeline: CallPipeline) -> None:
        self._pipeline = pipeline

    async def intercept_service(self, continuation: Continuation, details: grpc.HandlerCallDetails) -> Handler:
        """See `grpc.aio.ServerInterceptor`."""
        handler = await continuation(details)
        method = details.method.removeprefix("/")
        asks_for_key = self._pipeline.asks_for_keys and not details.method.startswith(_NEED_NO_KEY)

        async def begun(behaviour: Behaviour, request: Any, context: Context) -> Any:
            peer, metadata = context.peer(), context.invocation_metadata() or ()
            call = self._pipeline.begin(method, metadata, host_of(peer), peer, protocol="grpc")
            if asks_for_key:
                try:
                    self._pipeline.identify(call, metadata)
                except Unauthenticated as error:
                    return await refuse(self._pipeline, error, context)
            return await behaviour(request, context)

        wrapped = around(handler, begun)
        assert not asks_for_key or handler is None or wrapped is not handler, (
            f"{details.method} would be open to everybody"
        )
        return wrapped


class AdmissionInterceptor(Interceptor):
    """Rejects calls of the most common methods while every model is overloaded.

    An overloaded server must spend its time on the calls it has admitted. Rejecting a call on the normal path costs
    half as much again, for its record, quotas, message, and the planning of its texts.
    """

    def __init__(self, pipeline: CallPipeline) -> None:
        self._pipeline = pipeline

    async def intercept_service(self, continuation: Continuation, details: grpc.HandlerCallDetails) -> Handler:
        """See `grpc.aio.ServerInterceptor`."""
        handler = await continuation(details)
        priority_of = _PRIORITY_OF.get(details.method)
        if handler is None or priority_of is None:
            return handler

        async def admitted(behaviour: Behaviour, request: Any, context: Context) -> Any:
            try:
                self._pipeline.admit(lambda: priority_of(request))
            except Exception as error:
                refusal = error.with_traceback(None)
            else:
                return await behaviour(request, context)
            return await refuse(self._pipeline, refusal, context)

        return around(handler, admitted)


class CallInterceptor(Interceptor):
    """Serves every call, sends its id and timing as trailers, and ends failed calls with the status of their error.

    On a stream of requests each request is a call of its own, served by its handler.
    """

    def __init__(self, pipeline: CallPipeline) -> None:
        self._pipeline = pipeline

    async def intercept_service(self, continuation: Continuation, details: grpc.HandlerCallDetails) -> Handler:
        """See `grpc.aio.ServerInterceptor`."""
        handler = await continuation(details)
        is_stream = handler is not None and bool(handler.request_streaming)

        async def served(behaviour: Behaviour, request: Any, context: Context) -> Any:
            call = current_call()
            context.set_trailing_metadata(((REQUEST_ID_KEY, call.request_id),))

            def is_late() -> bool:
                remaining = context.time_remaining()
                return remaining is not None and remaining <= 0

            try:
                if is_stream:
                    return await self._pipeline.guard(call, lambda: behaviour(request, context))
                metadata = context.invocation_metadata() or ()
                response = await self._pipeline.serve(call, lambda: behaviour(request, context), metadata, is_late)
            except ServiceError as error:
                failure = error.with_traceback(None)  # it would keep the message alive
                failure.__context__ = None
            else:
                if timing := _timing_trailer(call):
                    context.set_trailing_metadata((*(context.trailing_metadata() or ()), *timing))
                return response
            trailers = (*(context.trailing_metadata() or ()), *_timing_trailer(call))
            return await end(context, status_of(failure), trailers)

        return around(handler, served)


async def refuse(pipeline: CallPipeline, error: Exception, context: Context) -> NoReturn:
    """End the current call, before it is processed, with the error's status.

    Raises:
        AbortError: always; or CancelledError, as for `end`.
    """
    call = current_call()
    status = status_of(pipeline.refuse(call, error))
    await end(context, status, ((REQUEST_ID_KEY, call.request_id),))


def _timing_trailer(call: Call) -> Metadata:
    """Return the call's duration as a trailer, if the call has any texts."""
    if not call.num_texts:
        return ()
    return ((TIMING_KEY, server_timing(call.seconds, call.total_seconds)),)
