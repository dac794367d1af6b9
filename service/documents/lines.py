"""Plain text: a text per line, as everywhere else."""

from collections.abc import Iterator

from service.documents.document import Document, DocumentOptions, DocumentText, MimeType, Slot, Spliced, has_words
from service.documents.encodings import decoded


def read(data: bytes, _: DocumentOptions) -> Document:
    """Read a text file; each line is a text, without the white space around it."""
    source, encode = decoded(data)
    return Spliced(source, _slots(source), encode)


def on_one_line(text: str) -> str:
    """Return the text with a space in place of each line end or tab."""
    return " ".join(text.replace("\t", " ").splitlines())


def _slots(source: str) -> Iterator[Slot]:
    position = 0
    for number, line in enumerate(source.split("\n"), start=1):
        text = line.strip()
        if has_words(text):
            start = position + len(line) - len(line.lstrip())
            yield Slot(start, start + len(text), DocumentText(text, MimeType.TEXT, f"line {number}"), on_one_line)
        position += len(line) + 1
