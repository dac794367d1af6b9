"""Turns calls away before anything is made of them, while the server has far more to do than it can.

An overloaded server must spend its time on the calls that it has let in. To refuse one as any other call costs half as
much again, by id, record, quotas, message, and the plan of its texts, so here the queue is looked at first.
"""

from collections.abc import Callable, Mapping
from typing import Any

import grpc

from service.domain.errors import Overloaded
from service.domain.translation import Priority
from service.faces.grpc.dragoman import servicer as translation_servicer
from service.faces.grpc.dragoman.messages import PRIORITIES
from service.faces.grpc.google import servicer as google_servicer
from service.faces.grpc.interceptors import Behaviour, Context, Continuation, Handler, Interceptor, around, parse
from service.faces.grpc.pb.dragoman.v1 import translation_pb2 as pb
from service.faces.grpc.refusals import Refusals
from service.translation.translator import Translator


def _own_priority(message: bytes) -> Priority:
    return PRIORITIES.get(parse(pb.TranslateRequest.FromString, message).priority, Priority.NORMAL)


def _normal_priority(message: bytes) -> Priority:
    return Priority.NORMAL


# What a call to be turned away may still say for itself. KServe's calls are refused further in, for the same reasons.
_PRIORITY_OF: Mapping[str, Callable[[bytes], Priority]] = {
    f"/{translation_servicer.SERVICE_NAME}/Translate": _own_priority,
    f"/{google_servicer.SERVICE_NAME}/TranslateText": _normal_priority,
}


class DoorInterceptor(Interceptor):
    """Refuses calls of the commonest methods while every model has too much to do. Must be outside of all that notes
    anything about a call, and inside of what asks for keys: who calls is known here."""

    def __init__(self, translator: Translator, refusals: Refusals) -> None:
        self._translator = translator
        self._refusals = refusals

    async def intercept_service(self, continuation: Continuation, details: grpc.HandlerCallDetails) -> Handler:
        """As `grpc.aio.ServerInterceptor`."""
        handler = await continuation(details)
        priority_of = _PRIORITY_OF.get(details.method)
        if handler is None or priority_of is None:
            return handler
        method = details.method.removeprefix("/")

        async def at_the_door(call: Behaviour, request: Any, context: Context) -> Any:
            try:
                refusal: Exception | None = self._overload(priority_of, request)
            except Exception as error:
                refusal = error
            if refusal is None:
                return await call(request, context)
            return await self._refusals.refuse(method, refusal, context)

        return around(handler, at_the_door)

    def _overload(self, priority_of: Callable[[bytes], Priority], message: bytes) -> Overloaded | None:
        overload = self._translator.overload(Priority.NORMAL)
        if overload is not None and (priority := priority_of(message)) is not Priority.NORMAL:
            overload = self._translator.overload(priority)
        return overload  # and so most messages are parsed once
