"""Tables in Parquet: types of other columns stay as they are. The only importer of pyarrow."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from service.bulk.table import Answered, Rows, TableError

# Explicit, so that a part in which every row failed has the same columns as the others.
_TYPES = {"flags": pa.list_(pa.string())}


@dataclass(frozen=True, slots=True)
class ArrowRows:
    """Rows of an Arrow table."""

    table: pa.Table

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def names(self) -> Sequence[str]:
        return list(self.table.column_names)

    def column(self, name: str) -> Sequence[Any]:
        return list(self.table.column(name).to_pylist())

    def problem(self, index: int) -> str:
        return ""

    def records(self) -> Sequence[dict[str, Any]]:
        return list(self.table.to_pylist())


def read(path: Path, num_rows: int) -> Iterator[ArrowRows]:
    with pq.ParquetFile(path) as file:
        waiting = file.schema_arrow.empty_table()
        if not file.metadata.num_rows:
            yield ArrowRows(waiting)
        for batch in file.iter_batches(batch_size=num_rows):
            waiting = pa.concat_tables([waiting, pa.Table.from_batches([batch])])
            while waiting.num_rows >= num_rows:
                yield ArrowRows(waiting.slice(0, num_rows))
                waiting = waiting.slice(num_rows)
        if waiting.num_rows:
            yield ArrowRows(waiting)


def count(path: Path) -> int:
    with pq.ParquetFile(path) as file:
        return int(file.metadata.num_rows)


def write(path: Path, answered: Answered) -> None:
    pq.write_table(with_results(answered), path)


def with_results(answered: Answered) -> pa.Table:
    rows = answered.rows
    table = rows.table if isinstance(rows, ArrowRows) else _table(rows)
    for name, values in answered.columns().items():
        table = table.append_column(name, pa.array(values, _TYPES.get(name, pa.string())))
    return table


def _table(rows: Rows) -> pa.Table:
    columns = {}
    for name in rows.names():
        try:
            columns[name] = pa.array(rows.column(name))
        except (pa.ArrowException, UnicodeEncodeError, OverflowError) as error:
            raise TableError(f"column {name!r} can't be written as Parquet: {error}; write JSON lines.") from None
    return pa.table(columns)


def join(path: Path, parts: Sequence[Path]) -> None:
    """Write one file of several, a row group for each of theirs; it has the columns of all of them."""
    try:
        schemas = [pq.read_schema(part) for part in parts] or [pa.schema([])]
        schema = pa.unify_schemas(schemas, promote_options="permissive")
    except pa.ArrowException as error:
        raise TableError(
            f"the parts can't be merged into one table: {error}; they are kept in {parts[0].parent}."
        ) from None
    with pq.ParquetWriter(path, schema) as writer:
        for part in parts:
            with pq.ParquetFile(part) as file:
                for number in range(file.num_row_groups):
                    tables = [schema.empty_table(), file.read_row_group(number)]
                    writer.write_table(pa.concat_tables(tables, promote_options="permissive"))
