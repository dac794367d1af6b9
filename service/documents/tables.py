"""Tables: comma-separated values of any dialect (RFC 4180), and tab-separated ones; the first record has the names."""

import functools
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from service.documents.document import Document, DocumentOptions, DocumentText, MimeType, Slot, Spliced, has_words
from service.documents.encodings import decoded
from service.documents.errors import DocumentError
from service.documents.lines import on_one_line

_DELIMITERS = ",;\t|"
_MAX_NAMES = 20  # listed in an error
_MAX_NAME = 60  # characters of one, which stands in the place of each of its texts


@dataclass(frozen=True, slots=True)
class _Cell:
    """A cell at `start` to before `end` of the source, quotes included."""

    start: int
    end: int
    is_quoted: bool


@dataclass(frozen=True, slots=True)
class _Record:
    line: int
    cells: Sequence[_Cell]


def read_csv(data: bytes, options: DocumentOptions) -> Document:
    """Read comma-separated values; of `,`, `;`, tab and `|` the delimiter is the most frequent of the first record.

    Delimiter, quotes and line ends stay as they are. A translation is in quotes if the text was, or if it needs them.

    Raises:
        DocumentError: a quotation mark is missing or misplaced, a record is too short, or a column does not exist.
    """
    source, encode = decoded(data)
    delimiter = _delimiter(source)
    write = functools.partial(_quoted, delimiter)
    slots = _slots(source, _csv_records(source, delimiter), options.columns, _unquoted, write)
    return Spliced(source, slots, encode)


def read_tsv(data: bytes, options: DocumentOptions) -> Document:
    """Read tab-separated values; a value has no tabs and line ends, and quotes have no special meaning.

    Raises:
        DocumentError: a record is too short, or a column does not exist.
    """
    source, encode = decoded(data)
    slots = _slots(source, _tsv_records(source), options.columns, _as_it_is, _without_quotes)
    return Spliced(source, slots, encode)


def _slots(
    source: str,
    records: Iterator[_Record],
    columns: Sequence[str],
    read: Callable[[str, _Cell], str],
    write: Callable[[bool, str], str],
) -> Iterator[Slot]:
    header = next(records, _Record(1, ()))
    names = [read(source, cell).strip() for cell in header.cells]
    indices = _indices(names, columns)
    if not indices:
        raise DocumentError(f"name the columns to translate; they are {_listed(names)}.")
    for record in records:
        if len(record.cells) == 1 and record.cells[0].start == record.cells[0].end:
            continue  # an empty line
        for index in indices:
            if index >= len(record.cells):
                raise DocumentError(
                    f"the record has {len(record.cells)} columns, and {_shown(names[index])} is column {index + 1}.",
                    f"line {record.line}",
                )
            cell = record.cells[index]
            text = read(source, cell)
            if has_words(text):
                told = DocumentText(text, MimeType.TEXT, f"line {record.line}, column {_shown(names[index])}")
                yield Slot(cell.start, cell.end, told, functools.partial(write, cell.is_quoted))


def _indices(names: Sequence[str], columns: Sequence[str]) -> list[int]:
    places: dict[str, list[int]] = {}
    for index, name in enumerate(names):
        places.setdefault(name, []).append(index)
    found = [places.get(column, []) for column in columns]
    for column, indices in zip(columns, found, strict=True):
        if len(indices) != 1:
            problem = f"there are {len(indices)} columns" if indices else "there is no column"
            raise DocumentError(f"{problem} {_shown(column)}; the columns are {_listed(names)}.", "line 1")
    return sorted({index for indices in found for index in indices})


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MAX_NAMES} more" if len(names) > _MAX_NAMES else ""
    return (", ".join(map(_shown, names[:_MAX_NAMES])) or "none") + more


def _shown(name: str) -> str:
    return repr(name if len(name) <= _MAX_NAME else f"{name[:_MAX_NAME]}...")


def _delimiter(source: str) -> str:
    counts = dict.fromkeys(_DELIMITERS, 0)
    is_quoted = False
    for character in source:
        if character == '"':
            is_quoted = not is_quoted
        elif character in "\r\n" and not is_quoted:
            break
        elif character in counts and not is_quoted:
            counts[character] += 1
    return max(_DELIMITERS, key=counts.__getitem__)


def _csv_records(source: str, delimiter: str) -> Iterator[_Record]:
    cells: list[_Cell] = []
    line = first_line = 1
    position = 0
    end = re.compile(rf"[{re.escape(delimiter)}\r\n]")
    while position < len(source) or cells:
        start = position
        if source.startswith('"', start):
            position = _end_of_quoted(source, start, line)
            line += source.count("\n", start, position)
            if position < len(source) and not end.match(source, position):
                raise DocumentError(
                    f"{source[position]!r} follows the quotation mark that ends a cell; there must be {delimiter!r} or "
                    "the end of the line, and a quotation mark within a cell is written twice.",
                    f"line {line}",
                )
            cells.append(_Cell(start, position, is_quoted=True))
        else:
            found = end.search(source, start)
            position = found.start() if found else len(source)
            cells.append(_Cell(start, position, is_quoted=False))
        if source.startswith(delimiter, position):
            position += 1
            continue
        yield _Record(first_line, cells)
        cells = []
        position += 2 if source.startswith("\r\n", position) else 1
        line += 1
        first_line = line


def _end_of_quoted(source: str, start: int, line: int) -> int:
    position = start + 1
    while True:
        position = source.find('"', position)
        if position < 0:
            raise DocumentError("the cell that starts here with a quotation mark has no end.", f"line {line}")
        if not source.startswith('""', position):
            return position + 1
        position += 2


def _tsv_records(source: str) -> Iterator[_Record]:
    position = 0
    for number, line in enumerate(source.split("\n"), start=1):
        cells = []
        start = position
        for value in line.removesuffix("\r").split("\t"):
            cells.append(_Cell(start, start + len(value), is_quoted=False))
            start += len(value) + 1
        yield _Record(number, cells)
        position += len(line) + 1


def _unquoted(source: str, cell: _Cell) -> str:
    return source[cell.start + 1 : cell.end - 1].replace('""', '"') if cell.is_quoted else source[cell.start : cell.end]


def _as_it_is(source: str, cell: _Cell) -> str:
    return source[cell.start : cell.end]


def _quoted(delimiter: str, is_quoted: bool, translation: str) -> str:
    if is_quoted or any(character in translation for character in (delimiter, '"', "\r", "\n")):
        return '"' + translation.replace('"', '""') + '"'
    return translation


def _without_quotes(_: bool, translation: str) -> str:
    return on_one_line(translation)
