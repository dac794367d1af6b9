"""DeepL's glossaries: version 2, of one dictionary each, and version 3, of several.

A glossary is the same in both, with the same id; version 2 leaves out those that have several dictionaries. All are
files of the server's folder, which every other API serves by name.
"""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from http import HTTPStatus
from typing import TypeVar

from service.domain.call import current_call
from service.domain.errors import InvalidRequest, NotFound, Path, Public
from service.faces.deepl import glossary_messages as messages
from service.faces.deepl.failures import failure
from service.faces.deepl.parameters import CHARACTERS_PER_ENTRY, KEY, parameters_in
from service.faces.http.answers import in_json
from service.faces.http.application import HttpAnswer, HttpRequest
from service.faces.http.languages import languages_of
from service.faces.http.routes import Route
from service.text.glossary_files import Dictionary
from service.text.glossary_store import GlossaryStore, StoredGlossary, found_dictionary
from service.translation.translator import Translator

_TSV = "text/tab-separated-values; charset=UTF-8"
_REMOVED = HttpAnswer(HTTPStatus.NO_CONTENT, "", b"")

T = TypeVar("T")


class Glossaries:
    """The calls about glossaries. All methods belong to the event loop's thread; files are used on others."""

    def __init__(self, store: GlossaryStore, translator: Translator) -> None:
        """Allow dictionaries for the languages that `translator` serves."""
        self._store = store
        self._translator = translator

    def routes(self) -> Sequence[Route]:
        """Return the routes of both versions."""
        route = partial(Route, failure=failure, key_in=KEY.find, queues=False)
        v2, v3 = "/v2/glossaries", "/v3/glossaries"
        one_v2, one_v3 = f"{v2}/{{glossary_id}}", f"{v3}/{{glossary_id}}"
        return (
            route("GET", "/v2/glossary-language-pairs", "http/deepl/glossary_pairs", self.pairs),
            route("GET", v2, "http/deepl/list_glossaries", self.list_single),
            route("POST", v2, "http/deepl/create_glossary", self.create_single),
            route("GET", one_v2, "http/deepl/get_glossary", self.get_single),
            route("DELETE", one_v2, "http/deepl/delete_glossary", self.delete_single),
            route("GET", f"{one_v2}/entries", "http/deepl/glossary_entries", self.entries_of_single),
            route("GET", v3, "http/deepl/v3/list_glossaries", self.list_all),
            route("POST", v3, "http/deepl/v3/create_glossary", self.create),
            route("GET", one_v3, "http/deepl/v3/get_glossary", self.get),
            route("PATCH", one_v3, "http/deepl/v3/patch_glossary", self.patch),
            route("DELETE", one_v3, "http/deepl/v3/delete_glossary", self.delete),
            route("GET", f"{one_v3}/entries", "http/deepl/v3/glossary_entries", self.entries),
            route("PUT", f"{one_v3}/dictionaries", "http/deepl/v3/put_dictionary", self.put_dictionary),
            route("DELETE", f"{one_v3}/dictionaries", "http/deepl/v3/delete_dictionary", self.delete_dictionary),
        )

    async def pairs(self, request: HttpRequest) -> HttpAnswer:
        return in_json(messages.pairs_document(self._pairs()))

    async def list_single(self, request: HttpRequest) -> HttpAnswer:
        """List the glossaries with one dictionary."""
        single = [each for each in await asyncio.to_thread(self._store.all, _key_name()) if len(each.dictionaries) == 1]
        return in_json({"glossaries": [messages.single_glossary_document(each) for each in single]})

    async def create_single(self, request: HttpRequest) -> HttpAnswer:
        """Create a glossary with one dictionary."""
        parameters = parameters_in(request, messages.CreateParameters)
        dictionary = await self._dictionary(parameters)
        created = await asyncio.to_thread(self._store.create, parameters.name, [dictionary], _key_name())
        return in_json(messages.single_glossary_document(created), status=HTTPStatus.CREATED)

    async def get_single(self, request: HttpRequest) -> HttpAnswer:
        return in_json(messages.single_glossary_document(await self._single(request)))

    async def entries_of_single(self, request: HttpRequest) -> HttpAnswer:
        """Return the entries of a glossary with one dictionary."""
        [dictionary] = (await self._single(request)).dictionaries
        entries = await self._translator.convert(lambda: messages.tsv_of(dictionary).encode(), len(dictionary.terms))
        return HttpAnswer(HTTPStatus.OK, _TSV, entries)

    async def delete_single(self, request: HttpRequest) -> HttpAnswer:
        """Delete a glossary with one dictionary."""
        await self._single(request)
        return await self.delete(request)

    async def list_all(self, request: HttpRequest) -> HttpAnswer:
        """List all glossaries."""
        glossaries = await asyncio.to_thread(self._store.all, _key_name())
        return in_json({"glossaries": [messages.glossary_document(each) for each in glossaries]})

    async def create(self, request: HttpRequest) -> HttpAnswer:
        """Create a glossary."""
        parameters = parameters_in(request, messages.CreateSeveralParameters)
        if not parameters.dictionaries:
            raise InvalidRequest("{path} is empty", Path("dictionaries"), advice="give at least one")
        dictionaries = await self._dictionaries(parameters.dictionaries)
        created = await asyncio.to_thread(self._store.create, parameters.name, dictionaries, _key_name())
        return in_json(messages.glossary_document(created), status=HTTPStatus.CREATED)

    async def get(self, request: HttpRequest) -> HttpAnswer:
        return in_json(messages.glossary_document(await self._find(request)))

    async def patch(self, request: HttpRequest) -> HttpAnswer:
        """Rename a glossary, or add entries to its dictionaries; those of the same source are replaced."""
        parameters = parameters_in(request, messages.PatchParameters)
        dictionaries = await self._dictionaries(parameters.dictionaries)
        glossary_id = request.parts["glossary_id"]
        for each in dictionaries:
            await asyncio.to_thread(self._store.put, glossary_id, each, _key_name(), merges=True)
        if parameters.name is not None:
            await asyncio.to_thread(self._store.rename, glossary_id, parameters.name, _key_name())
        return in_json(messages.glossary_document(await self._find(request)))

    async def delete(self, request: HttpRequest) -> HttpAnswer:
        """Delete a glossary."""
        await asyncio.to_thread(self._store.remove, request.parts["glossary_id"], _key_name())
        return _REMOVED

    async def entries(self, request: HttpRequest) -> HttpAnswer:
        """Return the entries of a dictionary."""
        pair = messages.pair_of(parameters_in(request, messages.PairParameters))
        found = found_dictionary(await self._find(request), *pair)
        return await self._translator.convert(lambda: in_json(messages.entries_document(found)), len(found.terms))

    async def put_dictionary(self, request: HttpRequest) -> HttpAnswer:
        """Replace a dictionary, or add one."""
        dictionary = await self._dictionary(parameters_in(request, messages.DictionaryParameters))
        await asyncio.to_thread(self._store.put, request.parts["glossary_id"], dictionary, _key_name())
        codes = dictionary.source_language_code, dictionary.target_language_code
        return in_json(messages.dictionary_document(found_dictionary(await self._find(request), *codes)))

    async def delete_dictionary(self, request: HttpRequest) -> HttpAnswer:
        """Delete a dictionary."""
        pair = messages.pair_of(parameters_in(request, messages.PairParameters))
        await asyncio.to_thread(self._store.remove_dictionary, request.parts["glossary_id"], *pair, _key_name())
        return _REMOVED

    async def _find(self, request: HttpRequest) -> StoredGlossary:
        return await asyncio.to_thread(self._store.find, request.parts["glossary_id"], _key_name())

    async def _single(self, request: HttpRequest) -> StoredGlossary:
        glossary = await self._find(request)
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

    async def _dictionary(self, parameters: messages.DictionaryParameters) -> Dictionary:
        pairs = self._pairs()
        return await self._read(lambda: messages.dictionary_of(parameters, pairs), [parameters])

    async def _dictionaries(self, parameters: Sequence[messages.DictionaryParameters]) -> Sequence[Dictionary]:
        pairs = self._pairs()
        return await self._read(lambda: messages.dictionaries_of(parameters, pairs), parameters)

    async def _read(self, work: Callable[[], T], parameters: Sequence[messages.DictionaryParameters]) -> T:
        size = sum(len(each.entries) for each in parameters) // CHARACTERS_PER_ENTRY
        return await self._translator.convert(work, size)

    def _pairs(self) -> Sequence[tuple[str, str]]:
        return messages.pairs_of(languages_of(self._translator.catalogue()))


def _key_name() -> str:
    return current_call().key_name
