"""The formats of tables: lines of text, JSON lines, comma- and tab-separated values, and Parquet."""

import codecs
import csv
import functools
import gzip
import io
import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, count, islice
from pathlib import Path
from typing import Any, BinaryIO

from service.bulk.table import Answered, RecordRows, Rows, TableError, TableFormat
from service.bundle.fields import is_unicode
from service.documents.tables import DELIMITERS, MAX_CELL, SEP_LINE, split_records
from service.domain.errors import counted

TEXT_COLUMN = "text"  # of lines of text
_COMPRESSED = ".gz"
_READ_AT_ONCE = 2**20


def format_of(path: Path) -> TableFormat:
    """Return the format of a file by its ending, which `.gz` may follow; lines of text if it has none."""
    ending = _ending(path)
    if ending not in _BY_ENDING:
        known = ", ".join(filter(None, _BY_ENDING))
        raise TableError(f"{path} ends with {ending!r}; supported: {known}, each also with .gz.")
    return _BY_ENDING[ending]


def has_known_ending(path: Path) -> bool:
    ending = _ending(path)
    return bool(ending) and ending in _BY_ENDING


def _ending(path: Path) -> str:
    return Path(path.name.removesuffix(_COMPRESSED)).suffix.lower()


def _count_lines(path: Path) -> int | None:
    if path.name.endswith(_COMPRESSED):
        return None
    with path.open("rb") as stream:
        return sum(block.count(b"\n") for block in iter(lambda: stream.read(_READ_AT_ONCE), b""))


def _open(path: Path, mode: str, **settings: Any) -> Any:
    return (gzip.open if path.name.endswith(_COMPRESSED) else open)(path, mode, **settings)


_json = functools.partial(json.dumps, ensure_ascii=False, default=str)
_created = functools.partial(_open, mode="wt", encoding="utf-8", newline="")
_Records = Iterator[tuple[dict[str, Any], str]]  # each with its problem


def _chunks(path: Path, num_rows: int, rows: Callable[..., tuple[Sequence[str], _Records]]) -> Iterator[Rows]:
    """Yield the rows of a file in chunks; one without rows if it has columns nevertheless."""
    # Bytes that are not UTF-8 become surrogates in `lines`, by which their rows are found.
    with _open(path, "rb") as stream, io.TextIOWrapper(stream, "utf-8", "surrogateescape", newline="") as lines:
        mark = stream.peek(3)[:3]
        if mark.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            raise TableError("it is UTF-16, not UTF-8; convert it: iconv -f UTF-16 -t UTF-8.")
        stream.read(3 if mark == codecs.BOM_UTF8 else 0)
        names, records = rows(stream, lines)
        for number in count():
            chunk = list(islice(records, num_rows))
            if not chunk and (number or not names):
                return
            problems = {index: problem for index, (_, problem) in enumerate(chunk) if problem}
            yield RecordRows([row for row, _ in chunk], problems, names)


def _decoded(line: bytes, number: int) -> tuple[str, str]:
    try:
        return line.decode(), ""
    except UnicodeDecodeError as error:
        return "", f"line {number} is not UTF-8: byte {error.start + 1} is 0x{line[error.start]:02x}"


def _text_rows(stream: BinaryIO) -> _Records:
    for number, line in enumerate(stream, start=1):
        text, problem = _decoded(line.removesuffix(b"\n").removesuffix(b"\r"), number)
        yield {TEXT_COLUMN: text}, problem


def _json_rows(stream: BinaryIO) -> _Records:
    for number, line in enumerate(stream, start=1):
        text, problem = _decoded(line, number)
        if not problem and not text.strip():
            continue
        try:
            row = {} if problem else json.loads(text)
        except (ValueError, RecursionError) as error:
            row, problem = {}, f"line {number} is not JSON: {error}"
        if not isinstance(row, dict):
            row, problem = {}, f"line {number} is JSON, but not an object"
        yield row, problem


def _csv_rows(_stream: BinaryIO, lines: Iterator[str], delimiter: str) -> tuple[Sequence[str], _Records]:
    first, may_be_plain = next(lines, ""), delimiter == "\t"
    if sep_line := SEP_LINE.match(first):
        delimiter, first = sep_line[1], next(lines, "")
    elif delimiter == "," and "," not in first:  # a spreadsheet has others where numbers have a decimal comma
        delimiter = next((each for each in DELIMITERS if each in first), delimiter)
    found = split_records(chain([first], lines), delimiter, may_be_plain=may_be_plain and first[:1] != '"')
    records = ((number + bool(sep_line), cells) for number, text, cells in found if text.strip("\r\n"))
    _, names = next(records, (0, []))
    while names and not names[-1]:  # spreadsheets write as many cells as the widest row ever had
        names.pop()
    return names, (_named(names, *record) for record in records)


