"""Whole documents: their texts in chunks, in order, patiently, and named by their places."""

import asyncio
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

import pytest

from service.calls.open_calls import ByteBudget, Hold
from service.documents import FORMATS, DocumentOptions, DocumentText
from service.documents import MimeType as Kind
from service.documents.child import Chunk, Head
from service.domain.errors import InvalidRequest, Overloaded, Path, QuotaExceeded, ServiceError
from service.domain.translation import (
    FinishReason,
    Flag,
    Hypothesis,
    MimeType,
    Segment,
    Translation,
    TranslationRequest,
    TranslationResult,
)
from service.jobs.reading import DocumentReaders, Upload
from service.jobs.translation import DocumentTranslator, TranslatedDocument
from service.translation.translator import Translator
from tests.patience import patient

DATA = b"a document"


@dataclass
class Fake:
    """Readers of texts, in chunks of five, and a translator that answers in capitals, after some errors."""

    texts: Sequence[DocumentText]
    errors: list[ServiceError] = field(default_factory=list)
    language: str = ""
    written: Sequence[str] = ()
    doubts: Sequence[object] = ()
    flags: Mapping[str, tuple[Flag, ...]] = field(default_factory=dict)
    requests: list[TranslationRequest] = field(default_factory=list)
    most_at_once: int = 0
    num_running: int = 0
    budget: ByteBudget = field(default_factory=lambda: ByteBudget(2**24, 2**20))

    async def read(self, upload: Upload, deadline_seconds: float, hold: Hold) -> tuple[Head, list[bytes]]:
        parts = [self.texts[start : start + 5] for start in range(0, len(self.texts), 5)]
        chunks = [
            Chunk(mime_type=part[0].mime_type.value, texts=[each.text for each in part], places=[e.place for e in part])
            for part in parts
        ]
        size = sum(len(each.text) for each in self.texts)
        frames = [json.dumps(chunk).encode() for chunk in chunks]
        hold.grow(sum(map(len, frames)))
        head = Head(
            num_chunks=len(frames),
            num_texts=len(self.texts),
            num_characters=size,
            notes=["a note"],
            language=self.language,
            sample="a sample",
            sample_type=Kind.HTML.value,
        )
        return head, frames

    async def write(self, upload: Upload, translations: Sequence[bytes], deadline_seconds: float, hold: Hold) -> bytes:
        assert (hold.num_bytes > len(DATA)) == bool(self.texts)
        sent = list(translations)
        assert hold.num_bytes == len(DATA), "what has been handed over is not held"
        frames = [json.loads(frame) for frame in sent]
        self.written = [text for frame in frames for text in frame["texts"]]
        self.doubts = [frame["doubts"] for frame in frames]
        return b"written"

    def check_loaded(self) -> None:
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
        found = tuple(self.translation(each) for each in request.texts)
        return TranslationResult("m", "1", found)

    def translation(self, text: str) -> Translation:
        segment = Segment(0, 1, 0, 1, FinishReason.STOP, 1, 1, self.flags.get(text, ()))
        return Translation(text.upper(), (Hypothesis(text.upper(), 1),), segment.finish_reason, 1, (segment,))


def translate(fake: Fake, name: str = "a.txt", source: str = "en", target: str = "de") -> TranslatedDocument:
    translator = DocumentTranslator(cast(Translator, fake), cast(DocumentReaders, fake))
    request = TranslationRequest((), source, target, deadline_seconds=time.monotonic() + patient(30))
    upload = Upload(name, DATA, DocumentOptions())
    hold = fake.budget.hold("alice")
    hold.grow(len(DATA))
    try:
        translated = asyncio.run(asyncio.wait_for(translator.translate(upload, request, hold), patient(60)))
    except BaseException:
        assert fake.budget.num_bytes == 0, "nothing is held for a document that failed"
        raise
    assert fake.budget.num_bytes == len(DATA), "what the call has sent is held until it ends"
    return translated


