"""The description of our own API as OpenAPI 3.1, made from the types that validate its bodies."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

import service
from service.calls.pipeline import REQUEST_ID_KEY
from service.domain.call import TIMING_KEY
from service.faces.dragoman import answers
from service.faces.dragoman import http_messages as messages
from service.faces.dragoman.http_files import FileRequest
from service.faces.http.answers import EVENTS, JSON
from service.faces.http.multipart import MULTIPART

_FILE = "application/octet-stream"
_HTML = "text/html"
_REF = "#/components/schemas/{model}"

Document = dict[str, Any]

_ID, _TIMING, _RETRY, _SCHEME = REQUEST_ID_KEY, TIMING_KEY, "retry-after", "www-authenticate"
_NAME, _NOTES = "content-disposition", "x-document-notes"
_HEADERS: Mapping[str, str] = {
    _ID: "The id of the call: the request's x-request-id, or a new one.",
    _TIMING: "Milliseconds spent waiting for a slot, encoding, decoding, and in total.",
    _RETRY: "Seconds to wait before trying again.",
    _SCHEME: "How to send an API key.",
    _NAME: "The name of the translated file.",
    _NOTES: "What was left untranslated, and why.",
}
_ERRORS: Mapping[str, str] = {
    "400": "The request is invalid; trying again doesn't help.",
    "401": "The API key is missing, unknown or expired.",
    "404": "There is no such model, version, glossary or language pair.",
    "408": "The body arrived too slowly.",
    "413": "The body is too large.",
    "415": "The body is compressed.",
    "429": "A quota, the queue or the memory for calls is exhausted; Retry-After says when to try again.",
    "431": "The headers are too large.",
    "500": "An error of the server; look up the call's id in its log.",
    "503": "The server is starting, stopping or recovering; try again.",
    "504": "The deadline passed.",
}
_ALWAYS = ("431", "500")
_READING = ("401", "429", "503", *_ALWAYS)
_WORKING = tuple(_ERRORS)


@dataclass(frozen=True, slots=True)
class _Operation:
    """A call. `kind` is the type of the answer, `None` where it is no JSON; `headers` are those of a success."""

    method: str
    path: str
    summary: str
    body: type[BaseModel] | None
    kind: type[BaseModel] | None
    media: str = JSON
    headers: Sequence[str] = (_ID,)
    errors: Sequence[str] = _READING
    needs_key: bool = True

    def described(self) -> Document:
        responses = {"200": _response("Success.", self.media, _schema(self.kind, self.media), self.headers)}
        for status in sorted(self.errors):
            more = {"401": [_SCHEME], "429": [_RETRY]}.get(status, [])
            responses[status] = _response(_ERRORS[status], JSON, _schema(answers.Error), (_ID, *more))
        described: Document = {
            "operationId": self.path.removeprefix("/v1/").removesuffix(".json").replace("/", "_"),
            "summary": self.summary,
            "responses": responses,
        }
        if not self.needs_key:
            described["security"] = []
        if self.body is not None:
            sent = MULTIPART if self.body is FileRequest else JSON
            described["requestBody"] = {"required": True, "content": {sent: {"schema": _schema(self.body)}}}
        return described


def _operations() -> Iterator[_Operation]:
    body, timed = messages.TranslateRequest, (_ID, _TIMING)
    yield _Operation(
        "post", "/v1/translate", "Translate texts.", body, answers.TranslateResponse, JSON, timed, _WORKING
    )
    summary = "Translate texts, sending each translation in parts as it is generated."
    yield _Operation("post", "/v1/translate/stream", summary, body, answers.StreamEvent, media=EVENTS, errors=_WORKING)
    summary = "Translate a document; the answer is the file."
    headers = (_ID, _NAME, _NOTES)
    yield _Operation("post", "/v1/files", summary, FileRequest, None, _FILE, headers, _WORKING)
    summary = "Detect the language of texts."
    detect = messages.DetectRequest
    yield _Operation("post", "/v1/detect", summary, detect, answers.DetectResponse, JSON, timed, _WORKING)
    yield _Operation("get", "/v1/languages", "List the served languages.", None, answers.LanguagesResponse)
    yield _Operation("get", "/v1/models", "List the served models.", None, answers.ModelsResponse)
    summary = "Describe this API, as OpenAPI 3.1."
    yield _Operation("get", "/v1/openapi.json", summary, None, None, errors=_ALWAYS, needs_key=False)
    summary = "Show the documentation of this API."
    yield _Operation("get", "/v1/docs", summary, None, None, _HTML, errors=_ALWAYS, needs_key=False)


def openapi_document(prefix: str = "") -> Document:
    """Return the document; the same for every server of this version but for the `prefix` of its paths."""
    operations = tuple(_operations())
    kinds = {kind for each in operations for kind in (each.body, each.kind) if kind is not None} | {answers.Error}
    ordered = sorted(kinds, key=lambda kind: kind.__name__)
    _, schemas = models_json_schema([(kind, "validation") for kind in ordered], ref_template=_REF)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Dragoman",
            "version": service.__version__,
            "summary": "Translation with trained encoder-decoder Transformers.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": prefix or "/"}],
        "security": [{"bearer": []}, {"header": []}, {}],
        "paths": {each.path: {each.method: each.described()} for each in operations},
        "components": {
            "schemas": schemas["$defs"],
            "headers": {
                name: {"description": description, "schema": {"type": "string"}}
                for name, description in _HEADERS.items()
            },
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer"},
                "header": {"type": "apiKey", "in": "header", "name": "x-api-key"},
            },
        },
    }


def _schema(kind: type[BaseModel] | None, media: str = JSON) -> Document:
    if kind is not None:
        return {"$ref": _REF.format(model=kind.__name__)}
    if media == JSON:
        return {"type": "object"}
    return {"type": "string"} if media == _HTML else {"type": "string", "contentMediaType": media}


def _response(description: str, media: str, schema: Document, headers: Sequence[str]) -> Document:
    return {
        "description": description,
        "headers": {name: {"$ref": f"#/components/headers/{name}"} for name in headers},
        "content": {media: {"schema": schema}},
    }
