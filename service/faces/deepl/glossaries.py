"""DeepL's glossaries, read-only: version 2 with one dictionary each, and version 3 with several.

A glossary has the same id in both; version 2 leaves out those with several dictionaries. They are the operator's files,
as served by name in every other API. Source: https://developers.deepl.com/docs/api-reference/glossaries.
"""

import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from http import HTTPStatus
from typing import Any

from pydantic import BaseModel

from service.domain.call import current_call
from service.domain.checkpoint import paced
from service.domain.errors import InvalidRequest, NotFound, Path, Public, Unimplemented
from service.faces.deepl.failures import failure
from service.faces.deepl.messages import KEY, parameters_in
from service.faces.fields import check_code
from service.faces.http.answers import in_json
from service.faces.http.application import HttpAnswer, HttpRequest
from service.faces.http.bounded import Name
from service.faces.http.languages import ListedLanguage, languages_of
from service.faces.http.routes import Route
from service.text.glossary import Glossary
from service.text.languages import canonical, folded
from service.translation.translator import Translator

Document = dict[str, Any]

_TSV = "text/tab-separated-values; charset=UTF-8"
_NAMESPACE = uuid.UUID("a6f54bbf-0d4b-5a51-9f62-1f0f1d1f7c7e")  # of the ids, which follow from it and from names
_CHANGES = (
    ("POST", "/v2/glossaries"),
    ("DELETE", "/v2/glossaries/{glossary_id}"),
    ("POST", "/v3/glossaries"),
    ("PATCH", "/v3/glossaries/{glossary_id}"),
    ("DELETE", "/v3/glossaries/{glossary_id}"),
    ("PUT", "/v3/glossaries/{glossary_id}/dictionaries"),
    ("DELETE", "/v3/glossaries/{glossary_id}/dictionaries"),
)


class PairParameters(BaseModel):
    """Two languages."""

    source_lang: Name
    target_lang: Name


@dataclass(frozen=True, slots=True)
class NamedGlossary:
    """The dictionaries of one name."""

    name: str
    dictionaries: tuple[Glossary, ...]

    @property
    def id(self) -> str:
        return str(uuid.uuid5(_NAMESPACE, self.name))

    def dictionary(self, source_language_code: str, target_language_code: str) -> Glossary:
        """Return the dictionary of exactly these languages; raise `NotFound` if there is none."""
        requested = folded(source_language_code), folded(target_language_code)
        for each in self.dictionaries:
            if each.key[1:] == requested:
                return each
        raise NotFound(
            "glossary {id} has no dictionary from {source} into {target}",
            "glossary",
            self.id,
            id=Public(self.id),
            source=source_language_code,
            target=target_language_code,
        )


class DeepLGlossaries:
    """The calls about glossaries. All methods belong to the event loop's thread."""

    def __init__(self, translator: Translator) -> None:
        self._translator = translator

    def routes(self) -> Sequence[Route]:
        route = partial(Route, failure=failure, key_in=KEY.find, queues=False)
        v2, v3 = "/v2/glossaries", "/v3/glossaries"
        one_v2, one_v3 = f"{v2}/{{glossary_id}}", f"{v3}/{{glossary_id}}"
        return (
            route("GET", "/v2/glossary-language-pairs", "http/deepl/glossary_pairs", self.pairs),
            route("GET", v2, "http/deepl/list_glossaries", self.list_single),
            route("GET", one_v2, "http/deepl/get_glossary", self.get_single),
            route("GET", f"{one_v2}/entries", "http/deepl/glossary_entries", self.entries_of_single),
            route("GET", v3, "http/deepl/v3/list_glossaries", self.list_all),
            route("GET", one_v3, "http/deepl/v3/get_glossary", self.get),
            route("GET", f"{one_v3}/entries", "http/deepl/v3/glossary_entries", self.entries),
            *(route(method, path, "http/deepl/unsupported", _refuse_change) for method, path in _CHANGES),
        )

    async def pairs(self, request: HttpRequest) -> HttpAnswer:
        return in_json(pairs_document(languages_of(self._translator.catalogue())))

    async def list_single(self, request: HttpRequest) -> HttpAnswer:
        single = [each for each in all_of(self._translator.glossaries()) if len(each.dictionaries) == 1]
        return in_json({"glossaries": [single_glossary_document(each) for each in single]})

    async def get_single(self, request: HttpRequest) -> HttpAnswer:
        return in_json(single_glossary_document(self._single(request)))

    async def entries_of_single(self, request: HttpRequest) -> HttpAnswer:
        [dictionary] = self._single(request).dictionaries
        entries = await self._translator.convert(lambda: tsv_of(dictionary).encode(), len(dictionary.terms))
        return HttpAnswer(HTTPStatus.OK, _TSV, entries)

    async def list_all(self, request: HttpRequest) -> HttpAnswer:
        return in_json({"glossaries": [glossary_document(each) for each in all_of(self._translator.glossaries())]})

    async def get(self, request: HttpRequest) -> HttpAnswer:
        return in_json(glossary_document(self._find(request)))

    async def entries(self, request: HttpRequest) -> HttpAnswer:
        pair = pair_of(parameters_in(request, PairParameters))
        found = self._find(request).dictionary(*pair)
        return await self._translator.convert(lambda: in_json(entries_document(found)), len(found.terms))

    def _find(self, request: HttpRequest) -> NamedGlossary:
        return found_in(self._translator.glossaries(), request.parts["glossary_id"])

    def _single(self, request: HttpRequest) -> NamedGlossary:
        glossary = self._find(request)
        if len(glossary.dictionaries) != 1:
            raise NotFound(
                "glossary {id} has {number} dictionaries",
                "glossary",
                glossary.id,
                id=Public(glossary.id),
                number=len(glossary.dictionaries),
                advice="use /v3/glossaries",
            )
        return glossary


