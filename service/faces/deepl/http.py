"""DeepL's API: translate, languages, usage, glossaries and documents; writing and the like are refused."""

import time
from collections.abc import Sequence
from functools import partial

from service.domain.call import CallKind, TokenUsage, current_call
from service.domain.errors import Public, Unimplemented
from service.faces.deepl import messages
from service.faces.deepl.documents import Documents
from service.faces.deepl.failures import failure
from service.faces.deepl.glossaries import DeepLGlossaries, found_in
from service.faces.deepl.messages import KEY, parameters_in
from service.faces.http.answers import in_json
from service.faces.http.application import HttpAnswer, HttpRequest
from service.faces.http.languages import languages_of
from service.faces.http.routes import Route
from service.translation.translator import Translator

_CHARACTERS_PER_ENTRY = 2  # of markup, that take about as long as an entry of an answer
# Paths of what DeepL has and this server has not, and what to do instead.
_REFUSED = (
    ("POST", "/v2/write/rephrase", "rephrasing", "send texts to /v2/translate"),
    ("POST", "/v2/write/correct", "correction", "send texts to /v2/translate"),
    ("GET", "/v3/style_rules", "style rules", "use a glossary for terms"),
    ("POST", "/v3/style_rules", "style rules", "use a glossary for terms"),
    ("GET", "/v3/translation_memories", "translation memories", "use a glossary for terms"),
)


class DeepL:
    """DeepL's API. All methods belong to the event loop's thread."""

    def __init__(self, translator: Translator, default_deadline_seconds: float, documents: Documents) -> None:
        self._translator = translator
        self._default_deadline_seconds = default_deadline_seconds
        self._glossaries = DeepLGlossaries(translator)
        self._documents = documents

    def routes(self) -> Sequence[Route]:
        route = partial(Route, failure=failure, key_in=KEY.find)
        quick = partial(route, queues=False)
        return (
            route("POST", "/v2/translate", "http/deepl/translate", self.translate, kind=CallKind.TRANSLATE),
            quick("GET", "/v2/languages", "http/deepl/languages", self.languages),
            quick("POST", "/v2/languages", "http/deepl/languages", self.languages),
            quick("GET", "/v3/languages", "http/deepl/v3/languages", self.languages_of_resource),
            quick("GET", "/v2/usage", "http/deepl/usage", self.usage),
            quick("POST", "/v2/usage", "http/deepl/usage", self.usage),
            *self._glossaries.routes(),
            *self._documents.routes(route),
            *(
                route(method, path, "http/deepl/unsupported", partial(_refuse, what, advice))
                for method, path, what, advice in _REFUSED
            ),
        )

    async def translate(self, request: HttpRequest) -> HttpAnswer:
        parameters = parameters_in(request, messages.TranslateParameters)
        messages.check_parameters(parameters)
        current_call().asks_for(parameters.text)
        self._translator.check_texts(parameters.text)
        glossary = messages.glossary_of(parameters)
        name = found_in(self._translator.glossaries(), glossary).name if glossary else ""
        size = sum(map(len, parameters.text)) // _CHARACTERS_PER_ENTRY if parameters.tag_handling else 0
        marked = await self._translator.convert(lambda: messages.marked_texts(parameters), size)
        deadline = time.monotonic() + self._default_deadline_seconds
        result = await self._translator.translate(messages.request_from(parameters, marked, name, deadline))

        def answer() -> HttpAnswer:
            texts = marked.restored([each.text for each in result.translations])
            return in_json(messages.translations_document(parameters, texts, result.translations))

        return await self._translator.convert(answer, size)

    async def languages(self, request: HttpRequest) -> HttpAnswer:
        parameters = parameters_in(request, messages.LanguagesParameters)
        return in_json(messages.languages_document(languages_of(self._translator.catalogue()), parameters.type))

    async def languages_of_resource(self, request: HttpRequest) -> HttpAnswer:
        parameters = parameters_in(request, messages.LanguagesOfResourceParameters)
        languages = languages_of(self._translator.catalogue())
        return in_json(messages.languages_of_resource_document(languages, parameters.resource))

    async def usage(self, request: HttpRequest) -> HttpAnswer:
        """Report the usage of the caller's key; without keys, nothing is counted or limited."""
        caller = current_call().caller
        return in_json(messages.usage_document(caller.accounts.usage(caller) if caller else TokenUsage()))


async def _refuse(what: str, advice: str, request: HttpRequest) -> HttpAnswer:
    raise Unimplemented("this server has no {what}", what=Public(what), advice=advice)
