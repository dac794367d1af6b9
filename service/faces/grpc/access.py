"""Asks every call for an API key, and holds it to its key's quotas."""

from collections.abc import Iterable
from typing import Any

import grpc
from grpc_reflection.v1alpha import reflection

from service.calls.gate import Gate
from service.domain import call_record, caller, origin
from service.domain.errors import Unauthenticated
from service.faces.grpc import health
from service.faces.grpc.interceptors import Behaviour, Context, Continuation, Handler, Interceptor, around
from service.faces.grpc.kserve import servicer as kserve_servicer
from service.faces.grpc.refusals import Refusals

# Probes have no keys, and what there is to call is published anyway.
_EXEMPT = (
    f"/{health.SERVICE_NAME}/",
    f"/{reflection.SERVICE_NAME}/",
    f"/{kserve_servicer.SERVICE_NAME}/ServerLive",
    f"/{kserve_servicer.SERVICE_NAME}/ServerReady",
)
_BEARER = "bearer "
_KEYS = ("x-api-key", "x-goog-api-key")  # the second is what Google's clients send


class KeyInterceptor(Interceptor):
    """Lets calls in that bring a good key; from here on it is known who calls. Must be outside of what receives
    messages: nothing is taken of callers without a key."""

    def __init__(self, gate: Gate, refusals: Refusals) -> None:
        self._gate = gate
        self._refusals = refusals

    async def intercept_service(self, continuation: Continuation, details: grpc.HandlerCallDetails) -> Handler:
        """As `grpc.aio.ServerInterceptor`."""
        handler = await continuation(details)
        if handler is None or details.method.startswith(_EXEMPT):
            return handler
        method = details.method.removeprefix("/")

        async def known(call: Behaviour, request: Any, context: Context) -> Any:
            try:
                who = self._gate.caller(key_in(context.invocation_metadata() or ()))
            except Unauthenticated as error:
                return await self._refusals.refuse(method, error, context)
            origin.begin(who.name)  # wherever it comes from
            with caller.on_behalf_of(who):
                return await call(request, context)

        guarded = around(handler, known)
        assert guarded is not handler, f"{details.method} would be open to everybody"
        return guarded


class QuotaInterceptor(Interceptor):
    """Holds calls to their callers' quotas. On a stream of requests, each of them is a call, and who answers it has it
    admitted."""

    async def intercept_service(self, continuation: Continuation, details: grpc.HandlerCallDetails) -> Handler:
        """As `grpc.aio.ServerInterceptor`."""
        handler = await continuation(details)

        async def admitted(call: Behaviour, request: Any, context: Context) -> Any:
            call_record.current().caller = caller.name()
            if handler.request_streaming:
                return await call(request, context)
            with caller.call():
                return await call(request, context)

        return around(handler, admitted)


def key_in(metadata: Iterable[tuple[str, str | bytes]]) -> str:
    """The API key that a call's metadata hold; empty if there is none."""
    texts = {name: value for name, value in metadata if isinstance(value, str)}
    authorization = texts.get("authorization", "")
    if authorization[: len(_BEARER)].lower() == _BEARER:
        return authorization[len(_BEARER) :].strip()
    return next((texts[name] for name in _KEYS if name in texts), "")
