"""Records of tables and their cells, by position: quotation marks as in RFC 4180."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from service.documents.errors import DocumentError

_SPACES = re.compile(" *+")


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell at `start` to before `end` of the source, quotes included."""

    start: int
    end: int
    is_quoted: bool

    def text(self, source: str) -> str:
        """Return what it says."""
        if self.is_quoted:
            return source[self.start + 1 : self.end - 1].replace('""', '"')
        return source[self.start : self.end]


@dataclass(frozen=True, slots=True)
class Record:
    """A record, which begins in `line`."""

    line: int
    cells: Sequence[Cell]

    @property
    def is_empty(self) -> bool:
        """Return whether it is an empty line."""
        return len(self.cells) == 1 and self.cells[0].start == self.cells[0].end


def read_records(source: str, start: int, delimiter: str, *, is_strict: bool) -> Iterator[Record]:
    """Yield the records from `start` on; if not `is_strict`, a quotation mark without a fitting second one is text."""
    cells: list[Cell] = []
    position = start
    line = first_line = 1
    end = re.compile(rf"[{re.escape(delimiter)}\r\n]")
    while position < len(source) or cells:
        quote = _after_spaces(source, position)  # as in `1, "go"`
        stop = _end_of_quoted(source, quote, end, line, is_strict=is_strict and quote == position)
        if stop > quote:
            line += source.count("\n", quote, stop)
            cells.append(Cell(quote, stop, is_quoted=True))
            position = _after_spaces(source, stop)
        else:
            found = end.search(source, position)
            stop = found.start() if found else len(source)
            cells.append(Cell(position, stop, is_quoted=False))
            position = stop
        if delimiter and source.startswith(delimiter, position):
            position += 1
            continue
        yield Record(first_line, cells)
        cells = []
        position += 2 if source.startswith("\r\n", position) else 1
        line += 1
        first_line = line


def _end_of_quoted(source: str, start: int, end: re.Pattern[str], line: int, *, is_strict: bool) -> int:
    """Return the end of the cell in quotation marks at `start`; `start` if there is none."""
    if not source.startswith('"', start):
        return start
    position = start + 1
    while (position := source.find('"', position)) >= 0 and source.startswith('""', position):
        position += 2
    following = _after_spaces(source, position + 1)
    if position >= 0 and (following == len(source) or end.match(source, following)):
        return position + 1
    if not is_strict:
        return start
    if position < 0:
        raise DocumentError("the cell that starts here with a quotation mark has no end.", f"line {line}")
    raise DocumentError(
        f"{source[position + 1]!r} follows the quotation mark that ends a cell; there must be a delimiter or the end "
        "of the line, and a quotation mark within a cell is written twice.",
        f"line {line + source.count(chr(10), start, position)}",
    )


def _after_spaces(source: str, position: int) -> int:
    found = _SPACES.match(source, position)
    return found.end() if found else position
