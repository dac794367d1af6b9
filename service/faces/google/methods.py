"""The supported methods of Google Cloud Translation v3, from message to message, independent of the transport."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from google.protobuf.message import Message

from service.domain.call import current_call
from service.domain.errors import InvalidRequest, NotFound, Path, Public, listed
from service.domain.translation import Translation, TranslationRequest
from service.faces.google import messages as messages
from service.faces.google import names as names
from service.faces.grpc.counts import checked_fields
from service.faces.grpc.pb.google.cloud.translation.v3 import translation_service_pb2 as pb
from service.models.loaded_model import LoadedModel
from service.process.event_loop import all_of
from service.text.glossary import Glossary
from service.translation.translator import Translator

FINISH_REASONS_KEY = "dragoman-finish-reasons"  # of a trailer or header

Translations = tuple[Translation, ...]

# What each supported method takes.
REQUESTS: Mapping[str, type[Message]] = MappingProxyType(
    {
        "TranslateText": pb.TranslateTextRequest,
        "DetectLanguage": pb.DetectLanguageRequest,
        "GetSupportedLanguages": pb.GetSupportedLanguagesRequest,
        "ListGlossaries": pb.ListGlossariesRequest,
        "GetGlossary": pb.GetGlossaryRequest,
        "GetGlossaryEntry": pb.GetGlossaryEntryRequest,
        "ListGlossaryEntries": pb.ListGlossaryEntriesRequest,
    }
)


class GoogleMethods:
    """The supported methods, for the event loop's thread; they raise only ServiceError.

    `deadline_seconds` is on the clock of `time.monotonic()`.
    """

    def __init__(self, translator: Translator) -> None:
        self._translator = translator
        self._others: Mapping[str, Callable[[Any], Message]] = {
            "GetSupportedLanguages": self._supported_languages,
            "ListGlossaries": self._list_glossaries,
            "GetGlossary": self._get_glossary,
            "GetGlossaryEntry": self._get_glossary_entry,
            "ListGlossaryEntries": self._list_glossary_entries,
        }

    async def answer(self, method: str, request: Any, deadline_seconds: float) -> tuple[Message, str]:
        """Return the answer of a method, one of `REQUESTS`, and the `finish_reasons` of translations."""
        if method == "TranslateText":
            return await self._translate_text(request, deadline_seconds)
        if method == "DetectLanguage":
            return await self._detect_language(request, deadline_seconds), ""
        return self._others[method](request), ""

    async def _translate_text(
        self, request: pb.TranslateTextRequest, deadline_seconds: float
    ) -> tuple[pb.TranslateTextResponse, str]:
        """Translate texts; with a glossary, also without it."""
        current_call().asks_for(request.contents)
        domain_request = messages.request_from_pb(request, deadline_seconds)
        with messages.in_googles_words(messages.FIELDS, request.model):
            answers = await self._answers(request, domain_request)
        return messages.response_to_pb(request, *answers), messages.finish_reasons(*answers)

    async def _detect_language(
        self, request: pb.DetectLanguageRequest, deadline_seconds: float
    ) -> pb.DetectLanguageResponse:
        names.check_parent(request.parent)
        checked_fields(request)
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
        current_call().asks_for([request.content], translates=False)
        (languages,) = await self._translator.detect([request.content], deadline_seconds, mime_type)
        return messages.detected_to_pb(languages)

    def _supported_languages(self, request: pb.GetSupportedLanguagesRequest) -> pb.SupportedLanguages:
        names.check_parent(request.parent)
        models = self.models(names.model_of(request.model), request.model)
        return messages.languages_to_pb(models, request.display_language_code)

    def _list_glossaries(self, request: pb.ListGlossariesRequest) -> pb.ListGlossariesResponse:
        names.check_parent(request.parent)
        found = messages.filtered(self._translator.glossaries(), request.filter)
        glossaries, token = messages.page(found, request.page_size, request.page_token)
        return pb.ListGlossariesResponse(
            glossaries=[messages.glossary_to_pb(glossary, request.parent) for glossary in glossaries],
            next_page_token=token,
        )

    def _get_glossary(self, request: pb.GetGlossaryRequest) -> pb.Glossary:
        glossary = self._one_glossary("name", request.name)
        return messages.glossary_to_pb(glossary, names.parent_of(request.name))

    def _get_glossary_entry(self, request: pb.GetGlossaryEntryRequest) -> pb.GlossaryEntry:
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

    def _list_glossary_entries(self, request: pb.ListGlossaryEntriesRequest) -> pb.ListGlossaryEntriesResponse:
        glossary = self._one_glossary("parent", request.parent)
        numbers, token = messages.page(range(1, len(glossary.terms) + 1), request.page_size, request.page_token)
        return pb.ListGlossaryEntriesResponse(
            glossary_entries=[messages.entry_to_pb(glossary, request.parent, number) for number in numbers],
            next_page_token=token,
        )

    def models(self, name: str, full_name: str) -> list[LoadedModel]:
        """Return the highest version of each model, or only of the model of this name; callers know it as `full_name`.

        Raise `NotFound`, `Forbidden` if the key may not use it, or `Unavailable` while models are being loaded.
        """
        highest = {model.name: model for model in reversed(self._translator.models())}
        if not name:
            return list(highest.values())
        if name not in highest:
            current_call().grants.check_model(name)
            raise NotFound(
                "model {name} is not served here",
                "model",
                full_name,
                name=name,
                advice=f"served: {listed(sorted(highest))}",
            )
        return [highest[name]]

    async def _answers(
        self, request: pb.TranslateTextRequest, domain_request: TranslationRequest
    ) -> list[Translations]:
        """Return the translations without the glossary and then, if the call has one, those with it."""
        if not domain_request.glossary:
            return [await self._translate(domain_request)]
        found = self._found("glossary_config.glossary", request.glossary_config.glossary)
        glossary = messages.fitting(found, domain_request)
        plain, domain_request = replace(domain_request, glossary=""), replace(domain_request, glossary=glossary.name)
        if request.glossary_config.ignore_case:
            strict = (term for term in glossary.terms if term.is_case_sensitive)
            domain_request = replace(
                domain_request, terms=tuple(replace(term, is_case_sensitive=False) for term in strict)
            )
        return await all_of(map(self._translate, (plain, domain_request)))

    async def _translate(self, domain_request: TranslationRequest) -> Translations:
        return (await self._translator.translate(domain_request)).translations

    def _found(self, field: str, full_name: str) -> list[Glossary]:
        """Return the glossaries that `field` of a request refers to: one, or several for different languages."""
        name = names.glossary_of(full_name, field)
        held = self._translator.glossaries()
        found = [each for each in held if name in (each.name, messages.glossary_id(each))]
        if not found:
            current_call().grants.check_glossary(name)
            there = listed(map(messages.glossary_id, held))
            raise NotFound(
                "glossary {name} is not on this server", "glossary", full_name, name=name, advice=f"it has {there}"
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
