"""Messages of Cloud Translation v2: its parameters, and what its answers look like."""

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from service.domain.translation import DetectedLanguage, MimeType, Translation
from service.faces.google import names as names
from service.faces.http.bounded import Listed, Name
from service.faces.http.languages import ListedLanguage

Document = dict[str, Any]

MIME_TYPES: Mapping[str, MimeType] = MappingProxyType({"html": MimeType.HTML, "text": MimeType.PLAIN})

_DEFAULT_MODELS = ("", "nmt", "base")  # Google's, of which callers have the first suitable one of this server


class _Parameters(BaseModel):
    """Google's clients send null for what they leave out."""

    model_config = ConfigDict(extra="forbid", strict=True)


class TranslateParameters(_Parameters):
    """What to translate; `cid` are customizations, which must be none."""

    q: Listed
    target: Name
    source: Name | None = None
    format: Literal["html", "text"] | None = None
    model: Name | None = None
    cid: Listed | None = None


class DetectParameters(_Parameters):
    """What to detect the languages of."""

    q: Listed


class LanguagesParameters(_Parameters):
    """In which language to name the languages, and of which model they are."""

    target: Name | None = None
    model: Name | None = None


def model_of(model: str | None) -> str:
    """Return the model's name on this server; empty for the default model.

    Raises:
        InvalidRequest: it has the form of a resource's name, but not of a model's.
    """
    name = model or ""
    if name in _DEFAULT_MODELS:
        return ""
    return names.model_of(name) if name.startswith("projects/") else name


def translations_document(translations: Iterable[Translation], model: str | None) -> Document:
    """Return the answer to a call; `model` is as the caller gave it."""
    return {"data": {"translations": [_translation(each, model) for each in translations]}}


def detections_document(detected: Iterable[Sequence[DetectedLanguage]]) -> Document:
    """Return the first of each text's languages, which are sorted best first."""
    return {
        "data": {
            "detections": [
                [{"language": best.language_code, "confidence": best.confidence, "isReliable": False}]
                for best, *_ in detected
            ]
        }
    }


def languages_document(languages: Iterable[ListedLanguage], has_names: bool) -> Document:
    """Return the languages, with their names if the caller asked for them."""
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
