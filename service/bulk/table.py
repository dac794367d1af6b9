"""Rows of tables, whatever the format of the file: read in chunks, written with what became of each row."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from service.bulk.pipeline import RowResult


class TableError(Exception):
    """A file that is not in its format, or lacks a column; a message of one line."""


def check_columns(rows: "Rows", read: Iterable[str], written: Iterable[str]) -> None:
    """Check that the rows have the columns to read, and none of those to write."""
    names = rows.names()
    if twice := [name for number, name in enumerate(names) if name in names[:number]]:
        raise TableError(f"two columns have {f'the name {twice[0]!r}' if twice[0] else 'no name'}; rename one.")
    if names and (missing := [name for name in read if name not in names]):
        raise TableError(f"there is no column {missing[0]!r}; the columns are {', '.join(map(repr, names))}.")
    if present := [name for name in written if name in names]:
        raise TableError(f"the table already has a column {present[0]!r}, a name that the output needs; rename it.")


class Rows(Protocol):
    """Some rows of a table, in order."""

    def __len__(self) -> int: ...

    def names(self) -> Sequence[str]: ...

    def column(self, name: str) -> Sequence[Any]: ...

    def problem(self, index: int) -> str:
        """Return why a row can't be read; empty if it can."""

    def records(self) -> Sequence[dict[str, Any]]: ...


def new_columns(translation_column: str) -> tuple[str, ...]:
    return (translation_column, "finish_reason", "flags", "source_language", "error")


@dataclass(frozen=True, slots=True)
class Answered:
    """Rows with what became of them; the translations form the column `translation_column`."""

    rows: Rows
    results: Sequence["RowResult"]
    translation_column: str

    def columns(self) -> dict[str, list[Any]]:
        values: list[tuple[Any, ...]] = [
            (
                None if each.error else each.text,
                each.finish_reason or None,
                list(each.flags),
                each.source_language_code or None,
                each.error or None,
            )
            for each in self.results
        ]
        names = new_columns(self.translation_column)
        return {name: [row[number] for row in values] for number, name in enumerate(names)}

    def records(self) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
        columns = self.columns()
        for record, values in zip(self.rows.records(), zip(*columns.values(), strict=True), strict=True):
            yield record, dict(zip(columns, values, strict=True))


@dataclass(frozen=True, slots=True)
class TableFormat:
    """Reading and writing of a format.

    `count` estimates a file's rows, `None` if only reading it would tell; `read` yields them in chunks; `write` writes
    a new file; `join` writes one of several, in order.
    """

    name: str
    ending: str
    count: Callable[[Path], int | None]
    read: Callable[[Path, int], Iterator[Rows]]
    write: Callable[[Path, Answered], None]
    join: Callable[[Path, Sequence[Path]], None]


@dataclass(frozen=True, slots=True)
class RecordRows:
    """Rows as records; `problems` are those of rows that can't be read, by index. Only some formats name columns."""

    rows: Sequence[dict[str, Any]]
    problems: Mapping[int, str]
    columns: Sequence[str] = ()

    def __len__(self) -> int:
        return len(self.rows)

    def names(self) -> Sequence[str]:
        return self.columns or list(dict.fromkeys(name for row in self.rows for name in row))

    def column(self, name: str) -> Sequence[Any]:
        return [row.get(name) for row in self.rows]

    def problem(self, index: int) -> str:
        return self.problems.get(index, "")

    def records(self) -> Sequence[dict[str, Any]]:
        return self.rows
