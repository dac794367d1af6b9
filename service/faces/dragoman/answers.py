"""Types of our own API's answers, for its description; the answers themselves are plain data."""

from typing import Literal

from pydantic import BaseModel, Field

from service.domain.translation import FinishReason, Flag
from service.faces.dragoman import http_messages as messages


class AlignedSpan(BaseModel):
    """A part of a source and the part of its translation that it corresponds to, in code points."""

    source_start: int
    source_end: int
    target_start: int
    target_end: int


class Segment(AlignedSpan):
    """A part of a text that was translated by itself. Positions are code points, from start to before end."""

    finish_reason: Literal[tuple(each.value for each in FinishReason)]  # type: ignore[valid-type]
    num_source_tokens: int
    num_output_tokens: int
    flags: list[Literal[tuple(each.value for each in Flag)]]  # type: ignore[valid-type]


class Hypothesis(BaseModel):
    """One candidate translation."""

    text: str
    num_tokens: int
    score: float | None = Field(None, description="Only with return_scores.")


class Translation(BaseModel):
    """The translation of one text."""

    text: str
    finish_reason: Literal[tuple(each.value for each in FinishReason)] = Field(  # type: ignore[valid-type]
        description="stop, unless a segment was cut off; then its reason."
    )
    num_source_tokens: int
    detected_language_code: str | None = Field(None, description="Only if the request gave no source language.")
    pivot_language_code: str | None = Field(
        None, description="The language through which two models translated; omitted if one did."
    )
    hypotheses: list[Hypothesis] | None = Field(
        None, description="Only if scores or several hypotheses were requested."
    )
    segments: list[Segment] | None = Field(None, description="Only with return_segments.")
    alignment: list[AlignedSpan] | None = Field(None, description="Only with return_alignments.")
    flags: list[Literal[tuple(each.value for each in Flag)]] | None = Field(  # type: ignore[valid-type]
        None, description="Why a person should check the translation."
    )


class TranslateResponse(BaseModel):
    """One translation for each text, in order."""

    translations: list[Translation]
    model: str
    model_version: str


class StreamEvent(BaseModel):
    """An event of a stream: `delta` continues a translation, `translation` is the whole of it, once it has ended.

    After the last one comes an event `done`, or `error` with an Error.
    """

    text_index: int
    delta: str
    translation: Translation | None = None


class DetectedLanguage(BaseModel):
    """A language that a text may be in."""

    language_code: str
    confidence: float = Field(ge=0.0, le=1.0)


class Detection(BaseModel):
    """The languages that a text may be in, best first."""

    languages: list[DetectedLanguage]


class DetectResponse(BaseModel):
    """One detection for each text, in order."""

    detections: list[Detection]


class Language(BaseModel):
    """A language, and those that it is translated into."""

    language_code: str
    name: str
    targets: list[str]


class LanguagesResponse(BaseModel):
    """The served languages."""

    languages: list[Language]


class LanguagePair(BaseModel):
    """A direction of translation."""

    source_language_code: str
    target_language_code: str


class PivotedPair(LanguagePair):
    """A direction that two models translate, by way of a language that they share."""

    pivot_language_code: str


class Model(BaseModel):
    """A served model."""

    name: str
    version: str
    language_pairs: list[LanguagePair]
    any_to_any_language_codes: list[str] = Field(description="Each is translated into every other.")
    pivoted_pairs: list[PivotedPair] = Field(
        description="Pairs that another model translates into the pivot language, and this one from it."
    )
    max_source_tokens: int
    max_output_tokens: int
    default_options: messages.DecodingOptions
    precision: str
    kernels: str = Field(description="The instruction set of the kernels; plain without them.")
    licence: str = Field(description="The licence of the model's weights, as its bundle states it.")


class PairAsModel(BaseModel):
    """A language pair as OpenAI's API lists models."""

    id: str = Field(description="The value of model for /v1/chat/completions, such as en-de.")
    object: Literal["model"]
    created: int
    owned_by: str


class ModelsResponse(BaseModel):
    """The served models, the highest version of each first, and their language pairs as OpenAI's API lists models."""

    models: list[Model]
    object: Literal["list"]
    data: list[PairAsModel]


class ErrorDetail(BaseModel):
    """What is wrong, where, what is allowed and what to do."""

    code: str = Field(description="A name of google.rpc.Code, such as INVALID_ARGUMENT.")
    reason: str = Field(description="A more specific reason, such as too_long.")
    message: str = Field(description="The whole error in one line.")
    field: str | None = Field(None, description="The field of the request, such as texts[3].")
    allowed: str | None = Field(None, description="The values that the field may have.")
    advice: str | None = Field(None, description="What to do.")
    request_id: str | None = Field(None, description="The id of the call in the server's log.")


class Error(BaseModel):
    """The body of every answer that is no success."""

    error: ErrorDetail
