"""`google.cloud.translation.v3.TranslationService`, on top of the translator."""

import asyncio
from collections.abc import Coroutine
from dataclasses import replace
from typing import Any

import grpc

from service.domain.call import current_call
from service.domain.errors import InvalidRequest, NotFound, Path, Public, ServiceError, listed
from service.domain.translation import Translation, TranslationRequest
from service.faces.grpc.context import deadline_of
from service.faces.grpc.counts import check_counts
from service.faces.grpc.google import messages as messages
from service.faces.grpc.google import names as names
from service.faces.grpc.pb.google.cloud.translation.v3 import translation_service_pb2 as pb
from service.faces.grpc.pb.google.cloud.translation.v3 import translation_service_pb2_grpc as pb_grpc
from service.models.loaded_model import LoadedModel
from service.text.glossary import Glossary
from service.translation.translator import Translator

SERVICE_NAME = pb.DESCRIPTOR.services_by_name["TranslationService"].full_name
FINISH_REASONS_KEY = "dragoman-finish-reasons"

Context = grpc.aio.ServicerContext[Any, Any]
Translations = tuple[Translation, ...]


class GoogleServicer(pb_grpc.TranslationServiceServicer):
    """The supported part of Google Cloud Translation v3."""

    def __init__(self, translator: Translator, default_deadline_seconds: float) -> None:
        """Give calls without a deadline `default_deadline_seconds`."""
        self._translator = translator
        self._default_deadline_seconds = default_deadline_seconds

    async def TranslateText(  # noqa: N802
        self, request: pb.TranslateTextRequest, context: Context
    ) -> pb.TranslateTextResponse:
        """Translate texts; with a glossary, also without it."""
        deadline = deadline_of(context, self._default_deadline_seconds)
        current_call().asks_for(request.contents)
        asked = messages.request_from_pb(request, deadline)
        try:
            answers = await self._answers(request, asked)
        except ServiceError as error:
            raise messages.in_googles_words(error, request) from error
        if reasons := messages.finish_reasons(*answers):
            context.set_trailing_metadata((*(context.trailing_metadata() or ()), (FINISH_REASONS_KEY, reasons)))
        return messages.response_to_pb(request, *answers)

    async def DetectLanguage(  # noqa: N802
        self, request: pb.DetectLanguageRequest, context: Context
    ) -> pb.DetectLanguageResponse:
        """Detect the most probable language."""
        names.check_parent(request.parent)
        check_counts(request)
        messages.labels_from_pb(request.labels)
        mime_type = messages.mime_type_from_pb(request.mime_type)
        model = names.detection_model_of(request.model)
        if model != names.DETECTION_MODEL:
            raise NotFound(
                "model {model} does not detect languages",
                "model",
                request.model,
                model=model,
                advice=f"{names.DETECTION_MODEL} does",
            )
        if not request.HasField("content"):
            raise InvalidRequest("{path} is missing", Path("content"), advice="give the text")
        current_call().asks_for([request.content])
        deadline = deadline_of(context, self._default_deadline_seconds)
        (languages,) = await self._translator.detect([request.content], deadline, mime_type)
        return messages.detected_to_pb(languages)

    async def GetSupportedLanguages(  # noqa: N802
        self, request: pb.GetSupportedLanguagesRequest, context: Context
    ) -> pb.SupportedLanguages:
        """List the languages of one model, or of all models."""
        names.check_parent(request.parent)
        models = self._models(names.model_of(request.model), request.model)
        return messages.languages_to_pb(models, request.display_language_code)

    async def ListGlossaries(  # noqa: N802
        self, request: pb.ListGlossariesRequest, context: Context
    ) -> pb.ListGlossariesResponse:
        """List a page of the glossaries."""
        names.check_parent(request.parent)
        found = messages.filtered(self._translator.glossaries.glossaries, request.filter)
        glossaries, token = messages.page(found, request.page_size, request.page_token)
        return pb.ListGlossariesResponse(
            glossaries=[messages.glossary_to_pb(glossary, request.parent) for glossary in glossaries],
            next_page_token=token,
        )

    async def GetGlossary(self, request: pb.GetGlossaryRequest, context: Context) -> pb.Glossary:  # noqa: N802
        """Describe a glossary."""
        glossary = self._one_glossary("name", request.name)
        return messages.glossary_to_pb(glossary, names.parent_of(request.name))

    async def GetGlossaryEntry(  # noqa: N802
        self, request: pb.GetGlossaryEntryRequest, context: Context
    ) -> pb.GlossaryEntry:
        """Read one entry."""
        full_name, entry = names.entry_of(request.name)
        glossary = self._one_glossary("name", full_name)
        number = int(entry) if entry.isascii() and entry.isdecimal() and len(entry) < 10 else 0
        if not 1 <= number <= len(glossary.terms):
            raise NotFound(
                "glossary {glossary} has no entry {entry}",
                "glossary entry",
                request.name,
                glossary=Public(repr(glossary.name)),
                entry=entry,
                advice=f"it has 1 to {len(glossary.terms)}",
            )
        return messages.entry_to_pb(glossary, full_name, number)

    async def ListGlossaryEntries(  # noqa: N802
        self, request: pb.ListGlossaryEntriesRequest, context: Context
    ) -> pb.ListGlossaryEntriesResponse:
        """List a page of a glossary's entries."""
        glossary = self._one_glossary("parent", request.parent)
        numbers, token = messages.page(range(1, len(glossary.terms) + 1), request.page_size, request.page_token)
        return pb.ListGlossaryEntriesResponse(
            glossary_entries=[messages.entry_to_pb(glossary, request.parent, number) for number in numbers],
            next_page_token=token,
        )

    async def _answers(self, request: pb.TranslateTextRequest, asked: TranslationRequest) -> list[Translations]:
        """Return the translations without the glossary and then, if the call has one, those with it."""
        if not asked.glossary:
            return [await self._translate(asked)]
        glossary = messages.fitting(self._found("glossary_config.glossary", request.glossary_config.glossary), asked)
        plain, asked = replace(asked, glossary=""), replace(asked, glossary=glossary.name)
        if request.glossary_config.ignore_case:
            strict = (term for term in glossary.terms if term.is_case_sensitive)
            asked = replace(asked, terms=tuple(replace(term, is_case_sensitive=False) for term in strict))
        return await _all(self._translate(plain), self._translate(asked))

    async def _translate(self, asked: TranslationRequest) -> Translations:
        return (await self._translator.translate(asked)).translations

    def _models(self, name: str, full_name: str) -> list[LoadedModel]:
        """Return the highest version of each model, or only of the model of this name."""
        highest = {model.name: model for model in reversed(self._translator.models())}
        if not name:
            return list(highest.values())
        if name not in highest:
            raise NotFound(
                "model {name} is not served here",
                "model",
                full_name,
                name=name,
                advice=f"served are {listed(sorted(highest))}",
            )
        return [highest[name]]

    def _found(self, field: str, full_name: str) -> list[Glossary]:
        """Return the glossaries that `field` of a request refers to: one, or several for different languages."""
        name = names.glossary_of(full_name, field)
        found = [
            each for each in self._translator.glossaries.glossaries if name in (each.name, messages.glossary_id(each))
        ]
        if not found:
            held = listed(map(messages.glossary_id, self._translator.glossaries.glossaries))
            raise NotFound(
                "glossary {name} is not on this server", "glossary", full_name, name=name, advice=f"there are {held}"
            )
        return found

    def _one_glossary(self, field: str, full_name: str) -> Glossary:
        found = self._found(field, full_name)
        if len(found) > 1:
            raise InvalidRequest(
                "{path} matches {number} glossaries",
                Path(field),
                number=len(found),
                advice=f"name one of {listed(map(messages.glossary_id, found))}",
            )
        return found[0]


async def _all(*calls: Coroutine[Any, Any, Translations]) -> list[Translations]:
    """Return the answers of calls run concurrently; the first failure cancels the others."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(call) for call in calls]
    except ExceptionGroup as failures:
        raise failures.exceptions[0] from None
    return [task.result() for task in tasks]
