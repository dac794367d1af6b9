"""`google.cloud.translation.v3.TranslationService` over gRPC."""

from typing import Any

import grpc

from service.faces.google.methods import FINISH_REASONS_KEY, GoogleMethods
from service.faces.google.rules import UnsupportedMethods
from service.faces.grpc.api import GrpcApi, normal_priority
from service.faces.grpc.calls import deadline_of
from service.faces.grpc.pb.google.cloud.translation.v3 import translation_service_pb2 as pb
from service.faces.grpc.pb.google.cloud.translation.v3 import translation_service_pb2_grpc as pb_grpc
from service.translation.translator import Translator

SERVICE_NAME = pb.DESCRIPTOR.services_by_name["TranslationService"].full_name

Context = grpc.aio.ServicerContext[Any, Any]


class GoogleServicer(pb_grpc.TranslationServiceServicer):
    """The supported part of Google Cloud Translation v3; see `GoogleMethods`."""

    def __init__(self, translator: Translator, default_deadline_seconds: float) -> None:
        self._methods = GoogleMethods(translator)
        self._default_deadline_seconds = default_deadline_seconds

    async def TranslateText(  # noqa: N802
        self, request: pb.TranslateTextRequest, context: Context
    ) -> pb.TranslateTextResponse:
        """Translate texts; with a glossary, also without it."""
        deadline = deadline_of(context, self._default_deadline_seconds)
        response, reasons = await self._methods.translate_text(request, deadline)
        if reasons:
            context.set_trailing_metadata((*(context.trailing_metadata() or ()), (FINISH_REASONS_KEY, reasons)))
        return response

    async def DetectLanguage(  # noqa: N802
        self, request: pb.DetectLanguageRequest, context: Context
    ) -> pb.DetectLanguageResponse:
        return await self._methods.detect_language(request, deadline_of(context, self._default_deadline_seconds))

    async def GetSupportedLanguages(  # noqa: N802
        self, request: pb.GetSupportedLanguagesRequest, context: Context
    ) -> pb.SupportedLanguages:
        """List the languages of one model, or of all models."""
        return self._methods.get_supported_languages(request)

    async def ListGlossaries(  # noqa: N802
        self, request: pb.ListGlossariesRequest, context: Context
    ) -> pb.ListGlossariesResponse:
        return await self._methods.list_glossaries(request)

    async def GetGlossary(self, request: pb.GetGlossaryRequest, context: Context) -> pb.Glossary:  # noqa: N802
        return await self._methods.get_glossary(request)

    async def GetGlossaryEntry(  # noqa: N802
        self, request: pb.GetGlossaryEntryRequest, context: Context
    ) -> pb.GlossaryEntry:
        return await self._methods.get_glossary_entry(request)

    async def ListGlossaryEntries(  # noqa: N802
        self, request: pb.ListGlossaryEntriesRequest, context: Context
    ) -> pb.ListGlossaryEntriesResponse:
        return await self._methods.list_glossary_entries(request)


def google_api(translator: Translator, default_deadline_seconds: float) -> GrpcApi:
    """Return the API; calls without a deadline get `default_deadline_seconds`."""
    servicer = GoogleServicer(translator, default_deadline_seconds)

    def add_to(server: grpc.aio.Server) -> None:
        pb_grpc.add_TranslationServiceServicer_to_server(servicer, server)
        server.add_generic_rpc_handlers((UnsupportedMethods(),))

    return GrpcApi(SERVICE_NAME, add_to, priority_of={"TranslateText": normal_priority})
