"""Our own API over HTTP: translate texts, whole or as they grow, and files; detect, languages, models."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from functools import partial

from service.domain.call import CallKind, current_call
from service.domain.translation import Priority, StreamEvent, TranslationRequest
from service.faces.dragoman import http_messages as messages
from service.faces.dragoman.http_files import Files
from service.faces.dragoman.messages import Document, model_documents
from service.faces.dragoman.openapi import openapi_document
from service.faces.dragoman.reference import reference_page
from service.faces.http.answers import EVENTS, STREAM_HEADERS, error_document, event_bytes, failure, in_json
from service.faces.http.application import HttpAnswer, HttpRequest
from service.faces.http.bodies import json_of
from service.faces.http.languages import languages_of
from service.faces.http.routes import HttpStream, Route
from service.faces.http.uploads import MAX_UPLOAD_BYTES
from service.faces.openai.messages import models_document, names_of
from service.jobs.translation import DocumentTranslator
from service.translation.translator import Translator


class V1:
    """Our own API. All methods belong to the event loop's thread."""

    def __init__(
        self, translator: Translator, documents: DocumentTranslator, default_deadline_seconds: float, prefix: str = ""
    ) -> None:
        """Set the deadline of calls without one, but not of documents; `prefix` is before all paths."""
        self._translator = translator
        self._files = Files(documents)
        self._default_deadline_seconds = default_deadline_seconds
        self._prefix = prefix
        self._described: tuple[HttpAnswer, HttpAnswer] | None = None  # for programs and for readers, once asked for

    def routes(self) -> Sequence[Route]:
        route = partial(Route, failure=failure)
        quick = partial(route, queues=False)
        translate = partial(route, kind=CallKind.TRANSLATE, priority=_priority)
        stream = partial(route, kind=CallKind.STREAM, priority=_priority)
        upload = partial(route, kind=CallKind.DOCUMENT, max_body_bytes=MAX_UPLOAD_BYTES)
        return (
            translate("POST", "/v1/translate", "http/v1/translate", self.translate),
            stream("POST", "/v1/translate/stream", "http/v1/translate_stream", self.stream),
            upload("POST", "/v1/files", "http/v1/files", self._files.translate),
            route("POST", "/v1/detect", "http/v1/detect", self.detect),
            quick("GET", "/v1/languages", "http/v1/languages", self.languages),
            quick("GET", "/v1/models", "http/v1/models", self.models),
            quick("GET", "/v1/openapi.json", "http/v1/openapi", self.openapi, needs_key=False),
            quick("GET", "/v1/docs", "http/v1/docs", self.reference, needs_key=False),
        )

    async def translate(self, request: HttpRequest) -> HttpAnswer:
        body = json_of(request, messages.TranslateRequest)
        result = await self._translator.translate(self._request_from(body))
        with_segments = body.return_segments
        num_entries = sum(len(each.segments) * with_segments + len(each.alignment) for each in result.translations)
        return await self._translator.convert(
            lambda: in_json(messages.result_document(result, with_segments=with_segments)), num_entries
        )

    async def stream(self, request: HttpRequest) -> HttpStream:
        body = json_of(request, messages.TranslateRequest)
        translation_request = self._request_from(body)

        async def parts() -> AsyncGenerator[bytes]:
            model = {}
            async with aclosing(self._translator.stream(translation_request)) as events:
                async for event in events:
                    model = {"model": event.model, "model_version": event.model_version}
                    yield event_bytes(_stream_document(event, with_segments=body.return_segments))
            yield event_bytes(model, "done")

        return HttpStream(
            EVENTS, parts(), lambda error, call: event_bytes(error_document(error, call), "error"), STREAM_HEADERS
        )

    async def detect(self, request: HttpRequest) -> HttpAnswer:
        texts = messages.texts_of(json_of(request, messages.DetectRequest))
        current_call().asks_for(texts, translates=False)
        detected = await self._translator.detect(texts, messages.deadline(None, self._default_deadline_seconds))
        return in_json(messages.detections_document(detected))

    async def languages(self, request: HttpRequest) -> HttpAnswer:
        return in_json(
            {
                "languages": [
                    {"language_code": each.code, "name": each.name, "targets": each.targets}
                    for each in languages_of(self._translator.catalogue())
                ]
            }
        )

    async def models(self, request: HttpRequest) -> HttpAnswer:
        """List the served models, and their language pairs as OpenAI lists models."""
        catalogue = self._translator.catalogue()
        openai = models_document(names_of(catalogue))  # under this path OpenAI's clients look for theirs
        return in_json({"models": model_documents(catalogue), **openai})

    async def openapi(self, request: HttpRequest) -> HttpAnswer:
        return (await self._descriptions())[0]

    async def reference(self, request: HttpRequest) -> HttpAnswer:
        return (await self._descriptions())[1]

    async def _descriptions(self) -> tuple[HttpAnswer, HttpAnswer]:
        if self._described is None:  # takes some 30 ms, for which other calls should not wait
            self._described = await asyncio.to_thread(_descriptions, self._prefix)
        return self._described

    def _request_from(self, body: messages.TranslateRequest) -> TranslationRequest:
        texts = messages.texts_of(body)
        current_call().asks_for(texts)
        return messages.request_from(body, texts, self._default_deadline_seconds)


def _descriptions(prefix: str) -> tuple[HttpAnswer, HttpAnswer]:
    document = openapi_document(prefix)
    return in_json(document), reference_page(document)


def _priority(request: HttpRequest) -> Priority:
    return Priority(json_of(request, messages.TranslateRequest).priority)


def _stream_document(event: StreamEvent, *, with_segments: bool) -> Document:
    document: Document = {"text_index": event.text_index, "delta": event.delta}
    if event.translation is not None:
        document["translation"] = messages.translation_document(event.translation, with_segments=with_segments)
    return document
