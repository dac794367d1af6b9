"""Whole documents: their texts in chunks, in order, patiently, and named by their places."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import cast

import pytest

from service.documents import ENDINGS, DocumentOptions, DocumentText
from service.documents import MimeType as Kind
from service.domain.errors import InvalidRequest, Overloaded, Path, QuotaExceeded, ServiceError, TooLong
from service.domain.translation import (
    CallLimits,
    FinishReason,
    Hypothesis,
    MimeType,
    Translation,
    TranslationRequest,
    TranslationResult,
)
from service.faces.http.documents.reading import DocumentReaders, Upload
from service.faces.http.documents.translation import CONTENT_TYPES, DocumentTranslator, TranslatedDocument
from service.translation.translator import Translator
from tests.patience import patient


@dataclass
class Document:
    texts: Sequence[DocumentText]
    notes: Sequence[str] = ("a note",)
    got: Sequence[str] = ()

    async def written(self, translations: Sequence[str]) -> bytes:
        self.got = translations
        return b"written"


@dataclass
class Fake:
    """Readers that return a document, and a translator that answers in capitals, after some errors."""

    document: Document
    errors: list[ServiceError] = field(default_factory=list)
    requests: list[TranslationRequest] = field(default_factory=list)
    most_at_once: int = 0
    num_running: int = 0

    @asynccontextmanager
    async def open(self, upload: Upload, deadline_seconds: float) -> AsyncIterator[Document]:
        yield self.document

    limits = CallLimits(max_characters=50_000, max_segments=1000, max_answer_characters=1)

    def models(self) -> None:
        pass

    async def source_of(self, request: TranslationRequest) -> str:
        self.requests.append(request)
        if self.errors:
            raise self.errors.pop(0)
        return "en"

    async def translate(self, request: TranslationRequest) -> TranslationResult:
        self.requests.append(request)
        self.num_running += 1
        self.most_at_once = max(self.most_at_once, self.num_running)
        await asyncio.sleep(0)
        self.num_running -= 1
        if self.errors:
            raise self.errors.pop(0)
        found = tuple(
            Translation(each.upper(), (Hypothesis(each.upper(), 1),), FinishReason.STOP, 1) for each in request.texts
        )
        return TranslationResult("m", "1", found)


def translate(fake: Fake, name: str = "a.txt", source: str = "en", target: str = "de") -> TranslatedDocument:
    translator = DocumentTranslator(cast(Translator, fake), cast(DocumentReaders, fake))
    request = TranslationRequest((), source, target, deadline_seconds=time.monotonic() + patient(30))
    upload = Upload(name, b"", DocumentOptions())
    return asyncio.run(asyncio.wait_for(translator.translate(upload, request), patient(60)))


def texts(number: int, kind: Callable[[int], Kind] = lambda _: Kind.TEXT, size: int = 5) -> list[DocumentText]:
    return [DocumentText(f"t{index}".ljust(size, "x"), kind(index), f"line {index}") for index in range(number)]


def test_texts_are_translated_in_order_in_chunks_of_one_type() -> None:
    fake = Fake(Document(texts(200, lambda index: Kind.HTML if index % 3 else Kind.TEXT)))
    translated = translate(fake)
    assert fake.document.got == [each.text.upper() for each in fake.document.texts]
    assert {len(each.texts) for each in fake.requests} <= {32, 67 % 32, 133 % 32}
    assert {each.mime_type for each in fake.requests} == {MimeType.PLAIN, MimeType.HTML}
    for each in fake.requests:
        assert each.deadline_seconds == fake.requests[0].deadline_seconds
    assert 1 < fake.most_at_once <= 4
    assert translated == TranslatedDocument("a.de.txt", CONTENT_TYPES[".txt"], b"written", ("a note",), 200 * 5)


def test_long_texts_are_sent_in_smaller_chunks() -> None:
    fake = Fake(Document(texts(5, size=40_000)))
    translate(fake)
    assert [len(each.texts) for each in fake.requests] == [1] * 5


def test_a_document_without_texts_is_only_written() -> None:
    fake = Fake(Document([]))
    assert translate(fake, source="").data == b"written"
    assert fake.requests == []


def test_a_busy_server_is_asked_again() -> None:
    fake = Fake(Document(texts(1)), [Overloaded("full.", 0.001), Overloaded("full.", 0.001)])
    translate(fake)
    assert len(fake.requests) == 3


@pytest.mark.parametrize("error", [QuotaExceeded("used up.", 0.001), Overloaded("full.", 86_400.0)])
def test_it_is_not_asked_again_in_vain(error: ServiceError) -> None:
    fake = Fake(Document(texts(1)), [error])
    with pytest.raises(type(error)):
        translate(fake)
    assert len(fake.requests) == 1


def test_an_invalid_text_is_named_by_its_place() -> None:
    fake = Fake(Document(texts(2)), [InvalidRequest("{path} is bad", Path("texts", 1))])
    with pytest.raises(InvalidRequest, match=r"^file \(line 1\) is bad\.?$"):
        translate(fake)


def test_a_text_that_no_call_takes_is_named_before_anything_is_translated() -> None:
    fake = Fake(Document([*texts(40), *texts(1, size=50_001)]))
    with pytest.raises(TooLong, match=r"^file \(line 0\) has 50001 characters without a break; allowed are 50000\."):
        translate(fake)
    assert fake.requests == []


def test_other_errors_keep_their_fields() -> None:
    fake = Fake(Document(texts(1)), [InvalidRequest("{path} is bad", Path("glossary"))])
    with pytest.raises(InvalidRequest, match=r"^glossary is bad"):
        translate(fake)


def test_a_language_is_detected_once() -> None:
    fake = Fake(Document([DocumentText("<b>a</b>", Kind.HTML, "x"), *texts(3000)]))
    translate(fake, source="")
    sampled, *rest = fake.requests
    assert (sampled.texts, sampled.mime_type) == (("<b>a</b>",), MimeType.HTML)
    assert {each.source_language_code for each in rest} == {"en"}
    fake = Fake(Document(texts(3000)))
    translate(fake, source="")
    assert len(fake.requests[0].texts[0]) == 4096


def test_a_language_that_is_not_served_is_the_files_problem() -> None:
    fake = Fake(Document(texts(1)), [InvalidRequest("{path} is in no language", Path("texts", 0))])
    with pytest.raises(InvalidRequest, match=r"^file is in no language"):
        translate(fake, source="")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("a.MD", "a.pt-BR.md"),
        ("a.b.html", "a.b.pt-BR.html"),
        ("../../etc/pass.txt", "pass.pt-BR.txt"),
        ("C:\\docs\\ä b.txt", "ä b.pt-BR.txt"),
        ("a\r\nb\0.txt", "ab.pt-BR.txt"),
        ("x" * 300 + ".txt", "x" * 200 + ".pt-BR.txt"),
    ],
)
def test_names_of_files(name: str, expected: str) -> None:
    assert translate(Fake(Document([])), name, target="pt_br").name == expected


def test_every_ending_has_a_type() -> None:
    assert sorted(CONTENT_TYPES) == sorted(ENDINGS)


def test_the_failure_of_one_chunk_ends_the_others() -> None:
    fake = Fake(Document(texts(3200)), [InvalidRequest("{path} is bad", Path("glossary"))])
    with pytest.raises(InvalidRequest):
        translate(fake)
    assert len(fake.requests) < 20