def _named(names: Sequence[str], number: int, cells: list[str]) -> tuple[dict[str, Any], str]:
    while len(cells) > len(names) and not cells[-1]:
        cells.pop()
    told = "" if len(cells) == len(names) else f"has {counted(len(cells), 'cell')}, not {len(names)}"
    if not is_unicode("".join(cells)):
        cells, told = [cell.encode(errors="surrogateescape").decode(errors="replace") for cell in cells], "is not UTF-8"
    problem = f"the record on line {number} {told}" if told else ""
    return dict.fromkeys(names, "") | dict(zip(names, cells, strict=False)), problem


def _write_text(path: Path, answered: Answered) -> None:
    with _created(path) as file:
        file.writelines(each.text.replace("\r", " ").replace("\n", " ") + "\n" for each in answered.results)


def _write_json(path: Path, answered: Answered) -> None:
    # Half of a surrogate pair, which JSON may have, is written as JSON's escape of it.
    with _created(path, errors="backslashreplace") as file:
        file.writelines(_json({**row, **new}) + "\n" for row, new in answered.records())


def _write_csv(path: Path, answered: Answered, delimiter: str) -> None:
    names = [*answered.rows.names(), *answered.columns()]
    with _created(path, errors="replace") as file:
        writer = csv.DictWriter(file, names, delimiter=delimiter, lineterminator="\r\n")
        writer.writeheader()
        for row, new in answered.records():
            cells = {name: _json(each) if isinstance(each, bool | list | dict) else each for name, each in row.items()}
            writer.writerow({**cells, **new, "flags": " ".join(new["flags"])})


def _join_lines(path: Path, parts: Sequence[Path]) -> None:
    with _open(path, "wb") as file:
        for part in parts:
            with part.open("rb") as stream:
                shutil.copyfileobj(stream, file, _READ_AT_ONCE)


def _join_csv(path: Path, parts: Sequence[Path], delimiter: str) -> None:
    """Write the records of all parts, whose columns may differ: records in JSON need not have the same keys."""
    csv.field_size_limit(MAX_CELL)
    columns: dict[str, None] = {}
    for part in parts:
        with part.open(encoding="utf-8", newline="") as stream:
            columns |= dict.fromkeys(next(csv.reader(stream, delimiter=delimiter), []))
    with _created(path) as file:
        writer = csv.DictWriter(file, list(columns), delimiter=delimiter, lineterminator="\r\n")
        if columns:
            writer.writeheader()
        for part in parts:
            with part.open(encoding="utf-8", newline="") as stream:
                writer.writerows(csv.DictReader(stream, delimiter=delimiter))


def _lines(name: str, ending: str, rows: Any, write: Any, join: Any = _join_lines) -> TableFormat:
    return TableFormat(name, ending, _count_lines, functools.partial(_chunks, rows=rows), write, join)


def _separated(name: str, ending: str, delimiter: str) -> TableFormat:
    read, write, join = (functools.partial(each, delimiter=delimiter) for each in (_csv_rows, _write_csv, _join_csv))
    return _lines(name, ending, read, write, join)


def _parquet(name: str, *arguments: Any) -> Any:
    from service.bulk import parquet  # pyarrow, an extra

    return getattr(parquet, name)(*arguments)


FORMATS = {
    each.name: each
    for each in (
        _lines("text", ".txt", lambda stream, _: ([TEXT_COLUMN], _text_rows(stream)), _write_text),
        _lines("jsonl", ".jsonl", lambda stream, _: ((), _json_rows(stream)), _write_json),
        _separated("csv", ".csv", ","),
        _separated("tsv", ".tsv", "\t"),
        TableFormat(
            "parquet", ".parquet", *(functools.partial(_parquet, each) for each in ("count", "read", "write", "join"))
        ),
    )
}
_BY_ENDING = {"": FORMATS["text"], ".ndjson": FORMATS["jsonl"], **{each.ending: each for each in FORMATS.values()}}
