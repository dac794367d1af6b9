"""Asks every call for an API key, and holds it to its key's quotas."""

from collections.abc import Iterable
from typing import Any

import grpc
from grpc_reflection.v1alpha import reflection

from service import call_record
from service.access import caller, origin
from service.access.gate import Gate
from service.rpc import health, kserve_servicer
from service.rpc.interceptors import Behaviour, Context, Continuation, Handler, Interceptor, around

# Probes have no keys, and what there is to call is published anyway.
_EXEMPT = (
    f"/{health.SERVICE_NAME}/",
    f"/{reflection.SERVICE_NAME}/",
    f"/{kserve_servicer.SERVICE_NAME}/ServerLive",
    f"/{kserve_servicer.SERVICE_NAME}/ServerReady",
)
_BEARER = "bearer "
_KEYS = ("x-api-key", "x-goog-api-key")  # the second is what Google's clients send


class AccessInterceptor(Interceptor):
    """Lets calls in that bring a good key. On a stream of requests, each of them is a call, and who answers it has it
    admitted."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate

    async def intercept_service(self, continuation: Continuation, details: grpc.HandlerCallDetails) -> Handler:
        """As `grpc.aio.ServerInterceptor`."""
        handler = await continuation(details)
        if handler is None or details.method.startswith(_EXEMPT):
            return handler

        async def admitted(call: Behaviour, request: Any, context: Context) -> Any:
            known = self._gate.caller(key_in(context.invocation_metadata() or ()))
            call_record.current().caller = known.name
            origin.begin(known.name)  # wherever it comes from
            with caller.on_behalf_of(known):
                if handler.request_streaming:
                    return await call(request, context)
                with caller.call():
                    return await call(request, context)

        guarded = around(handler, admitted)
        assert guarded is not handler, f"{details.method} would be open to everybody"
        return guarded


def key_in(metadata: Iterable[tuple[str, str | bytes]]) -> str:
    """The API key that a call's metadata hold; empty if there is none."""
    texts = {name: value for name, value in metadata if isinstance(value, str)}
    authorization = texts.get("authorization", "")
    if authorization[: len(_BEARER)].lower() == _BEARER:
        return authorization[len(_BEARER) :].strip()
    return next((texts[name] for name in _KEYS if name in texts), "")
