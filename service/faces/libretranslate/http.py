"""LibreTranslate's API: translate texts and files, detect languages, list them, and what its pages ask for.

Suggestions are switched off, and answered as LibreTranslate answers them then.
"""

import time
from collections.abc import Sequence
from functools import partial
from http import HTTPStatus
from pathlib import PurePath
from typing import Any

from service.documents import ENDINGS, DocumentOptions
from service.domain.call import Call, CallKind, current_call
from service.domain.errors import InvalidRequest, NotFound, ServiceError, Unauthenticated, Unimplemented
from service.domain.translation import TranslationRequest
from service.faces.http.answers import in_json, status_of_error
from service.faces.http.application import HttpAnswer, HttpRequest
from service.faces.http.languages import languages_of
from service.faces.http.routes import Route
from service.faces.http.same_site import has_own_host
from service.faces.http.uploads import MAX_UPLOAD_BYTES, file_answer, form_with_file, upload_of
from service.faces.libretranslate import messages
from service.jobs.keeper import DocumentKeeper, not_kept
from service.jobs.translation import DOCUMENT_SECONDS, DocumentTranslator
from service.translation.translator import Translator

_NAME = "name"
_API = "libretranslate"


class Files:
    """The calls of documents. All methods belong to the event loop's thread."""

    def __init__(
        self, documents: DocumentTranslator, kept: DocumentKeeper, *, url: str, prefix: str, own_host: str, scheme: str
    ) -> None:
        """Begin callers' addresses with `url`, else with `scheme` and a trusted `Host`, else with a path; then
        `prefix`.

        A trusted `Host` is an address, localhost or `own_host`; a proxy may state another scheme.
        """
        self._documents = documents
        self._kept = kept
        self._url = url.rstrip("/").removesuffix(prefix)
        self._prefix = prefix
        self._own_host = own_host
        self._scheme = scheme

    def routes(self, keyed: Any, free: Any) -> Sequence[Route]:
        upload = partial(keyed, kind=CallKind.DOCUMENT, max_body_bytes=MAX_UPLOAD_BYTES)
        return (
            upload("POST", "/translate_file", "http/libretranslate/translate_file", self.translate_file),
            free("GET", f"/download_file/{{{_NAME}}}", "http/libretranslate/download_file", self.download_file),
        )

    async def translate_file(self, request: HttpRequest) -> HttpAnswer:
        file, fields = form_with_file(request)
        values = {part.name: part.text for part in reversed(fields)}
        for name in ("source", "target"):
            if not values.get(name):
                raise InvalidRequest(f"Invalid request: missing {name} parameter", name)
        wanted = TranslationRequest(
            texts=(),
            source_language_code=messages.source_from(values["source"]),
            target_language_code=messages.code_from(values["target"]),
            deadline_seconds=time.monotonic() + DOCUMENT_SECONDS,
        )
        options = DocumentOptions(target=wanted.target_language_code, source=wanted.source_language_code)
        upload = upload_of(file, options=options)
        kept = await self._kept.add(_API, "", len(upload.data), DOCUMENT_SECONDS)
        try:
            await self._kept.done(kept, await self._documents.translate(upload, wanted, request.hold))
        except BaseException:
            await self._kept.forget(kept)
            raise
        name = f"{kept.id.lower()}.{values['target']}{PurePath(upload.name).suffix.lower()}"
        return in_json({"translatedFileUrl": f"{self._origin(request)}{self._prefix}/download_file/{name}"})

    async def download_file(self, request: HttpRequest) -> HttpAnswer:
        kept = await self._kept.find(_API, request.parts[_NAME].partition(".")[0].upper())
        if kept.num_characters is None:  # no address of ours leads there
            raise not_kept(kept.id)
        return file_answer(await self._kept.fetch(kept))

    def _origin(self, request: HttpRequest) -> str:
        """Return the address by which the caller reached this port; nothing if `Host` only claims it."""
        if self._url or not has_own_host(request.headers, self._own_host):
            return self._url
        forwarded = request.headers.get("x-forwarded-proto", "")
        scheme = forwarded if forwarded in ("http", "https") else self._scheme
        return f"{scheme}://{request.headers.get('host', '')}"


