"""Our own API over HTTP: translate texts, whole or as they grow, and files; detect, languages, models."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from functools import partial
from http import HTTPStatus

from service.calls.failures import code_of
from service.domain.call import Call, current_call
from service.domain.errors import ServiceError
from service.domain.translation import Priority, StreamEvent, TranslationRequest
from service.faces.http.answers import in_json, json_bytes, status_of_error
from service.faces.http.application import HttpAnswer, HttpRequest
from service.faces.http.bodies import json_of
from service.faces.http.documents.translation import DocumentTranslator
from service.faces.http.documents.uploads import MAX_UPLOAD_BYTES
from service.faces.http.languages import languages_of
from service.faces.http.openai.messages import models_document
from service.faces.http.openai.pairs import names_of
from service.faces.http.routes import HttpStream, Route
from service.faces.http.v1 import messages
from service.faces.http.v1.files import Files
from service.faces.http.v1.openapi import openapi_document
from service.faces.http.v1.reference import reference_page
from service.translation.translator import Translator

EVENTS = "text/event-stream"

STREAM_HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}  # a proxy must pass each event on at once


class V1:
    """Our own API. All methods belong to the event loop's thread."""

    def __init__(
        self, translator: Translator, documents: DocumentTranslator, default_deadline_seconds: float, prefix: str = ""
    ) -> None:
        """Give calls without a deadline `default_deadline_seconds`, but those of documents the time for these; `prefix`
        is before all paths."""
        self._translator = translator
        self._files = Files(documents)
        self._default_deadline_seconds = default_deadline_seconds
        document = openapi_document(prefix)
        self._openapi = in_json(document)
        self._reference = reference_page(document)

    def routes(self) -> Sequence[Route]:
        """Return the routes of this API."""
        route = partial(Route, failure=failure)
        quick = partial(route, queues=False)
        return (
            route("POST", "/v1/translate", "http/v1/translate", self.translate, priority=_priority),
            route("POST", "/v1/translate/stream", "http/v1/translate_stream", self.stream, priority=_priority),
            route("POST", "/v1/files", "http/v1/files", self._files.translate, max_body_bytes=MAX_UPLOAD_BYTES),
            route("POST", "/v1/detect", "http/v1/detect", self.detect),
            quick("GET", "/v1/languages", "http/v1/languages", self.languages),
            quick("GET", "/v1/models", "http/v1/models", self.models),
            quick("GET", "/v1/openapi.json", "http/v1/openapi", self.openapi, needs_key=False),
            quick("GET", "/v1/docs", "http/v1/docs", self.reference, needs_key=False),
        )

    async def translate(self, request: HttpRequest) -> HttpAnswer:
        """Translate texts."""
        body = json_of(request, messages.TranslateRequest)
        result = await self._translator.translate(self._asked(body))
        with_segments = body.return_segments
        num_entries = sum(len(each.segments) * with_segments + len(each.alignment) for each in result.translations)
        return await self._translator.convert(
            lambda: in_json(messages.result_document(result, with_segments=with_segments)), num_entries
        )

    async def stream(self, request: HttpRequest) -> HttpStream:
        """Translate texts, and send the translations as they grow, as server-sent events."""
        body = json_of(request, messages.TranslateRequest)
        asked = self._asked(body)

        async def parts() -> AsyncGenerator[bytes]:
            model = {}
            async with aclosing(self._translator.stream(asked)) as events:
                async for event in events:
                    model = {"model": event.model, "model_version": event.model_version}
                    yield _event("", _stream_document(event, with_segments=body.return_segments))
            yield _event("done", model)

        return HttpStream(
            EVENTS, parts(), lambda error, call: _event("error", error_document(error, call)), STREAM_HEADERS
        )

    async def detect(self, request: HttpRequest) -> HttpAnswer:
        """Detect the language of each text."""
        texts = messages.texts_of(json_of(request, messages.DetectRequest))
        current_call().asks_for(texts)
        detected = await self._translator.detect(texts, messages.deadline(None, self._default_deadline_seconds))
        return in_json(messages.detections_document(detected))

    async def languages(self, request: HttpRequest) -> HttpAnswer:
        """List the languages, and into which of them each is translated."""
        return in_json(
            {
                "languages": [
                    {"language_code": each.code, "name": each.name, "targets": each.targets}
                    for each in languages_of(self._translator.models())
                ]
            }
        )

    async def models(self, request: HttpRequest) -> HttpAnswer:
        """List the served models, and their language pairs as OpenAI lists models."""
        models = self._translator.models()
        openai = models_document(names_of(models))  # under this path OpenAI's clients look for theirs
        return in_json({"models": [messages.model_document(model) for model in models], **openai})

    async def openapi(self, request: HttpRequest) -> HttpAnswer:
        """Describe this API, as OpenAPI 3.1."""
        return self._openapi

    async def reference(self, request: HttpRequest) -> HttpAnswer:
        """Describe this API to a reader."""
        return self._reference

    def _asked(self, body: messages.TranslateRequest) -> TranslationRequest:
        texts = messages.texts_of(body)
        current_call().asks_for(texts)
        return messages.request_from(body, texts, self._default_deadline_seconds)


def _priority(request: HttpRequest) -> Priority:
    return Priority(json_of(request, messages.TranslateRequest).priority)


def failure(error: ServiceError, call: Call) -> HttpAnswer:
    """Return an error: its code, the field, what is allowed, and a sentence that says it all."""
    status = status_of_error(error)
    headers = {"WWW-Authenticate": "Bearer"} if status is HTTPStatus.UNAUTHORIZED else {}
    return in_json(error_document(error, call), headers, status)


def error_document(error: ServiceError, call: Call) -> messages.Document:
    """Return an error as data."""
    about = {"code": code_of(error), "reason": error.reason, "message": str(error)}
    for name, text in (("field", error.field), ("allowed", error.allowed), ("advice", error.advice)):
        if text:
            about[name] = text
    return {"error": {**about, "request_id": call.request_id}}


def _failed(error: ServiceError, call: Call) -> bytes:
    return _event("error", error_document(error, call))


def _event(name: str, document: messages.Document) -> bytes:
    head = f"event: {name}\n".encode() if name else b""
    return b"%sdata: %s\n\n" % (head, json_bytes(document))


def _stream_document(event: StreamEvent, *, with_segments: bool) -> messages.Document:
    document: messages.Document = {"text_index": event.text_index, "delta": event.delta}
    if event.translation is not None:
        document["translation"] = messages.translation_document(event.translation, with_segments=with_segments)
    return document
