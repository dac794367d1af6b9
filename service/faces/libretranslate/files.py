"""Documents in LibreTranslate's API: translated by one call, and fetched from the address that it answers."""

import time
from collections.abc import Sequence
from functools import partial
from pathlib import PurePath
from typing import Any

from service.documents import ENDINGS, DocumentOptions
from service.domain.errors import InvalidRequest
from service.domain.translation import TranslationRequest
from service.faces.http.answers import in_json
from service.faces.http.application import HttpAnswer, HttpRequest
from service.faces.http.routes import Route
from service.faces.http.same_site import has_own_host
from service.faces.http.uploads import MAX_UPLOAD_BYTES, file_answer, form_with_file, upload_of
from service.faces.libretranslate import messages
from service.jobs.keeper import DocumentKeeper, not_kept
from service.jobs.translation import DOCUMENT_SECONDS, DocumentTranslator

_NAME = "name"
_API = "libretranslate"


class Files:
    """The calls of documents. All methods belong to the event loop's thread."""

    endings: Sequence[str] = ENDINGS

    def __init__(
        self, documents: DocumentTranslator, kept: DocumentKeeper, *, url: str, prefix: str, own_host: str, scheme: str
    ) -> None:
        """Tell callers addresses that begin with `url`. Without one they begin with `scheme`, unless a proxy says
        otherwise, and `Host`, if that is an address, localhost or `own_host`; else they are paths. `prefix` follows."""
        self._documents = documents
        self._kept = kept
        self._url = url.rstrip("/").removesuffix(prefix)
        self._prefix = prefix
        self._own_host = own_host
        self._scheme = scheme

    def routes(self, keyed: Any, free: Any) -> Sequence[Route]:
        """Return the routes; `keyed` makes one that needs a key and `free` one that needs none."""
        upload = partial(keyed, max_body_bytes=MAX_UPLOAD_BYTES)
        return (
            upload("POST", "/translate_file", "http/libretranslate/translate_file", self.translate_file),
            free("GET", f"/download_file/{{{_NAME}}}", "http/libretranslate/download_file", self.download_file),
        )

    async def translate_file(self, request: HttpRequest) -> HttpAnswer:
        """Translate a document, and tell where it is."""
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
            await self._kept.done(kept, await self._documents.translate(upload, wanted))
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
        """Return how the caller has reached this port; nothing where that is only what somebody claims in `Host`."""
        if self._url or not has_own_host(request.headers, self._own_host):
            return self._url
        forwarded = request.headers.get("x-forwarded-proto", "")
        scheme = forwarded if forwarded in ("http", "https") else self._scheme
        return f"{scheme}://{request.headers.get('host', '')}"
