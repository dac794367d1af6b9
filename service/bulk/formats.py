"""The formats of tables: lines of text, JSON lines, comma- and tab-separated values, and Parquet."""

import csv
import functools
import gzip
import json
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, cast

from service.bulk.table import Answered, RecordRows, Rows, TableError, TableFormat, new_columns

TEXT_COLUMN = "text"  # of lines of text
_COMPRESSED = ".gz"
_MAX_CELL = 2**27  # characters; the module's own limit is 128 KiB
_READ_AT_ONCE = 2**20


def format_of(path: Path) -> TableFormat:
    """Return the format of a file by its ending, which `.gz` may follow; lines of text if it has none.

    Raises:
        TableError: the ending is unknown.
    """
    ending = Path(path.name.removesuffix(_COMPRESSED)).suffix.lower()
    if ending not in _BY_ENDING:
        known = ", ".join(filter(None, _BY_ENDING))
        raise TableError(f"{path} ends with {ending!r}; known are {known}, each also with .gz.")
    return _BY_ENDING[ending]


def is_table(path: Path) -> bool:
    """Return whether a file of a folder has a known ending, and is none that tools hide."""
    ending = Path(path.name.removesuffix(_COMPRESSED)).suffix.lower()
    return path.is_file() and not path.name.startswith(("_", ".")) and bool(ending) and ending in _BY_ENDING


def _count_lines(path: Path) -> int | None:
    if path.name.endswith(_COMPRESSED):
        return None
    with path.open("rb") as stream:
        return sum(block.count(b"\n") for block in iter(lambda: stream.read(_READ_AT_ONCE), b""))


def _opened(path: Path) -> BinaryIO:
    return cast(BinaryIO, gzip.open(path)) if path.name.endswith(_COMPRESSED) else path.open("rb")


def _chunks(
    path: Path, num_rows: int, rows: Callable[[BinaryIO], Iterable[tuple[dict[str, Any], str]]]
) -> Iterator[Rows]:
    """Yield the rows of a file, each with its problem, in chunks."""
    with _opened(path) as stream:
        read = iter(rows(stream))
        while chunk := list(islice(read, num_rows)):
            yield RecordRows(
                [row for row, _ in chunk], {index: problem for index, (_, problem) in enumerate(chunk) if problem}
            )


def _decoded(line: bytes, number: int) -> tuple[str, str]:
    try:
        return line.decode(), ""
    except UnicodeDecodeError as error:
        return "", f"line {number} is not UTF-8: byte {error.start + 1} is 0x{line[error.start]:02x}"


def _text_rows(stream: BinaryIO) -> Iterator[tuple[dict[str, Any], str]]:
    for number, line in enumerate(stream, start=1):
        text, problem = _decoded(line.removesuffix(b"\n").removesuffix(b"\r"), number)
        yield {TEXT_COLUMN: text}, problem


def _json_rows(stream: BinaryIO) -> Iterator[tuple[dict[str, Any], str]]:
    for number, line in enumerate(stream, start=1):
        text, problem = _decoded(line, number)
        if not problem and not text.strip():
            continue
        try:
            row = {} if problem else json.loads(text)
        except (ValueError, RecursionError) as error:
            row, problem = {}, f"line {number} is not JSON: {error}"
        if not isinstance(row, dict):
            row, problem = {}, f"line {number} is JSON, but no object"
        yield row, problem


def _csv_rows(stream: BinaryIO, delimiter: str) -> Iterator[tuple[dict[str, Any], str]]:
    csv.field_size_limit(_MAX_CELL)
    lines = (line.decode("utf-8", "replace") for line in stream)
    reader = csv.reader(lines, delimiter=delimiter)
    names = [name.removeprefix("\ufeff") for name in next(reader, [])]
    if len(set(names)) < len(names):
        raise TableError("two columns of the first record have the same name; rename one.")
    while (cells := _next_record(reader)) is not None:
        if not cells:  # an empty line
            continue
        problem = ""
        if len(cells) != len(names):
            problem = f"the record that ends in line {reader.line_num} has {len(cells)} cells, not {len(names)}"
        yield dict.fromkeys(names, "") | dict(zip(names, cells, strict=False)), problem


