"""The description of our own API as OpenAPI 3.1, made from the types that its bodies are checked by."""

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import BaseModel, Field
from pydantic.json_schema import models_json_schema

import service
from service.domain.translation import FinishReason, Flag
from service.faces.http.multipart import MULTIPART
from service.faces.http.v1 import messages
from service.faces.http.v1.files import FileRequest

_FILE = "application/octet-stream"
_BYTES: Mapping[str, str] = {"type": "string", "contentMediaType": _FILE}
_REF = "#/components/schemas/{model}"


class Segment(BaseModel):
    """A part of a text that was translated by itself. Positions are code points, from start to before end."""

    source_start: int
    source_end: int
    target_start: int
    target_end: int
    finish_reason: Literal[tuple(each.value for each in FinishReason)]  # type: ignore[valid-type]
    num_source_tokens: int
    num_output_tokens: int
    flags: list[Literal[tuple(each.value for each in Flag)]]  # type: ignore[valid-type]


class AlignedSpan(BaseModel):
    """A part of a source and the part of its translation that it corresponds to, in code points."""

    source_start: int
    source_end: int
    target_start: int
    target_end: int


class Hypothesis(BaseModel):
    """One candidate translation."""

    text: str
    num_tokens: int
    score: float | None = Field(None, description="With return_scores.")


class Translation(BaseModel):
    """The translation of one text."""

    text: str
    finish_reason: Literal[tuple(each.value for each in FinishReason)] = Field(  # type: ignore[valid-type]
        description="stop, unless a segment was cut off."
    )
    num_source_tokens: int
    detected_language_code: str | None = Field(None, description="Where the source language was left out.")
    hypotheses: list[Hypothesis] | None = Field(None, description="With scores, or more than one.")
    segments: list[Segment] | None = Field(None, description="With return_segments.")
    alignment: list[AlignedSpan] | None = Field(None, description="With return_alignments.")
    flags: list[Literal[tuple(each.value for each in Flag)]] | None = Field(  # type: ignore[valid-type]
        None, description="What to review."
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


class Model(BaseModel):
    """A served model."""

    name: str
    version: str
    language_pairs: list[LanguagePair]
    any_to_any_language_codes: list[str] = Field(description="Each is translated into every other one.")
    max_source_tokens: int
    max_output_tokens: int
    default_options: messages.DecodingOptions
    precision: str
    kernels: str = Field(description="What computes: the instruction set of the kernels, or plain.")


class ModelsResponse(BaseModel):
    """The served models, the highest version of each first."""

    models: list[Model]


class ErrorDetail(BaseModel):
    """What is wrong, where, what is allowed and what to do."""

    code: str = Field(description="A name of google.rpc.Code, such as INVALID_ARGUMENT.")
    reason: str = Field(description="A finer one, such as too_long.")
    message: str = Field(description="All of it in one line.")
    field: str | None = Field(None, description="Of the request, such as texts[3].")
    allowed: str | None = None
    advice: str | None = None
    request_id: str | None = None


class Error(BaseModel):
    """The body of every answer that is no success."""

    error: ErrorDetail


_ERRORS: Mapping[str, str] = {
    "400": "The request is wrong; trying again doesn't help.",
    "401": "The API key is missing, unknown or expired.",
    "404": "There is no such model, version, glossary or pair of languages.",
    "429": "A quota or the queue is exhausted; Retry-After tells when to try again.",
    "503": "The server is starting, stopping or recovering; try again.",
    "504": "The deadline passed.",
}


def openapi_document() -> dict[str, Any]:
    """Return the document; the same for every server of this version."""
    operations: tuple[tuple[str, str, str, type[BaseModel] | None, type[BaseModel] | None], ...] = (
        ("post", "/v1/translate", "Translate texts.", messages.TranslateRequest, TranslateResponse),
        (
            "post",
            "/v1/translate/stream",
            "Translate, and send each translation as it grows.",
            messages.TranslateRequest,
            StreamEvent,
        ),
        ("post", "/v1/files", "Translate a document; the answer is the file.", FileRequest, None),
        ("post", "/v1/detect", "Detect the language of texts.", messages.DetectRequest, DetectResponse),
        ("get", "/v1/languages", "List the languages.", None, LanguagesResponse),
        ("get", "/v1/models", "List the models.", None, ModelsResponse),
    )
    kinds = {kind for *_, body, answer in operations for kind in (body, answer) if kind is not None} | {Error}
    ordered = sorted(kinds, key=lambda kind: kind.__name__)
    _, schemas = models_json_schema([(kind, "validation") for kind in ordered], ref_template=_REF)
    paths: dict[str, Any] = {}
    for method, path, summary, body, answer in operations:
        media = "text/event-stream" if answer is StreamEvent else _FILE if answer is None else "application/json"
        operation: dict[str, Any] = {
            "operationId": path.removeprefix("/v1/").replace("/", "_"),
            "summary": summary,
            "responses": {
                "200": {"description": "Done.", "content": {media: {"schema": _ref(answer) if answer else _BYTES}}},
                **{status: _error(description) for status, description in _ERRORS.items()},
            },
        }
        if body is not None:
            sent = MULTIPART if body is FileRequest else "application/json"
            operation["requestBody"] = {"required": True, "content": {sent: {"schema": _ref(body)}}}
        paths[path] = {method: operation}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Dragoman",
            "version": service.__version__,
            "summary": "Translation with trained encoder-decoder Transformers.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "security": [{"bearer": []}, {"header": []}, {}],
        "paths": paths,
        "components": {
            "schemas": schemas["$defs"],
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer"},
                "header": {"type": "apiKey", "in": "header", "name": "x-api-key"},
            },
        },
    }


def _ref(kind: type[BaseModel]) -> dict[str, str]:
    return {"$ref": _REF.format(model=kind.__name__)}


def _error(description: str) -> dict[str, Any]:
    return {"description": description, "content": {"application/json": {"schema": _ref(Error)}}}