def texts(number: int) -> list[DocumentText]:
    kinds = (Kind.TEXT, Kind.HTML)
    return [DocumentText(f"t{index}", kinds[index // 5 % 2], f"line {index}") for index in range(number)]


def test_chunks_are_translated_several_at_a_time_and_written_in_order() -> None:
    fake = Fake(texts(103))
    translated = translate(fake)
    assert fake.written == [each.text.upper() for each in fake.texts]
    assert [len(each.texts) for each in fake.requests] == [5] * 20 + [3]
    assert {each.mime_type for each in fake.requests} == {MimeType.PLAIN, MimeType.HTML}
    for each in fake.requests:
        assert each.deadline_seconds == fake.requests[0].deadline_seconds
    assert 1 < fake.most_at_once <= 4
    size = sum(len(each.text) for each in fake.texts)
    report = {"num_texts": 103, "flags": {}, "finish_reasons": {}, "texts": [], "left_out": ["a note"]}
    assert translated == TranslatedDocument(
        "a.de.txt", FORMATS[".txt"].media_type, b"written", ["a note"], size, report
    )


def test_what_a_call_tells_of_a_text_is_told_to_the_document_and_to_the_caller() -> None:
    fake = Fake(texts(7), flags={"t1": (Flag.TERM, Flag.EMPTY), "t6": (Flag.TERM,)})
    translated = translate(fake)
    assert fake.doubts == [[[1, ["term", "empty"], "stop"]], [[1, ["term"], "stop"]]]
    assert translated.notes == ["a note", "2 texts were flagged: 2 term, 1 empty."]
    assert [each["place"] for each in translated.report["texts"]] == ["line 1", "line 6"]


def test_a_document_without_texts_is_only_written() -> None:
    fake = Fake([])
    assert translate(fake, source="").data == b"written"
    assert fake.requests == []


def test_a_busy_server_is_asked_again() -> None:
    fake = Fake(texts(1), [Overloaded("full.", 0.001), Overloaded("full.", 0.001)])
    translate(fake)
    assert len(fake.requests) == 3


@pytest.mark.parametrize("error", [QuotaExceeded("used up.", 0.001), Overloaded("full.", 86_400.0)])
def test_it_is_not_asked_again_in_vain(error: ServiceError) -> None:
    fake = Fake(texts(1), [error])
    with pytest.raises(type(error)):
        translate(fake)
    assert len(fake.requests) == 1


def test_an_invalid_text_is_named_by_its_place() -> None:
    fake = Fake(texts(2), [InvalidRequest("{path} is bad", Path("texts", 1))])
    with pytest.raises(InvalidRequest, match=r"^file \(line 1\) is bad\.?$"):
        translate(fake)


def test_other_errors_keep_their_fields() -> None:
    fake = Fake(texts(1), [InvalidRequest("{path} is bad", Path("glossary"))])
    with pytest.raises(InvalidRequest, match=r"^glossary is bad"):
        translate(fake)


def test_a_language_is_detected_once() -> None:
    fake = Fake(texts(30))
    translate(fake, source="")
    sampled, *rest = fake.requests
    assert (sampled.texts, sampled.mime_type) == (("a sample",), MimeType.HTML)
    assert {each.source_language_code for each in rest} == {"en"}


def test_a_document_may_say_its_language() -> None:
    fake = Fake(texts(2), language="fr-CA")
    translate(fake, source="")
    assert [each.source_language_code for each in fake.requests] == ["fr-CA"]


def test_a_language_that_is_not_served_is_the_files_problem() -> None:
    fake = Fake(texts(1), [InvalidRequest("{path} is in no language", Path("texts", 0))])
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
        ("x" * 300 + ".txt", "x" * 245 + ".pt-BR.txt"),  # 255 is the most that file systems take
    ],
)
def test_names_of_files(name: str, expected: str) -> None:
    assert translate(Fake([]), name, target="pt_br").name == expected


def test_the_failure_of_one_chunk_ends_the_others() -> None:
    fake = Fake(texts(3200), [InvalidRequest("{path} is bad", Path("glossary"))])
    with pytest.raises(InvalidRequest):
        translate(fake)
    assert len(fake.requests) < 20