def all_of(glossaries: Iterable[Glossary]) -> list[NamedGlossary]:
    by_name: dict[str, list[Glossary]] = {}
    for each in glossaries:
        by_name.setdefault(each.name, []).append(each)
    return [NamedGlossary(name, tuple(dictionaries)) for name, dictionaries in by_name.items()]


def found_in(glossaries: Iterable[Glossary], glossary_id: str) -> NamedGlossary:
    """Return the glossary with this id; raise `NotFound` if there is none, `Forbidden` if the key may use only some."""
    for each in all_of(glossaries):
        if each.id == glossary_id.lower():
            return each
    current_call().grants.check_glossary(glossary_id)
    raise NotFound("there is no glossary {id}", "glossary", glossary_id, id=glossary_id)


def pair_of(parameters: PairParameters) -> tuple[str, str]:
    """Return codes as this server spells them; raise `InvalidRequest` if one is no code, or both are the same."""
    check_code("source_lang", parameters.source_lang)
    check_code("target_lang", parameters.target_lang)
    source, target = canonical(parameters.source_lang), canonical(parameters.target_lang)
    if folded(source) == folded(target):
        raise InvalidRequest("{path} is the source language too", Path("target_lang"))
    return source, target


def tsv_of(dictionary: Glossary) -> str:
    """Return the entries of a dictionary; a term that is not translated is its own target. Passes checkpoints."""
    return "\n".join(f"{each.source}\t{each.target or each.source}" for each in paced(dictionary.terms))


def glossary_document(glossary: NamedGlossary) -> Document:
    """Return a glossary in version 3's format, without its entries."""
    return {
        "glossary_id": glossary.id,
        "name": glossary.name,
        "dictionaries": [_dictionary_document(each) for each in glossary.dictionaries],
        "creation_time": _time_of(glossary),
    }


def single_glossary_document(glossary: NamedGlossary) -> Document:
    """Return a glossary in version 2's format, which has one dictionary."""
    [dictionary] = glossary.dictionaries
    return {
        "glossary_id": glossary.id,
        "name": glossary.name,
        "ready": True,
        **_dictionary_document(dictionary),
        "creation_time": _time_of(glossary),
    }


def entries_document(dictionary: Glossary) -> Document:
    entry = {**_languages_document(dictionary), "entries": tsv_of(dictionary), "entries_format": "tsv"}
    return {"dictionaries": [entry]}


def pairs_document(languages: Iterable[ListedLanguage]) -> Document:
    """Return the pairs of languages that can have dictionaries: all that are translated."""
    pairs = dict.fromkeys((each.code.lower(), target.lower()) for each in languages for target in each.targets)
    return {"supported_languages": [{"source_lang": source, "target_lang": target} for source, target in pairs]}


def _dictionary_document(dictionary: Glossary) -> Document:
    return {**_languages_document(dictionary), "entry_count": len(dictionary.terms)}


def _languages_document(dictionary: Glossary) -> Document:
    return {
        "source_lang": dictionary.source_language_code.lower(),
        "target_lang": dictionary.target_language_code.lower(),
    }


def _time_of(glossary: NamedGlossary) -> str:
    """Return when the first of its files was last changed: the server does not know when it was created."""
    seconds = min(each.modified_seconds for each in glossary.dictionaries)
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


async def _refuse_change(request: HttpRequest) -> HttpAnswer:
    raise Unimplemented(
        "callers can't change this server's glossaries",
        advice="ask its operator to put a file into the folder of glossaries, or send terms with each call of "
        "/v1/translate",
    )
