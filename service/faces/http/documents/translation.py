"""Translation of whole documents: their texts in calls of bounded size, as the command line makes them."""

import asyncio
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePath
from types import MappingProxyType

from service.documents import DocumentText
from service.domain.call import current_call
from service.domain.errors import InvalidRequest, Overloaded, Path, QuotaExceeded, ServiceError, TooLong
from service.domain.translation import MimeType, TranslationRequest
from service.faces.http.documents.reading import FILE, DocumentReaders, Upload
from service.text.languages import canonical
from service.translation.translator import Translator

DOCUMENT_SECONDS = 600.0
"""The time for a document whose caller sets no deadline."""

# As `service.cli.pipeline` has them for the same work.
_MAX_CHUNK_TEXTS = 32
_MAX_CHUNK_CHARACTERS = 65_536
_AT_ONCE = 4

_SAMPLE_CHARACTERS = 4096  # from the beginning of a document, to detect its language
_MAX_NAME = 200  # characters

CONTENT_TYPES: Mapping[str, str] = MappingProxyType(
    {
        ".csv": "text/csv; charset=utf-8",
        ".docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
        ".htm": "text/html; charset=utf-8",
        ".html": "text/html; charset=utf-8",
        ".markdown": "text/markdown; charset=utf-8",
        ".md": "text/markdown; charset=utf-8",
        ".po": "text/x-gettext-translation",
        ".srt": "application/x-subrip",
        ".tsv": "text/tab-separated-values; charset=utf-8",
        ".txt": "text/plain; charset=utf-8",
        ".vtt": "text/vtt; charset=utf-8",
        ".xlf": "application/xliff+xml",
        ".xliff": "application/xliff+xml",
    }
)
"""The media type of each ending that `service.documents` knows."""


@dataclass(frozen=True, slots=True)
class TranslatedDocument:
    """A document with its translations; `num_characters` are those of its texts."""

    name: str
    content_type: str
    data: bytes
    notes: Sequence[str]
    num_characters: int


class DocumentTranslator:
    """Translates documents. All methods belong to the event loop's thread."""

    def __init__(self, translator: Translator, readers: DocumentReaders) -> None:
        self._translator = translator
        self._readers = readers

    async def translate(self, upload: Upload, request: TranslationRequest) -> TranslatedDocument:
        """Translate a document as `request` asks, which has a deadline; texts and their types are the document's.

        A language that is left out is detected once, from the beginning of the document.

        Raises:
            ServiceError: as for `Translator.translate` and `DocumentReaders.open`; an invalid text is named by its
                place.
        """
        self._translator.models()
        deadline_seconds = request.deadline_seconds
        assert deadline_seconds is not None, "a document has a deadline"
        async with self._readers.open(upload, deadline_seconds) as document:
            current_call().asks_for([each.text for each in document.texts])
            self._check_sizes(document.texts)
            request = await self._with_source(document.texts, request)
            data = await document.written(await self._translations(document.texts, request, deadline_seconds))
        ending = PurePath(upload.name).suffix.lower()
        return TranslatedDocument(
            _translated_name(upload.name, request.target_language_code),
            CONTENT_TYPES[ending],
            data,
            document.notes,
            sum(len(each.text) for each in document.texts),
        )

    def _check_sizes(self, texts: Sequence[DocumentText]) -> None:
        most = self._translator.limits.max_characters
        for text in texts:
            if len(text.text) > most:
                raise TooLong(
                    "{path} has {number} characters without a break",
                    _place(text),
                    number=len(text.text),
                    allowed=f"{most}",
                    advice="split it",
                )

    async def _with_source(self, texts: Sequence[DocumentText], request: TranslationRequest) -> TranslationRequest:
        if request.source_language_code or not texts:
            return request
        kind = texts[0].mime_type
        sample = "\n".join(each.text for each in texts[:_SAMPLE_CHARACTERS] if each.mime_type is kind)
        sampled = replace(request, texts=(sample[:_SAMPLE_CHARACTERS],), mime_type=MimeType(kind.value))
        try:
            return replace(request, source_language_code=await self._translator.source_of(sampled))
        except InvalidRequest as error:
            error.path = Path(FILE) if error.path[:1] == ("texts",) else error.path
            raise

    async def _translations(
        self, texts: Sequence[DocumentText], request: TranslationRequest, deadline_seconds: float
    ) -> list[str]:
        found = [""] * len(texts)
        chunks = _chunks(texts, min(_MAX_CHUNK_CHARACTERS, self._translator.limits.max_characters))

        async def work() -> None:
            for numbers in chunks:
                chunk = [texts[number] for number in numbers]
                for number, translation in zip(
                    numbers, await self._chunk(chunk, request, deadline_seconds), strict=True
                ):
                    found[number] = translation

        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(_AT_ONCE):
                    group.create_task(work())
        except BaseExceptionGroup as errors:  # the first failure cancelled the others
            raise errors.exceptions[0] from None
        return found

    async def _chunk(
        self, chunk: Sequence[DocumentText], request: TranslationRequest, deadline_seconds: float
    ) -> list[str]:
        """Translate texts of one type; while the server is overloaded, wait as long as the deadline allows."""
        asked = replace(request, texts=tuple(each.text for each in chunk), mime_type=MimeType(chunk[0].mime_type.value))
        while True:
            try:
                result = await self._translator.translate(asked)
            except QuotaExceeded:
                raise
            except Overloaded as error:
                if time.monotonic() + error.retry_after_seconds >= deadline_seconds:
                    raise
                await asyncio.sleep(error.retry_after_seconds)
            except InvalidRequest as error:
                match error.path:
                    case ("texts", int(index)):
                        error.path = _place(chunk[index])
                raise
            else:
                return [each.text for each in result.translations]


def is_of_document(error: ServiceError) -> bool:
    """Return whether an error is about the document itself, and not about how or when it was to be translated."""
    return isinstance(error, InvalidRequest) and bool(error.path) and str(error.path[0]).split(" ")[0] == FILE


def _place(text: DocumentText) -> Path:
    return Path(f"{FILE} ({text.place})")


def _chunks(texts: Sequence[DocumentText], max_characters: int) -> Iterator[list[int]]:
    """Yield the indices of texts in chunks, each of one type and with as many characters, unless a text has more."""
    for kind in {text.mime_type: None for text in texts}:
        chunk: list[int] = []
        num_characters = 0
        for number, text in enumerate(texts):
            if text.mime_type is not kind:
                continue
            if chunk and (len(chunk) == _MAX_CHUNK_TEXTS or num_characters + len(text.text) > max_characters):
                yield chunk
                chunk, num_characters = [], 0
            chunk.append(number)
            num_characters += len(text.text)
        yield chunk


def _translated_name(name: str, target: str) -> str:
    """Return the name of a translated document's file: that of the document, with the language before its ending."""
    path = PurePath(PurePath(name.replace("\\", "/")).name)
    stem = "".join(character for character in path.stem if character.isprintable())
    return f"{stem[:_MAX_NAME]}.{canonical(target)}{path.suffix.lower()}"
