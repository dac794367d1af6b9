"""LibreTranslate's messages: bodies, answers, and their conversion to domain types.

Sources: https://docs.libretranslate.com/guides/api_usage, and where it is silent LibreTranslate 1.9.6 itself.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict

from service.domain.errors import InvalidRequest, Path, ServiceError
from service.domain.options import MAX_BEAM_SIZE, RequestedOptions
from service.domain.translation import MAX_TEXTS, DetectedLanguage, MimeType, Translation, TranslationRequest
from service.faces.fields import check_count
from service.faces.http.answers import JSON, spell, spelling_of
from service.faces.http.application import HttpRequest
from service.faces.http.bodies import FORM, checked, content_type, form_of, is_json, json_of
from service.faces.http.bounded import Anything, Name
from service.faces.http.forms import list_name
from service.faces.http.key_fields import KeyField
from service.faces.http.languages import ListedLanguage
from service.faces.http.multipart import MULTIPART, fields_of_any_form
from service.faces.json_text import wrong_value
from service.text.detection import UNDETERMINED
from service.text.languages import language_of

AUTO = "auto"  # the source language of texts whose languages are to be detected
MAX_ALTERNATIVES = MAX_BEAM_SIZE - 1  # beside the translation itself

# Codes of LibreTranslate's models that are not BCP 47's, and the code that it lists where ours is shorter.
_FROM_THEIRS = {"pb": "pt-BR", "zt": "zh-Hant"}
_TO_THEIRS = {"zh": "zh-Hans"}
# What it answers where a text has no language, such as a number.
_NO_LANGUAGE = DetectedLanguage("en", 0.0)
_FORMATS = {"text": MimeType.PLAIN, "html": MimeType.HTML}
_FIELDS = {"texts": "q", "source_language_code": "source", "target_language_code": "target", "mime_type": "format"}
KEY = KeyField("api_key")

Document = dict[str, Any]
T = TypeVar("T")


class _Message(BaseModel):
    """Unknown fields are ignored, as pages and plugins send several; numbers may be texts, as in forms."""

    model_config = ConfigDict(extra="ignore")


class TranslateBody(_Message):
    """Body of /translate: `q` is a text, or a list of them."""

    q: Anything = None
    source: Name | None = None
    target: Name | None = None
    format: Name | None = None
    alternatives: int | None = None


class DetectBody(_Message):
    """Body of /detect: `q` is a text, or a list of texts that are detected as one."""

    q: Anything = None


@dataclass(frozen=True, slots=True)
class Parameters:
    """A call of /translate. `is_list` tells if the answer has lists, one entry for each text."""

    request: TranslationRequest
    is_list: bool
    num_alternatives: int

    @property
    def is_detected(self) -> bool:
        return not self.request.source_language_code


def body_of(request: HttpRequest, kind: type[T]) -> T:
    """Read a call's parameters: an object in JSON, or the fields of a form and of the query.

    `q` repeated, `q[]` or `q[0]` is a list; else the first field counts. Raise `InvalidRequest` for another type or a
    malformed body.
    """
    of_form = fields_of_any_form(request)
    if of_form is None and (request.body or content_type(request) == JSON):
        if not is_json(request):
            allowed = f"{JSON}, {FORM}, {MULTIPART}"
            raise InvalidRequest("Content-Type is {given}", given=content_type(request), allowed=allowed)
        return json_of(request, kind)
    fields = [*form_of(request.query), *(of_form or ())]
    values: Document = {}
    for name, value in fields:
        values.setdefault(name, value)
    # Forms are sent with CRLF, whatever line ends a text had.
    texts = [value.replace("\r\n", "\n") for name, value in fields if "q" in (name, list_name(name))]
    if texts:
        values["q"] = texts[0] if "q" in values and len(texts) == 1 else texts
    return checked(values, kind)


def parameters_of(body: TranslateBody, deadline_seconds: float) -> Parameters:
    """Return a call's parameters; raise `InvalidRequest` if one is missing or wrong; the translator checks others.

    `deadline_seconds` is on the clock of `time.monotonic()`.
    """
    texts, is_list = texts_of(body.q)
    for name, value in (("source", body.source), ("target", body.target)):
        if not value:
            raise _missing(name)
    num_alternatives = max(body.alternatives or 0, 0)
    if num_alternatives > MAX_ALTERNATIVES:
        raise InvalidRequest(
            "{path} is {value}", Path("alternatives"), value=num_alternatives, allowed=f"0 to {MAX_ALTERNATIVES}"
        )
    mime_type = _FORMATS.get(body.format or "text")
    if mime_type is None:
        raise InvalidRequest("{path} is {value}", Path("format"), value=body.format, allowed=", ".join(_FORMATS))
    request = TranslationRequest(
        texts=texts,
        source_language_code=source_from(body.source or ""),
        target_language_code=code_from(body.target or ""),
        options=RequestedOptions(num_hypotheses=num_alternatives + 1 if num_alternatives else None),
        mime_type=mime_type,
        deadline_seconds=deadline_seconds,
    )
    return Parameters(request, is_list, num_alternatives)


def texts_of(q: object) -> tuple[tuple[str, ...], bool]:
    """Return the texts, and whether they are a list; raise `InvalidRequest` for none, too many, or what is no text."""
    if q in (None, "", []):
        raise _missing("q")
    if isinstance(q, str):
        return (q,), False
    if not isinstance(q, list):
        raise wrong_value("q", q, "a text or a list of texts")
    check_count("q", len(q), MAX_TEXTS)
    for index, each in enumerate(q):
        if not isinstance(each, str):
            raise wrong_value(Path("q", index), each, "a text")
    return tuple(q), True


def answer_document(
    parameters: Parameters, translations: Sequence[Translation], detected: Iterable[Iterable[DetectedLanguage]]
) -> Document:
    document: Document = {"translatedText": _answered(parameters, [each.text for each in translations])}
    if parameters.num_alternatives:
        document["alternatives"] = _answered(parameters, [_others(each) for each in translations])
    if parameters.is_detected:
        languages = [
            _detection(_chosen(translation.detected_language_code, found))
            for translation, found in zip(translations, detected, strict=True)
        ]
        document["detectedLanguage"] = _answered(parameters, languages)
    return document


def detections_document(detected: Sequence[DetectedLanguage], served: Collection[str]) -> list[Document]:
    """Return the languages that a text may be in, best first, without those of less than one per cent.

    For a text without a language that is English, as LibreTranslate answers, or `auto` where English is not `served`.
    """
    best, *others = detected
    if best.language_code == UNDETERMINED and _NO_LANGUAGE.language_code not in served:
        return [_detection(DetectedLanguage(AUTO, 0.0))]
    likely = [each for each in others if round(100 * each.confidence) > 0]
    return [_detection(each) for each in (best, *likely)]


def languages_document(languages: Iterable[ListedLanguage]) -> list[Document]:
    return [
        {"code": _code_to(each.code), "name": each.name, "targets": [_code_to(target) for target in each.targets]}
        for each in languages
    ]


def settings_document(
    languages: Sequence[ListedLanguage], max_characters: int, endings: Sequence[str], *, asks_for_keys: bool
) -> Document:
    """Return what a page has to know of this server; files with one of `endings` can be translated."""
    targets = {target for each in languages for target in each.targets}
    target = next((each for each in languages if each.code in targets), ListedLanguage("en", "English", []))
    return {
        "charLimit": max_characters,
        "frontendTimeout": 500,  # milliseconds that a page waits for the next key stroke before it translates
        "apiKeys": asks_for_keys,
        "keyRequired": asks_for_keys,
        "suggestions": False,
        "filesTranslation": bool(endings),
        "supportedFilesFormat": list(endings),
        "language": {
            "source": {"code": AUTO, "name": "Auto Detect"},
            "target": {"code": _code_to(target.code), "name": target.name},
        },
    }


def spell_fields(error: ServiceError, *, is_single: bool) -> None:
    """Put an error into the terms of this API; a text that came alone has no index."""
    spelled = spelling_of(_FIELDS)

    def own(path: Path) -> str:
        if path[0] == "options":
            return "alternatives"  # the only one that can be chosen
        return spelled(Path("texts") if is_single and path[0] == "texts" else path)

    spell(error, _FIELDS, own)


def _missing(name: str) -> InvalidRequest:
    return InvalidRequest(f"Invalid request: missing {name} parameter", name)


def source_from(code: str) -> str:
    """Return the source language of a request; empty if it is to be detected."""
    return "" if code.lower() == AUTO else code_from(code)


def code_from(code: str) -> str:
    return _FROM_THEIRS.get(code.lower(), code)


def _code_to(code: str) -> str:
    return _TO_THEIRS.get(code, code)


def _answered(parameters: Parameters, values: list[T]) -> list[T] | T:
    return values if parameters.is_list else values[0]


def _others(translation: Translation) -> list[str]:
    return list(dict.fromkeys(each.text for each in translation.hypotheses if each.text != translation.text))


def _chosen(code: str, detected: Iterable[DetectedLanguage]) -> DetectedLanguage:
    same = (each.confidence for each in detected if language_of(each.language_code) == language_of(code))
    return DetectedLanguage(code, max(same, default=0.0))


def _detection(language: DetectedLanguage) -> Document:
    known = _NO_LANGUAGE if language.language_code == UNDETERMINED else language
    return {"confidence": float(round(100 * known.confidence)), "language": _code_to(known.language_code)}
