"""Cloud Translation v2, "Basic": translate, detect, languages."""

import time
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict

from service.domain.call import CallKind, current_call
from service.domain.errors import (
    InvalidRequest,
    Path,
    Unimplemented,
    quoted,
)
from service.domain.translation import DetectedLanguage, MimeType, Translation, TranslationRequest
from service.faces.fields import check_code
from service.faces.google import names
from service.faces.google.failures import failure_of_v2
from service.faces.google.messages import finish_reasons, in_googles_words
from service.faces.google.methods import FINISH_REASONS_KEY, GoogleMethods
from service.faces.google.parameters import KEY, Fields, own_fields
from service.faces.http.answers import in_json
from service.faces.http.application import HttpAnswer, HttpRequest
from service.faces.http.bodies import checked, form_of, is_form, json_of
from service.faces.http.bounded import Listed, Name
from service.faces.http.forms import fields_of, list_name
from service.faces.http.languages import ListedLanguage, languages_of
from service.faces.http.routes import Route
from service.models.catalogue import Catalogue
from service.translation.translator import Translator

Document = dict[str, Any]
T = TypeVar("T")

PATH = "/language/translate/v2"
MIME_TYPES: Mapping[str, MimeType] = MappingProxyType({"html": MimeType.HTML, "text": MimeType.PLAIN})

# Where v2's names differ from ours.
FIELDS = {"texts": "q", "source_language_code": "source", "target_language_code": "target", "mime_type": "format"}
_DEFAULT_MODELS = ("", "nmt", "base")  # Google's, of which callers have the first suitable one of this server


class _Parameters(BaseModel):
    """Google's clients send null for what they leave out."""

    model_config = ConfigDict(extra="forbid", strict=True)


class TranslateParameters(_Parameters):
    """Parameters of a translation; `cid` are customizations, which must be none."""

    q: Listed
    target: Name
    source: Name | None = None
    format: Literal["html", "text"] | None = None
    model: Name | None = None
    cid: Listed | None = None


class DetectParameters(_Parameters):
    """Texts to detect the languages of."""

    q: Listed


class LanguagesParameters(_Parameters):
    """In which language to name the languages, and of which model they are."""

    target: Name | None = None
    model: Name | None = None


def model_of(model: str | None) -> str:
    """Return the model's name here, empty for the default one; raise `InvalidRequest` for a malformed resource."""
    name = model or ""
    if name in _DEFAULT_MODELS:
        return ""
    return names.model_of(name) if name.startswith("projects/") else name


def translations_document(translations: Iterable[Translation], model: str | None) -> Document:
    return {"data": {"translations": [_translation(each, model) for each in translations]}}


def detections_document(detected: Iterable[Sequence[DetectedLanguage]]) -> Document:
    return {
        "data": {
            "detections": [
                [{"language": best.language_code, "confidence": best.confidence, "isReliable": False}]
                for best, *_ in detected
            ]
        }
    }


def languages_document(languages: Iterable[ListedLanguage], has_names: bool) -> Document:
    return {
        "data": {
            "languages": [
                {"language": each.code, "name": each.name} if has_names else {"language": each.code}
                for each in languages
            ]
        }
    }


def _translation(translation: Translation, model: str | None) -> Document:
    document: Document = {"translatedText": translation.text}
    if translation.detected_language_code:
        document["detectedSourceLanguage"] = translation.detected_language_code
    if model:
        document["model"] = model
    return document


class V2:
    """Cloud Translation v2. All methods belong to the event loop's thread."""

    def __init__(self, translator: Translator, methods: GoogleMethods, default_deadline_seconds: float) -> None:
        self._translator = translator
        self._methods = methods
        self._default_deadline_seconds = default_deadline_seconds

    def routes(self) -> Sequence[Route]:
        route = partial(Route, failure=failure_of_v2, key_in=KEY.find)
        translate = partial(route, kind=CallKind.TRANSLATE)
        return (
            translate("POST", PATH, "http/google.v2/translate", self.translate),
            translate("GET", PATH, "http/google.v2/translate", self.translate),
            route("POST", f"{PATH}/detect", "http/google.v2/detect", self.detect),
            route("GET", f"{PATH}/detect", "http/google.v2/detect", self.detect),
            route("GET", f"{PATH}/languages", "http/google.v2/languages", self.languages, queues=False),
        )

    async def translate(self, request: HttpRequest) -> HttpAnswer:
        """Translate texts, HTML unless the format is text."""
        parameters = parameters_in(request, TranslateParameters)
        if parameters.cid:
            raise Unimplemented("cid is not supported by this server", advice="leave it out")
        texts = _texts(parameters.q)
        with in_googles_words(FIELDS, parameters.model or ""):
            result = await self._translator.translate(
                TranslationRequest(
                    texts=texts,
                    source_language_code=parameters.source or "",
                    target_language_code=parameters.target,
                    model=model_of(parameters.model),
                    deadline_seconds=self._deadline(),
                    mime_type=MIME_TYPES[parameters.format or "html"],
                )
            )
        reasons = finish_reasons(result.translations)
        headers = {FINISH_REASONS_KEY: reasons} if reasons else {}
        return in_json(translations_document(result.translations, parameters.model), headers)

    async def detect(self, request: HttpRequest) -> HttpAnswer:
        texts = _texts(parameters_in(request, DetectParameters).q, translates=False)
        with in_googles_words(FIELDS, ""):
            detected = await self._translator.detect(texts, self._deadline())
        return in_json(detections_document(detected))

    async def languages(self, request: HttpRequest) -> HttpAnswer:
        parameters = parameters_in(request, LanguagesParameters)
        if parameters.target:
            check_code("target", parameters.target)
        models = self._methods.models(model_of(parameters.model), parameters.model or "")
        languages = languages_of(Catalogue(models), parameters.target or "en")
        return in_json(languages_document(languages, bool(parameters.target)))

    def _deadline(self) -> float:
        return time.monotonic() + self._default_deadline_seconds


def parameters_in(request: HttpRequest, kind: type[T]) -> T:
    """Return the parameters of query and body; raise `InvalidRequest` if one is missing, wrong, unknown or twice."""
    document: dict[str, Any] = {}
    if request.body and not is_form(request):
        document = json_of(request, dict[str, Any])
    for name, value in own_fields(_fields(request)):
        if "q" in (name, list_name(name)):
            texts = document.setdefault("q", [])
            if not isinstance(texts, list):
                texts = document["q"] = [texts]
            texts.append(value)
        elif name in document:
            raise InvalidRequest("{path} is given twice", Path(quoted(name)[1:-1]), advice="give it once")
        else:
            document[name] = value
    return checked(document, kind)


def _fields(request: HttpRequest) -> Fields:
    fields = form_of(request.query)
    return [*fields, *fields_of(request.body)] if is_form(request) else fields


def _texts(texts: list[str], *, translates: bool = True) -> tuple[str, ...]:
    current_call().asks_for(texts, translates=translates)
    return tuple(texts)
