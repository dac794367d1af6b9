"""Turns calls away before anything is made of them, while the server has far more to do than it can.

An overloaded server must spend its time on the calls that it has let in. To refuse one as any other call costs half as
much again, by id, record, key, message, and the plan of its texts, so here the queue is looked at first.
"""

from collections.abc import Callable, Mapping
from typing import Any

import grpc

from service.pb.dragoman.v1 import translation_pb2 as pb
from service.rpc import google_servicer, request_id, translation_servicer
from service.rpc.interceptors import Behaviour, Context, Continuation, Handler, Interceptor, around
from service.rpc.messages import PRIORITIES
from service.rpc.observer import CallObserver
from service.rpc.status import status_of
from service.translation import Priority
from service.translator import Translator


def _own_priority(message: bytes) -> Priority:
    return PRIORITIES.get(pb.TranslateRequest.FromString(message).priority, Priority.NORMAL)


def _normal_priority(message: bytes) -> Priority:
    return Priority.NORMAL


# What a call to be turned away may still say for itself. KServe's calls are refused further in, for the same reasons.
_PRIORITY_OF: Mapping[str, Callable[[bytes], Priority]] = {
    f"/{translation_servicer.SERVICE_NAME}/Translate": _own_priority,
    f"/{google_servicer.SERVICE_NAME}/TranslateText": _normal_priority,
}


class DoorInterceptor(Interceptor):
    """Refuses calls of the commonest methods while every model has too much to do. Must be outside of all that notes
    anything about a call: those that are refused here are counted, and not traced or logged."""

    def __init__(self, translator: Translator, observer: CallObserver) -> None:
        self._translator = translator
        self._observer = observer

    async def intercept_service(self, continuation: Continuation, details: grpc.HandlerCallDetails) -> Handler:
        """As `grpc.aio.ServerInterceptor`."""
        handler = await continuation(details)
        priority_of = _PRIORITY_OF.get(details.method)
        if handler is None or priority_of is None:
            return handler
        method = details.method.removeprefix("/")

        async def at_the_door(call: Behaviour, request: Any, context: Context) -> Any:
            overload = self._translator.overload(Priority.NORMAL)
            if overload is not None and (priority := priority_of(request)) is not Priority.NORMAL:
                overload = self._translator.overload(priority)
            if overload is None:  # and so most messages are parsed once
                return await call(request, context)
            identifier = request_id.begin(context.invocation_metadata() or ())
            status = status_of(overload)
            self._observer.refused(method, status.code.name, overload)
            trailers = ((request_id.METADATA_KEY, identifier), *status.trailing_metadata)
            return await context.abort(status.code, status.message, trailers)

        return around(handler, at_the_door)
