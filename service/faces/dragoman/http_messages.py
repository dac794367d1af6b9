"""Messages of our own API: bodies, answers, and their conversion to domain types.

Fields are named as in `dragoman.v1`; those of options come from the tables in `domain/options.py` and
`domain/translation.py`.
"""

import enum
import time
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, create_model

from service.domain.errors import InvalidRequest, Path
from service.domain.options import OPTIONS, RequestedOptions
from service.domain.translation import (
    MAX_TEXTS,
    REQUEST_OPTIONS,
    DetectedLanguage,
    OwnPlaceholder,
    Segment,
    Term,
    Translation,
    TranslationRequest,
    TranslationResult,
)
from service.faces.dragoman.messages import Document, span_document
from service.faces.fields import MAX_LABELS, MAX_OWN_PLACEHOLDERS, MAX_TERMS
from service.faces.http.bounded import AtMost, Name, Text, Texts

DEADLINE = "Deadline in milliseconds; --default-deadline-seconds if it is left out."


class _Message(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


def _bounds(low: float | None, high: float | None, *, excludes_low: bool) -> dict[str, Any]:
    """Return the keywords of JSON Schema; the domain checks them, with its own messages."""
    found: dict[str, Any] = {}
    if low is not None:
        found["exclusiveMinimum" if excludes_low else "minimum"] = low
    if high is not None:
        found["maximum"] = high
    return found


def _options_type() -> type[BaseModel]:
    fields: dict[str, Any] = {}
    for option in OPTIONS.values():
        extra = _bounds(option.low, option.high, excludes_low=option.excludes_low)
        about = f"{option.help} Default: {option.default_words}."
        fields[option.name] = (option.kind | None, Field(None, description=about, json_schema_extra=extra))
    return create_model(
        "DecodingOptions", __base__=_Message, __doc__="How to decode; see the table of options.", **fields
    )


if TYPE_CHECKING:
    DecodingOptions = BaseModel
else:
    DecodingOptions = _options_type()


class TermMessage(_Message):
    """A term and its required translation; without a target it is kept unchanged."""

    source: Text = Field(description="The term in the text.")
    target: Text | None = Field(None, description="Its translation; unchanged if it is left out.")
    case_sensitive: bool = Field(False, description="Whether upper and lower case differ.")


class PlaceholderMessage(_Message):
    """A kind of placeholder of yours: a pattern, or the marks at its start and end."""

    pattern: Text = Field("", description="A regular expression (RE2).")
    start: Text = Field("", description="What it begins with, such as [[.")
    end: Text = Field("", description="What it ends with, such as ]].")


def about(name: str) -> str:
    return REQUEST_OPTIONS[name].help


class GivenTexts(_Message):
    """The texts of a call."""

    text: Text | None = Field(None, description="One text.")
    texts: Texts | None = Field(None, description=f"Texts, at most {MAX_TEXTS}.")


class CommonFields(BaseModel):
    """What calls with texts and with documents have in common."""

    source_language_code: Name = Field("", description="BCP 47, such as en; detected if it is left out.")
    target_language_code: Name = Field(description="BCP 47, such as de.")
    model: Name = Field("", description=about("model"))
    model_version: Name = Field("", description=about("model_version"))
    priority: Literal["high", "normal", "low"] = Field("normal", description=about("priority"))
    split_sentences: Literal["off", "on", "no_newlines"] = Field("on", description=about("split_sentences"))
    preserve_formatting: bool = Field(False, description=about("preserve_formatting"))
    glossary: Name = Field("", description=about("glossary"))
    strict: bool = Field(False, description=about("strict"))


class DetectRequest(GivenTexts):
    """Texts to detect the languages of; give `text` or `texts`."""


class TranslateRequest(CommonFields, GivenTexts):
    """Texts to translate; give `text` or `texts`."""

    options: DecodingOptions | None = Field(None, description="How to decode.")
    mime_type: Literal["text/plain", "text/html"] = Field("text/plain", description=about("mime_type"))
    terms: Annotated[list[TermMessage], AtMost(MAX_TERMS)] = Field(
        [], description="Terms of this call; they take precedence over the glossary's."
    )
    placeholders: Annotated[list[PlaceholderMessage], AtMost(MAX_OWN_PLACEHOLDERS)] = Field(
        [], description="Kept unchanged, besides placeholders of common kinds."
    )
    target_prefixes: Texts = Field([], description="Beginnings of the translations: one for each text, or none.")
    return_alignments: bool = Field(False, description="Return which parts of source and translation correspond.")
    return_segments: bool = Field(False, description="Return the segments that each text was translated in.")
    keep_other_languages: bool = Field(False, description=about("keep_other_languages"))
    labels: Annotated[dict[Name, Name], AtMost(MAX_LABELS)] = Field({}, description="Your own labels.")
    deadline: float | None = Field(None, description=DEADLINE)


def texts_of(body: GivenTexts) -> tuple[str, ...]:
    """Return the texts of a call; raise `InvalidRequest` if there are none, or both `text` and `texts`."""
    if body.text is not None:
        if body.texts is not None:
            raise InvalidRequest("{path} and text are both given", Path("texts"), advice="give one of them")
        return (body.text,)
    if body.texts is None:
        raise InvalidRequest("{path} is missing", Path("text"), advice="give text, or texts for several")
    return tuple(body.texts)


_ENUMERATED: Mapping[str, type[enum.Enum]] = {
    name: option.kind
    for name, option in REQUEST_OPTIONS.items()
    if isinstance(option.kind, type) and issubclass(option.kind, enum.Enum)
}


def request_from(body: TranslateRequest, texts: tuple[str, ...], default_deadline_seconds: float) -> TranslationRequest:
    """Return the caller's request; raise `InvalidRequest` if the deadline is not positive."""
    given: dict[str, Any] = {}
    for name, option in REQUEST_OPTIONS.items():
        if name in body.model_fields_set:
            value = getattr(body, name)
            given[option.attribute] = _ENUMERATED[name](value) if name in _ENUMERATED else value
    if body.options is not None:
        given["options"] = RequestedOptions(
            **{name: getattr(body.options, name) for name in body.options.model_fields_set}
        )
    return TranslationRequest(
        texts=texts,
        source_language_code=body.source_language_code,
        target_language_code=body.target_language_code,
        deadline_seconds=deadline(body.deadline, default_deadline_seconds),
        target_prefixes=tuple(body.target_prefixes),
        terms=tuple(Term(each.source, each.target, each.case_sensitive) for each in body.terms),
        placeholders=tuple(OwnPlaceholder(each.pattern, each.start, each.end) for each in body.placeholders),
        return_alignments=body.return_alignments,
        labels=tuple(sorted(body.labels.items())),
        **given,
    )


def deadline(milliseconds: float | None, default_seconds: float) -> float:
    """Return a deadline on the clock of `time.monotonic()`; raise `InvalidRequest` if it is not above 0."""
    if milliseconds is None:
        return time.monotonic() + default_seconds
    if not milliseconds > 0.0:
        raise InvalidRequest("{path} is {value}", Path("deadline"), value=milliseconds, allowed="milliseconds above 0")
    return time.monotonic() + milliseconds / 1000


def result_document(result: TranslationResult, *, with_segments: bool) -> Document:
    return {
        "translations": [translation_document(each, with_segments=with_segments) for each in result.translations],
        "model": result.model,
        "model_version": result.model_version,
    }


def translation_document(translation: Translation, *, with_segments: bool) -> Document:
    document: Document = {
        "text": translation.text,
        "finish_reason": translation.finish_reason.value,
        "num_source_tokens": translation.num_source_tokens,
    }
    if translation.detected_language_code:
        document["detected_language_code"] = translation.detected_language_code
    if translation.pivot_language_code:
        document["pivot_language_code"] = translation.pivot_language_code
    if len(translation.hypotheses) > 1 or any(each.score is not None for each in translation.hypotheses):
        document["hypotheses"] = [
            {"text": each.text, "num_tokens": each.num_tokens, **({} if each.score is None else {"score": each.score})}
            for each in translation.hypotheses
        ]
    if with_segments:
        document["segments"] = [_segment_document(each) for each in translation.segments]
    if flags := sorted({flag.value for segment in translation.segments for flag in segment.flags}):
        document["flags"] = flags
    if translation.alignment:
        document["alignment"] = [span_document(each) for each in translation.alignment]
    return document


def _segment_document(segment: Segment) -> Document:
    return {
        **span_document(segment),
        "finish_reason": segment.finish_reason.value,
        "num_source_tokens": segment.num_source_tokens,
        "num_output_tokens": segment.num_output_tokens,
        "flags": [flag.value for flag in segment.flags],
    }


def detections_document(detected: Iterable[Iterable[DetectedLanguage]]) -> Document:
    return {
        "detections": [
            {"languages": [{"language_code": each.language_code, "confidence": each.confidence} for each in languages]}
            for languages in detected
        ]
    }
