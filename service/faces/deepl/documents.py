"""Documents in DeepL's API: uploaded, polled until translated, and fetched once.

Source: https://developers.deepl.com/api-reference/document.
"""

import asyncio
import secrets
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import PurePath
from typing import Literal

from pydantic import BaseModel

from service.calls.open_calls import Hold
from service.documents import DocumentOptions
from service.domain.call import CallKind, current_call
from service.domain.errors import InvalidRequest, NotFound, Path, ServiceError, Unavailable
from service.domain.translation import TranslationRequest
from service.faces.deepl.failures import spelled
from service.faces.deepl.glossaries import found_in
from service.faces.deepl.messages import Document, NamesGlossary, check_formality, glossary_of, parameters_in
from service.faces.http.answers import in_json
from service.faces.http.application import HttpAnswer, HttpRequest
from service.faces.http.bounded import Name
from service.faces.http.routes import Route
from service.faces.http.uploads import MAX_UPLOAD_BYTES, file_answer, form_with_file, upload_of
from service.jobs.background import BackgroundWork
from service.jobs.keeper import DocumentKeeper, KeptDocument
from service.jobs.reading import Upload, check_ending
from service.jobs.translation import DOCUMENT_SECONDS, DocumentTranslator, is_of_document
from service.text.glossary import Glossary

# An upload is answered when its translation is done, but not later: DeepL's client gives up after 10 s, and asks every
# 5 s how far a document is that was not done at once. What fails within this time for another reason than the document
# is the upload's error: clients try an upload again that the server was too busy for.
_PATIENCE_SECONDS = 2.0
_ID = "document_id"
_API = "deepl"


class UploadParameters(NamesGlossary):
    """Parameters of a document's translation. Unknown ones are ignored, as by DeepL."""

    target_lang: Name
    source_lang: Name | None = None
    filename: Name | None = None
    formality: Literal["default", "more", "less", "prefer_more", "prefer_less"] | None = None
    output_format: Name | None = None


class HandleParameters(BaseModel):
    """The answer to an upload."""

    document_key: Name


class Documents:
    """The calls of documents. All methods belong to the event loop's thread."""

    def __init__(
        self,
        documents: DocumentTranslator,
        kept: DocumentKeeper,
        background: BackgroundWork,
        glossaries: Callable[[], Iterable[Glossary]],
    ) -> None:
        self._documents = documents
        self._kept = kept
        self._background = background
        self._glossaries = glossaries

    def routes(self, route: Callable[..., Route]) -> Sequence[Route]:
        upload = partial(route, kind=CallKind.DOCUMENT, max_body_bytes=MAX_UPLOAD_BYTES)
        handle = partial(route, queues=False)
        return (
            upload("POST", "/v2/document", "http/deepl/document", self.upload),
            handle("POST", f"/v2/document/{{{_ID}}}", "http/deepl/document_status", self.status),
            handle("POST", f"/v2/document/{{{_ID}}}/result", "http/deepl/document_result", self.result),
        )

    async def upload(self, request: HttpRequest) -> HttpAnswer:
        file, _ = form_with_file(request)
        parameters = parameters_in(request, UploadParameters)
        check_formality(parameters.formality)
        options = DocumentOptions(target=parameters.target_lang, source=parameters.source_lang or "")
        upload = upload_of(file, parameters.filename or "", options)
        check_ending(upload.name)
        _check_output(upload.name, parameters.output_format)
        glossary = glossary_of(parameters)
        if glossary and not parameters.source_lang:
            raise InvalidRequest("Use of a glossary requires the source_lang parameter to be specified")
        name = found_in(self._glossaries(), glossary).name if glossary else ""
        wanted = TranslationRequest(
            texts=(),
            source_language_code=parameters.source_lang or "",
            target_language_code=parameters.target_lang,
            glossary=name,
            deadline_seconds=time.monotonic() + DOCUMENT_SECONDS,
        )
        kept = await self._kept.add(_API, current_call().key_name, len(upload.data), DOCUMENT_SECONDS)
        hold = request.hold and request.hold.hand_over(len(upload.data))  # this call may end before
        task = self._background.start(
            "http/deepl/document_translation",
            tuple(request.headers.items()),
            partial(self._translate, kept, upload, wanted, hold),
            partial(self._failed, kept),
        )
        if hold is not None:
            task.add_done_callback(lambda _: hold.release())
        await asyncio.wait({task}, timeout=_PATIENCE_SECONDS)
        if kept.failure is not None and not is_of_document(kept.failure):
            await self._kept.forget(kept)
            raise kept.failure
        return in_json({_ID: kept.id, "document_key": kept.key})

    async def status(self, request: HttpRequest) -> HttpAnswer:
        return in_json(_status_document(await self._find(request)))

    async def result(self, request: HttpRequest) -> HttpAnswer:
        """Return a translated document, once."""
        kept = await self._find(request)
        if kept.failure is not None:
            raise kept.failure
        if kept.num_characters is None:
            raise Unavailable("the document is still being translated", advice="ask for its status until it is done")
        return file_answer(await self._kept.take(kept))

    async def _translate(
        self, kept: KeptDocument, upload: Upload, wanted: TranslationRequest, hold: Hold | None
    ) -> None:
        await self._kept.done(kept, await self._documents.translate(upload, wanted, hold))

    async def _failed(self, kept: KeptDocument, failure: ServiceError) -> None:
        failure.spelling = spelled
        await self._kept.failed(kept, failure)

    async def _find(self, request: HttpRequest) -> KeptDocument:
        parameters = parameters_in(request, HandleParameters)
        kept = await self._kept.find(_API, request.parts[_ID], current_call().key_name)
        if not secrets.compare_digest(kept.key.encode(), parameters.document_key.encode("utf-8", "replace")):
            raise NotFound(
                "the key is not that of this document", "document", advice="send the key that its upload returned"
            )
        return kept


def _check_output(name: str, output_format: str | None) -> None:
    ending = PurePath(name).suffix.lower()
    if output_format and f".{output_format.lower().lstrip('.')}" != ending:
        raise InvalidRequest(
            "{path} is {value}", Path("output_format"), value=output_format, allowed=ending.lstrip(".")
        )


def _status_document(kept: KeptDocument) -> Document:
    if kept.failure is not None:
        kept.failure.spelling = spelled
        return {_ID: kept.id, "status": "error", "error_message": str(kept.failure)}
    if kept.num_characters is None:
        return {_ID: kept.id, "status": "translating", "seconds_remaining": 1}
    return {_ID: kept.id, "status": "done", "billed_characters": kept.num_characters}
