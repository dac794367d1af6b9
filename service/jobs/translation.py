"""Translation of whole documents: their texts in calls of bounded size, as the command line makes them."""

import asyncio
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePath
from typing import Any

from service.bundle.fields import MAX_NAME_BYTES
from service.calls.open_calls import Hold
from service.calls.turns import DocumentTurns, current_caller
from service.documents import FORMATS
from service.documents.child import Chunk, Head
from service.documents.report import Report, doubt_about
from service.domain.call import current_call
from service.domain.errors import InvalidRequest, Overloaded, Path, QuotaExceeded, ServiceError
from service.domain.translation import MimeType, Translation, TranslationRequest
from service.jobs.reading import (
    FILE,
    DocumentReaders,
    Upload,
    check_ending,
    chunk_of,
    place_of,
    translated_chunk,
)
from service.process.event_loop import all_of
from service.text.languages import canonical
from service.translation.translator import Translator

DOCUMENT_SECONDS = 600.0
"""The time for a document whose caller sets no deadline."""


@dataclass(frozen=True, slots=True)
class TranslatedDocument:
    """A document with its translations; `num_characters` are those of its texts, `report` is `Report.to_json`."""

    name: str
    content_type: str
    data: bytes
    notes: Sequence[str]
    num_characters: int
    report: dict[str, Any] = field(default_factory=dict)


class DocumentTranslator:
    """Translates documents. All methods belong to the event loop's thread."""

    def __init__(self, translator: Translator, readers: DocumentReaders, chunks_at_once: int = 4) -> None:
        """Translate `chunks_at_once` of a document."""
        self._translator = translator
        self._readers = readers
        self._chunks_at_once = chunks_at_once
        # A caller's further documents wait, and so do those beyond what the memory is for, as many again.
        self._turns = DocumentTurns(most_at_once=32, most_of_one=2, most_waiting=32)
        self._pace = asyncio.Lock()  # one chunk of all documents at each turn of the event loop

    async def translate(self, upload: Upload, request: TranslationRequest, hold: Hold | None) -> TranslatedDocument:
        """Translate a document, which has a deadline; a language that is left out is detected from its beginning.

        `hold` has the upload's bytes, and counts those of the texts, often far more. A document that fails gives back
        all of them at once, so that of several that find no room some go on.
        """
        self._translator.check_loaded()
        deadline_seconds = request.deadline_seconds
        assert deadline_seconds is not None, "a document has a deadline"
        check_ending(upload.name)
        assert hold is not None, "a call that sends a document has its bytes counted"
        num_bytes = hold.num_bytes
        try:
            async with self._turns.turn(current_caller(), len(upload.data), deadline_seconds):
                document = await self._translated(upload, request, deadline_seconds, hold)
        except BaseException:
            hold.release()
            raise
        hold.shrink(hold.num_bytes - num_bytes)
        return document

    async def _translated(
        self, upload: Upload, request: TranslationRequest, deadline_seconds: float, hold: Hold
    ) -> TranslatedDocument:
        head, chunks = await self._readers.read(upload, deadline_seconds, hold)
        current = current_call()
        current.num_texts, current.num_characters = head["num_texts"], head["num_characters"]
        request = replace(await self._with_source(head, request), keeps_other_languages=True)
        report = Report(head["notes"])
        translations = await self._translations(chunks, request, report, deadline_seconds, hold)
        data = await self._readers.write(upload, _handed_over(translations, hold), deadline_seconds, hold)
        ending = PurePath(upload.name).suffix.lower()
        return TranslatedDocument(
            _translated_name(upload.name, request.target_language_code),
            FORMATS[ending].media_type,
            data,
            report.notes,
            head["num_characters"],
            report.to_json(),
        )

    async def _with_source(self, head: Head, request: TranslationRequest) -> TranslationRequest:
        if request.source_language_code or not head["num_texts"]:
            return request
        if head["language"]:
            return replace(request, source_language_code=head["language"])
        sampled = replace(request, texts=(head["sample"],), mime_type=MimeType(head["sample_type"]))
        try:
            return replace(request, source_language_code=await self._translator.source_of(sampled))
        except InvalidRequest as error:
            error.path = Path(FILE) if error.path[:1] == ("texts",) else error.path
            raise

    async def _translations(
        self, chunks: list[bytes], request: TranslationRequest, report: Report, deadline_seconds: float, hold: Hold
    ) -> list[bytes]:
        """Replace chunks by their translations, so that only one of both is kept, and return them."""
        numbers = iter(range(len(chunks)))

        async def work() -> None:
            for number in numbers:
                chunk = chunk_of(chunks[number])
                found = await self._chunk(chunk, request, deadline_seconds)
                doubts = {index: doubt for index, each in enumerate(found) if (doubt := doubt_about(each))}
                for index, place in enumerate(chunk["places"]):
                    report.add(number, place, doubts.get(index))
                hold.shrink(len(chunks[number]))
                chunks[number] = translated_chunk([each.text for each in found], doubts)
                hold.grow(len(chunks[number]))
                async with self._pace:  # cached texts wait for nothing, so others would wait for all of them
                    await asyncio.sleep(0)

        await all_of(work() for _ in range(self._chunks_at_once))
        return chunks

    async def _chunk(self, chunk: Chunk, request: TranslationRequest, deadline_seconds: float) -> Sequence[Translation]:
        """Translate a chunk; while the server is overloaded, wait as long as the deadline allows."""
        part = replace(request, texts=tuple(chunk["texts"]), mime_type=MimeType(chunk["mime_type"]))
        while True:
            try:
                result = await self._translator.translate(part)
            except QuotaExceeded:
                raise
            except Overloaded as error:
                if time.monotonic() + error.retry_after_seconds >= deadline_seconds:
                    raise
                await asyncio.sleep(error.retry_after_seconds)
            except InvalidRequest as error:
                match error.path:
                    case ("texts", int(index)):
                        error.path = place_of(chunk["places"][index])
                raise
            else:
                return result.translations


def _handed_over(frames: list[bytes], hold: Hold) -> Iterator[bytes]:
    """Yield frames, and drop each once it has been sent."""
    for number, frame in enumerate(frames):
        yield frame
        frames[number] = b""
        hold.shrink(len(frame))


def is_of_document(error: ServiceError) -> bool:
    """Return whether an error is about the document itself, and not about how or when it was to be translated."""
    return isinstance(error, InvalidRequest) and bool(error.path) and str(error.path[0]).split(" ")[0] == FILE


def _translated_name(name: str, target: str) -> str:
    path = PurePath(PurePath(name.replace("\\", "/")).name)
    stem = "".join(character for character in path.stem if character.isprintable())
    ending = f".{canonical(target)}{path.suffix.lower()}"
    return f"{stem[: MAX_NAME_BYTES - len(ending)]}{ending}"
