"""Tables: comma- (RFC 4180, any dialect) and tab-separated values; columns by name, or by number from 1."""

import csv
import functools
import io
import re
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice

from service.documents.document import (
    Document,
    DocumentOptions,
    DocumentText,
    Edit,
    MimeType,
    Slot,
    Spliced,
    has_words,
    notes_on_left,
)
from service.documents.encodings import decoded
from service.documents.errors import DocumentError
from service.documents.lines import on_one_line

DELIMITERS = ",;\t|"
MAX_CELL = 2**27  # characters; the limit of the module `csv` is 128 KiB
_NO_DELIMITER = ""  # of a table with one column
_SAMPLE_RECORDS = 20  # from which the delimiter is guessed
_MAX_NAMES = 20  # listed in an error
_MAX_NAME = 60  # characters of one, which stands in the place of each of its texts
_USUAL_NAMES = frozenset(
    {"comment", "context", "description", "id", "key", "lang", "message", "name", "note", "source", "target", "text"}
)
SEP_LINE = re.compile(r'"?sep=([,;\t|])"?(?=\r|\n|\Z)', re.IGNORECASE)  # how spreadsheets are told the delimiter
_QUOTED = re.compile(r'"(?:[^"]++|"")*+"')
# What spreadsheets compute: =SUM(A1:A9), =$A$1&"x", ='A sheet'!B2, =-2*(3+A1), ="a"&B1
_FORMULA = re.compile(
    r"=[-+@({]{0,9}(?:[^\W\d][\w.]{0,60}\(|(?:'[^'\r\n]{1,60}'|\w{1,60})!|\""
    r"|(?:\$?[A-Z]{1,3}\$?\d{1,7}|\d[\d.,]{0,20})[ ]?(?:[-+*/^&=<>:,;)%]|\Z))"
)


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell at `start` to before `end` of the source, quotes included."""

    start: int
    end: int
    is_quoted: bool

    def text(self, source: str) -> str:
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
        return len(self.cells) == 1 and self.cells[0].start == self.cells[0].end


def read_records(source: str, start: int, delimiter: str, *, is_strict: bool) -> Iterator[Record]:
    """Yield the records from `start` on; if not `is_strict`, a quotation mark without a fitting second one is text."""
    end = re.escape(delimiter) + r"\r\n"
    # In quotation marks, with spaces around these, as in `1, "go"`; or else all up to the next delimiter.
    cell = re.compile(rf' *+(?P<quoted>"(?:[^"]++|"")*+") *+(?=[{end}]|\Z)|(?P<plain>[^{end}]*+)')
    cells: list[Cell] = []
    position = start
    line = first_line = 1
    while position < len(source) or cells:
        found = cell.match(source, position)
        assert found is not None  # it matches anything
        if is_strict and found["plain"] and source.startswith('"', position):
            raise _unfitting(source, position, line)
        assert found.lastgroup is not None
        cells.append(Cell(*found.span(found.lastgroup), is_quoted=found["plain"] is None))
        line += source.count("\n", position, found.end())
        position = found.end()
        if delimiter and source.startswith(delimiter, position):
            position += 1
            continue
        yield Record(first_line, cells)
        cells = []
        position += 2 if source.startswith("\r\n", position) else 1
        line += 1
        first_line = line


def _unfitting(source: str, start: int, line: int) -> DocumentError:
    quoted = _QUOTED.match(source, start)
    if quoted is None:
        return DocumentError("the cell that starts here with a quotation mark has no end.", f"line {line}")
    return DocumentError(
        f"{source[quoted.end()]!r} follows the quotation mark that ends a cell; there must be a delimiter or the end "
        "of the line, and a quotation mark within a cell is written twice.",
        f"line {line + quoted[0].count(chr(10))}",
    )


def split_records(lines: Iterator[str], delimiter: str, *, may_be_plain: bool) -> Iterator[tuple[int, str, list[str]]]:
    """Yield records: the number of the first line, from 1, the text with its line end, and the cells.

    A quote may go on in the next lines. In corpora, which `may_be_plain`, it is an ordinary character: a line with all
    cells is a record unless a quote is doubled, or open where the next line lacks cells.
    """
    csv.field_size_limit(MAX_CELL)
    number, width, waiting = 1, -1, deque[str]()
    while line := waiting.popleft() if waiting else next(lines, ""):
        width = line.count(delimiter) if width < 0 and line.strip("\r\n") else width
        parts, is_open, is_plain = [line], line.count('"') % 2, may_be_plain and line.count(delimiter) == width
        while is_open and (line := waiting.popleft() if waiting else next(lines, "")):
            if is_plain and line.count(delimiter) == width:
                waiting.appendleft(line)
                break
            parts.append(line)
            is_open ^= line.count('"') % 2
        text, cells = parts[0], parts[0].rstrip("\r\n").split(delimiter)
        for end in (len(parts), 1) if not is_plain or len(parts) > 1 or '""' in parts[0] else ():
            quoted = _cells("".join(parts[:end]), delimiter)
            if quoted is not None and (len(quoted) == width + 1 or not may_be_plain):
                text, cells, parts = "".join(parts[:end]), quoted, parts[end - 1 :]
                break
        waiting.extendleft(reversed(parts[1:]))
        yield number, text, cells
        number += text.count("\n") or text.count("\r")


def _cells(text: str, delimiter: str) -> list[str] | None:
    """Return the cells of a record whose quotes are those of CSV; `None` if the text is not exactly one."""
    try:
        records = list(csv.reader([text], delimiter=delimiter, strict=True))
    except csv.Error:
        return None
    return records[0] if len(records) == 1 else None


def read_csv(data: bytes, options: DocumentOptions) -> Document:
    """Read comma-separated values.

    The delimiter is what a first line `sep=;` says, else that of `,`, `;`, tab and `|` which divides the first records
    equally and makes names of the asked columns; a single column has none. Delimiter, quotes and line ends stay; a
    translation is quoted if the text was, or if necessary.
    """
    source, encode = decoded(data)
    sep_line = SEP_LINE.match(source)
    start = sep_line.end() if sep_line else 0
    delimiter = sep_line[1] if sep_line else _delimiter(source, options)
    records = read_records(source, start, delimiter, is_strict=True)
    return _document(source, encode, records, options, functools.partial(_csv_written, delimiter))


def read_tsv(data: bytes, options: DocumentOptions) -> Document:
    """Read tab-separated values; as in spreadsheets, a cell within quotation marks may have tabs, line ends and doubled
    quotation marks.

    Elsewhere quotes have no special meaning.
    """
    source, encode = decoded(data)
    return _document(source, encode, _tsv_records(source), options, _tsv_written)


def _tsv_records(source: str) -> Iterator[Record]:
    start = 0
    for line, text, _ in split_records(io.StringIO(source, newline=""), "\t", may_be_plain=True):
        for record in read_records(text, 0, "\t", is_strict=False):
            cells = [Cell(start + cell.start, start + cell.end, cell.is_quoted) for cell in record.cells]
            yield Record(line + record.line - 1, cells)
        start += len(text)


def _document(
    source: str,
    encode: Callable[[str], bytes],
    records: Iterator[Record],
    options: DocumentOptions,
    write: Callable[[str, bool, str], str],
) -> Document:
    records = (record for record in records if not record.is_empty)
    sample = list(islice(records, _SAMPLE_RECORDS))
    names = [cell.text(source).strip() for cell in sample[0].cells] if sample else []
    indices, has_header = _indices(names, options.columns)
    if not indices:
        raise DocumentError(f"name the columns to translate; they are {_listed(names)}.")
    if has_header or options.has_header or _looks_like_header(source, sample):
        sample = sample[1:]
    else:
        names = [f"{number}" for number in range(1, len(names) + 1)]
    short: list[int] = []
    formulas: list[tuple[int, Edit]] = []
    found = list(_slots(source, chain(sample, records), indices, names, write, short, formulas))
    notes = [
        note
        for lines, one, many in (
            (short, "record that lacks columns to translate", "records that lack columns to translate"),
            ([line for line, _ in formulas], "cell with a formula", "cells with formulas"),
        )
        for note in notes_on_left(len(lines), one, many, f"line{'s' * (len(lines) > 1)} {_numbers(lines)}")
    ]
    return Spliced(source, found, encode, notes, [edit for _, edit in formulas])


def _numbers(lines: Sequence[int]) -> str:
    return ", ".join(map(str, lines[:_MAX_NAMES])) + (" and others" if len(lines) > _MAX_NAMES else "")


def _slots(
    source: str,
    records: Iterator[Record],
    indices: Sequence[int],
    names: Sequence[str],
    write: Callable[[str, bool, str], str],
    short: list[int],
    formulas: list[tuple[int, Edit]],
) -> Iterator[Slot]:
    """Yield the texts of the columns; the lines of records that lack one of them go to `short`.

    Lines of `formulas` go there, each with how it is written: in quotes if it has some, as RFC 4180 wants.
    """
    for record in records:
        if indices[-1] >= len(record.cells):
            short.append(record.line)
        for index in indices:
            if index < len(record.cells) and has_words(text := record.cells[index].text(source)):
                cell = record.cells[index]
                if _FORMULA.match(text):
                    formulas.append((record.line, Edit(cell.start, cell.end, write(text, cell.is_quoted, text))))
                    continue
                place = f"line {record.line}, column {_repr(names[index])}"
                sep_line = DocumentText(text, MimeType.TEXT, place)
                yield Slot(cell.start, cell.end, sep_line, functools.partial(write, text, cell.is_quoted))


def _indices(names: Sequence[str], columns: Sequence[str]) -> tuple[list[int], bool]:
    found: set[int] = set()
    has_name = False
    for column in columns:
        places = [index for index, name in enumerate(names) if name == column]
        if not places and column.isascii() and column.isdigit() and 1 <= int(column[:9]) <= len(names):
            found.add(int(column[:9]) - 1)
        elif len(places) == 1:
            found.add(places[0])
            has_name = True
        else:
            problem = f"there are {len(places)} columns" if places else "there is no column"
            advice = "; give its number" if places else ""
            raise DocumentError(f"{problem} {_repr(column)}; the columns are {_listed(names)}{advice}.", "line 1")
    return sorted(found), has_name


def _looks_like_header(source: str, sample: Sequence[Record]) -> bool:
    """Return whether the first record names columns: by a usual name, or one with numbers below it that is none."""
    first, *others = [[cell.text(source).strip() for cell in record.cells] for record in sample]
    return any(name.lower() in _USUAL_NAMES for name in first) or any(
        has_words(name)
        and bool(below := [cells[index] for cells in others if index < len(cells)])
        and all(any(map(str.isdigit, text)) and not has_words(text) for text in below)
        for index, name in enumerate(first)
    )


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MAX_NAMES} more" if len(names) > _MAX_NAMES else ""
    return (", ".join(map(_repr, names[:_MAX_NAMES])) or "none") + more


def _repr(name: str) -> str:
    return repr(name if len(name) <= _MAX_NAME else f"{name[:_MAX_NAME]}...")


def _delimiter(source: str, options: DocumentOptions) -> str:
    """Return the delimiter under which the asked columns exist, and as many records as can be are equally wide."""
    samples: dict[str, list[Record]] = {each: _sample(source, each) for each in (*DELIMITERS, _NO_DELIMITER)}

    def fitness(delimiter: str) -> tuple[bool, int, int]:
        sample = samples[delimiter]
        if not sample:
            return False, 0, 0
        try:
            _indices([cell.text(source).strip() for cell in sample[0].cells], options.columns)
            is_found = True
        except DocumentError:
            is_found = False
        width = len(sample[0].cells)
        num_alike = sum(len(record.cells) == width for record in sample) if width > 1 else -len(delimiter)
        return is_found, num_alike, width

    return max(samples, key=fitness)


def _sample(source: str, delimiter: str) -> list[Record]:
    records = read_records(source, 0, delimiter, is_strict=False)
    return list(islice((record for record in records if not record.is_empty), _SAMPLE_RECORDS))


def _csv_written(delimiter: str, _: str, is_quoted: bool, translation: str) -> str:
    has_delimiter = bool(delimiter) and delimiter in translation
    if is_quoted or has_delimiter or any(sign in translation for sign in '"\r\n'):
        return _quoted(translation)
    return translation


def _tsv_written(text: str, is_quoted: bool, translation: str) -> str:
    """Return a cell; spreadsheets would take a quotation mark at its start for the first of a pair around it."""
    if is_quoted or (translation.startswith('"') and not text.startswith('"')):
        return _quoted(translation)
    return on_one_line(translation)


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'
