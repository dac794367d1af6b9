"""`google.cloud.translation.v3.TranslationService` over gRPC."""

from functools import partial
from typing import Any

import grpc
from google.protobuf.message import Message

from service.faces.google.methods import FINISH_REASONS_KEY, REQUESTS, GoogleMethods
from service.faces.google.rules import KINDS, UNSUPPORTED_RULES, refusal
from service.faces.grpc.api import GrpcApi, normal_priority
from service.faces.grpc.calls import deadline_of
from service.faces.grpc.pb.google.cloud.translation.v3 import translation_service_pb2 as pb
from service.translation.translator import Translator

SERVICE_NAME = pb.DESCRIPTOR.services_by_name["TranslationService"].full_name

Context = grpc.aio.ServicerContext[Any, Any]


class GoogleServicer:
    """The supported part of Google Cloud Translation v3: the methods (`methods.py`) over gRPC."""

    def __init__(self, translator: Translator, default_deadline_seconds: float) -> None:
        self._methods = GoogleMethods(translator)
        self._default_deadline_seconds = default_deadline_seconds

    def handlers(self) -> dict[str, Any]:
        return {
            name: grpc.unary_unary_rpc_method_handler(
                partial(self._answer, name), kind.FromString, lambda answer: answer.SerializeToString()
            )
            for name, kind in REQUESTS.items()
        }

    async def _answer(self, method: str, request: Message, context: Context) -> Message:
        deadline = deadline_of(context, self._default_deadline_seconds)
        answer, reasons = await self._methods.answer(method, request, deadline)
        if reasons:
            context.set_trailing_metadata((*(context.trailing_metadata() or ()), (FINISH_REASONS_KEY, reasons)))
        return answer


def google_api(translator: Translator, default_deadline_seconds: float) -> GrpcApi:
    """Return the API; calls without a deadline get `default_deadline_seconds`."""
    servicer = GoogleServicer(translator, default_deadline_seconds)

    # Every method has a handler, so that the metrics' label `method` has a fixed set of values.
    handlers = {SERVICE_NAME: servicer.handlers()}
    for rule in UNSUPPORTED_RULES:
        refused = grpc.unary_unary_rpc_method_handler(partial(_refuse, rule.name))
        handlers.setdefault(rule.service, {})[rule.name] = refused

    def add_to(server: grpc.aio.Server) -> None:
        server.add_generic_rpc_handlers(
            tuple(grpc.method_handlers_generic_handler(service, methods) for service, methods in handlers.items())
        )

    return GrpcApi(
        SERVICE_NAME,
        add_to,
        KINDS,
        listing=("GetSupportedLanguages",),
        priority_of={"TranslateText": normal_priority},
    )


async def _refuse(method: str, request: bytes, context: Context) -> bytes:
    raise refusal(method)