class LibreTranslate:
    """LibreTranslate's API. All methods belong to the event loop's thread."""

    def __init__(
        self,
        translator: Translator,
        default_deadline_seconds: float,
        files: Files,
        *,
        asks_for_keys: bool = False,
    ) -> None:
        """Give calls `default_deadline_seconds`; `asks_for_keys` tells pages whether callers need a key."""
        self._translator = translator
        self._default_deadline_seconds = default_deadline_seconds
        self._files = files
        self._asks_for_keys = asks_for_keys

    def routes(self) -> Sequence[Route]:
        """Return the routes of this API; the same ones as LibreTranslate's need no key."""
        route = partial(Route, failure=failure)
        keyed = partial(route, key_in=messages.KEY.find)
        free = partial(route, needs_key=False, queues=False)
        return (
            keyed("POST", "/translate", "http/libretranslate/translate", self.translate, kind=CallKind.TRANSLATE),
            keyed("POST", "/detect", "http/libretranslate/detect", self.detect),
            *self._files.routes(keyed, free),
            free("POST", "/suggest", "http/libretranslate/suggest", self.suggest),
            free("GET", "/languages", "http/libretranslate/languages", self.languages),
            free("POST", "/languages", "http/libretranslate/languages", self.languages),
            free("GET", "/frontend/settings", "http/libretranslate/settings", self.settings),
            free("GET", "/health", "http/libretranslate/health", self.health),
        )

    async def translate(self, request: HttpRequest) -> HttpAnswer:
        parameters = messages.parameters_of(messages.body_of(request, messages.TranslateBody), self._deadline())
        texts, mime_type = parameters.request.texts, parameters.request.mime_type
        current_call().asks_for(texts)
        result = await self._translator.translate(parameters.request)
        detected = await self._translator.detect(texts, self._deadline(), mime_type) if parameters.is_detected else ()
        return in_json(messages.answer_document(parameters, result.translations, detected))

    async def detect(self, request: HttpRequest) -> HttpAnswer:
        """Detect the language of a text; several texts are taken as one."""
        texts, _ = messages.texts_of(messages.body_of(request, messages.DetectBody).q)
        current_call().asks_for(texts, translates=False)
        [detected] = await self._translator.detect(["\n".join(texts)], self._deadline())
        return in_json(messages.detections_document(detected, self._translator.catalogue().languages()))

    async def suggest(self, request: HttpRequest) -> HttpAnswer:
        raise Unimplemented("suggestions are disabled on this server", advice="use a glossary for terms")

    async def languages(self, request: HttpRequest) -> HttpAnswer:
        return in_json(messages.languages_document(languages_of(self._translator.catalogue())))

    async def settings(self, request: HttpRequest) -> HttpAnswer:
        languages = languages_of(self._translator.catalogue())
        document = messages.settings_document(
            languages, self._translator.limits.max_characters, ENDINGS, asks_for_keys=self._asks_for_keys
        )
        return in_json(document)

    async def health(self, request: HttpRequest) -> HttpAnswer:
        """Tell that models are loaded, unless they are not."""
        self._translator.models()
        return in_json({"status": "ok"})

    def _deadline(self) -> float:
        return time.monotonic() + self._default_deadline_seconds


def failure(error: ServiceError, call: Call) -> HttpAnswer:
    messages.spell_fields(error, is_single=call.num_texts == 1)
    status = status_of_error(error)
    if isinstance(error, NotFound) and error.resource_type != "document":
        status = HTTPStatus.BAD_REQUEST  # a language that is not served
    elif isinstance(error, Unauthenticated | Unimplemented):
        status = HTTPStatus.FORBIDDEN
    prefix = "Slowdown: " if status is HTTPStatus.TOO_MANY_REQUESTS else ""
    return in_json({"error": f"{prefix}{error}"}, status=status)
