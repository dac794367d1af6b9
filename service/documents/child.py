"""A process that reads a document, or writes its translation: `python -m service.documents.child`.

Documents are untrusted, and reading one may take any time and memory: this process has limits, and can be killed. One
process reads a document, and another one reads it again to write it: no process waits for the translation between.

Standard input and output carry frames: their length as `LENGTH`, then as many bytes.

1. In: an `Order` in JSON, then the document.
2. To read it, out: a `Head`, then its `Chunk`s, in JSON; or only a `Refusal`. To write it, in: `Translations` of each
   chunk in JSON; out: a `Refusal`, whose problem may be empty, and the document.
"""

import contextlib
import json
import os
import resource
import struct
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any, BinaryIO, TypedDict

from service.documents.document import Document, DocumentOptions, DocumentText, Doubt, sample
from service.documents.errors import DocumentError
from service.documents.opening import open_document

LENGTH = struct.Struct(">Q")
MAX_MEMORY_BYTES = 2**29
MAX_CPU_SECONDS = 60

_LIMITS = ((resource.RLIMIT_AS, MAX_MEMORY_BYTES), (resource.RLIMIT_CPU, MAX_CPU_SECONDS), (resource.RLIMIT_CORE, 0))

Opener = Callable[[str, bytes, DocumentOptions], Document]


class Order(TypedDict):
    """The task: the name of the document's file, its `DocumentOptions`, and the most texts and characters of a chunk.

    With `is_written` the document is written, else read. A text has at most `max_characters`.
    """

    name: str
    options: dict[str, Any]
    max_chunk_texts: int
    max_chunk_characters: int
    max_characters: int
    is_written: bool


class Head(TypedDict):
    """Facts about a whole document.

    `num_characters` are those of its texts. `sample` is text of type `sample_type` for detection, maybe empty;
    `language` is the declared one, if any.
    """

    num_chunks: int
    num_texts: int
    num_characters: int
    notes: list[str]
    language: str
    sample: str
    sample_type: str


class Chunk(TypedDict):
    """Texts of one type, and the place of each."""

    mime_type: str
    texts: list[str]
    places: list[str]


class Translations(TypedDict):
    """The translations of a chunk's texts, and the doubts about some: number in the chunk, flags, finish reason."""

    texts: list[str]
    doubts: list[tuple[int, list[str], str]]


class Refusal(TypedDict):
    """The reason why a document can't be read; or the place of a text with too many characters, `num_characters`."""

    problem: str
    num_characters: int


def main(opener: Opener = open_document) -> None:
    """Serve one document from standard input to standard output; end early if the other side has gone."""
    _limit()
    source, sink = sys.stdin.buffer, sys.stdout.buffer
    with contextlib.suppress(EOFError, BrokenPipeError):
        order: Order = json.loads(_frame(source))
        document = _opened(opener, order, _frame(source))
        if isinstance(document, dict):
            _send(sink, _json(document))
            return
        found = list(chunks(document.texts, order["max_chunk_texts"], order["max_chunk_characters"]))
        if order["is_written"]:
            problem, data = _written(document, *_translations(source, found, len(document.texts)))
            _send(sink, _json(Refusal(problem=problem, num_characters=0)))
            _send(sink, data)
            return
        _send(sink, _json(_head(document, len(found))))
        for numbers in found:
            texts = [document.texts[number] for number in numbers]
            chunk = Chunk(
                mime_type=texts[0].mime_type.value,
                texts=[each.text for each in texts],
                places=[each.place for each in texts],
            )
            _send(sink, _json(chunk))
        sink.flush()


def chunks(texts: Sequence[DocumentText], max_texts: int, max_characters: int) -> Iterator[list[int]]:
    """Yield the indices of texts of one type in chunks, one for each call; a text that is larger is alone."""
    for kind in {text.mime_type: None for text in texts}:
        chunk: list[int] = []
        num_characters = 0
        for number, text in enumerate(texts):
            if text.mime_type is not kind:
                continue
            if chunk and (len(chunk) == max_texts or num_characters + len(text.text) > max_characters):
                yield chunk
                chunk, num_characters = [], 0
            chunk.append(number)
            num_characters += len(text.text)
        yield chunk


def _opened(opener: Opener, order: Order, data: bytes) -> Document | Refusal:
    lists = {name: tuple(value) for name, value in order["options"].items() if isinstance(value, list)}
    options = DocumentOptions(**{**order["options"], **lists})
    try:
        document = opener(order["name"], data, options)
    except DocumentError as error:
        return Refusal(problem=str(error), num_characters=0)
    except MemoryError:
        problem = f"it takes more than {MAX_MEMORY_BYTES >> 20} MiB of memory to read; split it."
        return Refusal(problem=problem, num_characters=0)
    except RecursionError:
        return Refusal(problem="it is nested too deeply.", num_characters=0)
    for text in document.texts:
        if len(text.text) > order["max_characters"]:
            return Refusal(problem=text.place, num_characters=len(text.text))
    return document


def _head(document: Document, num_chunks: int) -> Head:
    texts = document.texts
    text, kind = sample(texts)
    return Head(
        num_chunks=num_chunks,
        num_texts=len(texts),
        num_characters=sum(len(each.text) for each in texts),
        notes=list(document.notes),
        language=document.language,
        sample=text,
        sample_type=kind.value,
    )


def _translations(source: BinaryIO, found: list[list[int]], num_texts: int) -> tuple[list[str], dict[int, Doubt]]:
    translations = [""] * num_texts
    doubts: dict[int, Doubt] = {}
    for numbers in found:
        message: Translations = json.loads(_frame(source))
        for number, translation in zip(numbers, message["texts"], strict=True):
            translations[number] = translation
        for index, flags, finish_reason in message["doubts"]:
            doubts[numbers[index]] = Doubt(tuple(flags), finish_reason)
    return translations, doubts


def _written(document: Document, translations: list[str], doubts: dict[int, Doubt]) -> tuple[str, bytes]:
    try:
        return "", document.written(translations, doubts)
    except DocumentError as error:
        return str(error), b""


def _limit() -> None:
    for kind, limit in _LIMITS:
        with contextlib.suppress(OSError, ValueError):  # lower ones are in force already, or the system has none
            resource.setrlimit(kind, (limit, limit))
    os.nice(10)  # below all that serves other calls


def _frame(source: BinaryIO) -> bytes:
    (length,) = LENGTH.unpack(_exactly(source, LENGTH.size))
    return _exactly(source, length)


def _exactly(source: BinaryIO, num_bytes: int) -> bytes:
    found = source.read(num_bytes)
    if len(found) < num_bytes:
        raise EOFError
    return found


def _send(sink: BinaryIO, content: bytes) -> None:
    sink.write(LENGTH.pack(len(content)))
    sink.write(content)


def _json(document: Any) -> bytes:
    return json.dumps(document, ensure_ascii=False).encode("utf-8", "surrogatepass")  # which `json.loads` reads


if __name__ == "__main__":
    main()
