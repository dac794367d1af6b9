"""Lines of a plain text file, each of which is a text, and line numbers in other files."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from service.documents.document import Document, DocumentOptions, DocumentText, MimeType, Slot, Spliced, has_words
from service.documents.encodings import decoded

_LINE = re.compile(r"([^\r\n]*)(\r{0,2}\n|\r|\Z)")


class Lines:
    """The lines of a source; fast if positions are asked for in about their order."""

    def __init__(self, source: str, part: str = "", first: int = 1) -> None:
        """Take a source, whose first line has the number `first`, in a `part` of a document."""
        self._source = source
        self._part = part
        self._counted = 0, first  # a position, and its line

    def place(self, position: int) -> str:
        """Return the line of a position, such as "line 3"; fast if it is near the one before."""
        counted, line = self._counted
        line += self._source.count("\n", counted, position) - self._source.count("\n", position, counted)
        self._counted = position, line
        return f"{self._part}, line {line}" if self._part else f"line {line}"


@dataclass(frozen=True, slots=True)
class Line:
    """A line without its `ending`; `start` is its position."""

    number: int
    text: str
    start: int
    ending: str


def read(data: bytes, _: DocumentOptions) -> Document:
    """Read a text file; each line is a text, without the white space around it."""
    source, encode = decoded(data)
    return Spliced(source, _slots(source), encode)


def lines(source: str) -> Iterator[Line]:
    """Yield the lines, which end with LF, CR or CR LF; CR CR LF, as some programs write it, is one line end."""
    position = 0
    number = 1
    while position < len(source):
        found = _LINE.match(source, position)
        assert found is not None  # it matches anything
        yield Line(number, found[1], position, found[2])
        position = found.end()
        number += 1


def on_one_line(text: str) -> str:
    return " ".join(text.replace("\t", " ").splitlines())


def _slots(source: str) -> Iterator[Slot]:
    for line in lines(source):
        text = line.text.strip()
        if has_words(text):
            start = line.start + len(line.text) - len(line.text.lstrip())
            source_text = DocumentText(text, MimeType.TEXT, f"line {line.number}")
            yield Slot(start, start + len(text), source_text, on_one_line)