def _next_record(reader: Any) -> list[str] | None:
    try:
        return next(reader, None)
    except csv.Error as error:
        raise TableError(f"line {reader.line_num} is not as tables are written: {error}.") from None


def _write_text(path: Path, answered: Answered) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        file.writelines(each.text.replace("\r", " ").replace("\n", " ") + "\n" for each in answered.results)


def _write_json(path: Path, answered: Answered) -> None:
    # Half of a surrogate pair, which JSON may have, is written as JSON's escape of it.
    with path.open("w", encoding="utf-8", newline="", errors="backslashreplace") as file:
        file.writelines(json.dumps(each, ensure_ascii=False, default=str) + "\n" for each in answered.records())


def _write_csv(path: Path, answered: Answered, delimiter: str) -> None:
    names = [*answered.rows.names(), *new_columns(answered.translation_column)]
    with path.open("w", encoding="utf-8", newline="", errors="replace") as file:
        writer = csv.DictWriter(file, names, delimiter=delimiter, lineterminator="\r\n")
        writer.writeheader()
        writer.writerows({**each, "flags": " ".join(each["flags"])} for each in answered.records())


def _join_lines(path: Path, parts: Sequence[Path]) -> None:
    with path.open("wb") as file:
        for part in parts:
            with part.open("rb") as stream:
                shutil.copyfileobj(stream, file, _READ_AT_ONCE)


def _join_csv(path: Path, parts: Sequence[Path], delimiter: str) -> None:
    """Write the records of all parts, whose columns may differ: records in JSON need not have the same keys."""
    csv.field_size_limit(_MAX_CELL)
    columns: dict[str, None] = {}
    for part in parts:
        with part.open(encoding="utf-8", newline="") as stream:
            columns |= dict.fromkeys(next(csv.reader(stream, delimiter=delimiter), []))
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(columns), delimiter=delimiter, lineterminator="\r\n")
        writer.writeheader()
        for part in parts:
            with part.open(encoding="utf-8", newline="") as stream:
                writer.writerows(csv.DictReader(stream, delimiter=delimiter))


def _lines(name: str, ending: str, rows: Any, write: Any, join: Any = _join_lines) -> TableFormat:
    return TableFormat(name, ending, _count_lines, functools.partial(_chunks, rows=rows), write, join)


def _separated(name: str, ending: str, delimiter: str) -> TableFormat:
    read, write, join = (functools.partial(each, delimiter=delimiter) for each in (_csv_rows, _write_csv, _join_csv))
    return _lines(name, ending, read, write, join)


def _count_parquet(path: Path) -> int:
    from service.bulk.parquet import count  # pyarrow, an extra

    return count(path)


def _read_parquet(path: Path, num_rows: int) -> Iterator[Rows]:
    from service.bulk.parquet import read

    return read(path, num_rows)


def _write_parquet(path: Path, answered: Answered) -> None:
    from service.bulk.parquet import write

    write(path, answered)


def _join_parquet(path: Path, parts: Sequence[Path]) -> None:
    from service.bulk.parquet import join

    join(path, parts)


FORMATS = {
    each.name: each
    for each in (
        _lines("text", ".txt", _text_rows, _write_text),
        _lines("jsonl", ".jsonl", _json_rows, _write_json),
        _separated("csv", ".csv", ","),
        _separated("tsv", ".tsv", "\t"),
        TableFormat("parquet", ".parquet", _count_parquet, _read_parquet, _write_parquet, _join_parquet),
    )
}
_BY_ENDING = {"": FORMATS["text"], ".ndjson": FORMATS["jsonl"], **{each.ending: each for each in FORMATS.values()}}
