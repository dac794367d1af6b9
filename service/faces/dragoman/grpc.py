"""`dragoman.v1.TranslationService`, on top of the translator."""

from contextlib import aclosing
from functools import partial
from typing import Any

import grpc

from service.domain.call import CallKind, current_call
from service.domain.translation import Priority, TranslationRequest
from service.faces.dragoman.messages import (
    PRIORITIES,
    detection_to_pb,
    event_to_pb,
    model_documents,
    num_entries,
    request_from_pb,
    result_to_pb,
)
from service.faces.grpc.absent_callers import write
from service.faces.grpc.api import GrpcApi
from service.faces.grpc.calls import deadline_of
from service.faces.grpc.counts import checked_fields
from service.faces.grpc.intake import parse
from service.faces.grpc.pb.dragoman.v1 import translation_pb2 as pb
from service.faces.grpc.pb.dragoman.v1 import translation_pb2_grpc as pb_grpc
from service.translation.translator import Translator

SERVICE_NAME = pb.DESCRIPTOR.services_by_name["TranslationService"].full_name

Context = grpc.aio.ServicerContext[Any, Any]


class TranslationServicer(pb_grpc.TranslationServiceServicer):
    """Dragoman's own API."""

    def __init__(self, translator: Translator, default_deadline_seconds: float) -> None:
        self._translator = translator
        self._default_deadline_seconds = default_deadline_seconds

    async def Translate(self, request: pb.TranslateRequest, context: Context) -> pb.TranslateResponse:  # noqa: N802
        result = await self._translator.translate(self._request_from(request, context))
        return await self._translator.convert(partial(result_to_pb, result), num_entries(result.translations))

    async def TranslateStream(self, request: pb.TranslateRequest, context: Context) -> None:  # noqa: N802
        translation_request = self._request_from(request, context)
        async with aclosing(self._translator.stream(translation_request)) as events:
            async for event in events:
                message = await self._translator.convert(partial(event_to_pb, event), num_entries([event.translation]))
                await write(context, message, translation_request.deadline_seconds)

    async def DetectLanguage(  # noqa: N802
        self, request: pb.DetectLanguageRequest, context: Context
    ) -> pb.DetectLanguageResponse:
        checked_fields(request)
        current_call().asks_for(request.texts, translates=False)
        deadline = deadline_of(context, self._default_deadline_seconds)
        detected = await self._translator.detect(request.texts, deadline)
        return pb.DetectLanguageResponse(detections=[detection_to_pb(languages) for languages in detected])

    async def ListModels(self, request: pb.ListModelsRequest, context: Context) -> pb.ListModelsResponse:  # noqa: N802
        models = model_documents(self._translator.catalogue())
        return pb.ListModelsResponse(models=[pb.Model(**model) for model in models])

    def _request_from(self, request: pb.TranslateRequest, context: Context) -> TranslationRequest:
        current_call().asks_for(request.texts)
        deadline = deadline_of(context, self._default_deadline_seconds)
        return request_from_pb(request, deadline)


def dragoman_api(translator: Translator, default_deadline_seconds: float) -> GrpcApi:
    """Return the API; calls without a deadline get `default_deadline_seconds`."""
    servicer = TranslationServicer(translator, default_deadline_seconds)
    return GrpcApi(
        SERVICE_NAME,
        lambda server: pb_grpc.add_TranslationServiceServicer_to_server(servicer, server),
        kinds={"Translate": CallKind.TRANSLATE, "TranslateStream": CallKind.STREAM},
        listing=("ListModels",),
        priority_of={"Translate": _priority},
    )


def _priority(message: bytes) -> Priority:
    return PRIORITIES.get(parse(pb.TranslateRequest.FromString, message).priority, Priority.NORMAL)
