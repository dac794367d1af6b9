"""What an actor of Ray does, without Ray: tables in, tables with results out, several at a time from one engine."""

import asyncio

import pyarrow as pa
import pytest

from service.bulk.ray_data import _Translate
from service.bulk.run import Job
from service.bulk.table import TableError, new_columns
from service.domain.translation import TranslationRequest
from tests.servers import REPOSITORY


def actor(column: str = "text") -> _Translate:
    job = Job(column, "translation", "en", "de", "", "", TranslationRequest((), "", ""))
    return _Translate(str(REPOSITORY / "models" / "en-de" / "1"), job, {"num_threads": 1})


async def answers(actor: _Translate, *tables: pa.Table) -> list[pa.Table]:
    async def answer(table: pa.Table) -> pa.Table:
        (translated,) = [each async for each in actor(table)]
        return translated

    try:
        return await asyncio.gather(*map(answer, tables))
    finally:
        await (await actor._loaded()).__aexit__(None, None, None)


def test_batches_side_by_side_share_one_engine_and_keep_their_rows() -> None:
    one = pa.table({"id": [1, 2, 3], "text": ["Good morning.", None, "Thank you very much."]})
    two = pa.table({"id": [4], "text": ["Good morning."]})
    first, second = asyncio.run(answers(actor(), one, two))
    assert first.column_names == ["id", "text", *new_columns("translation")]
    assert first.schema == second.schema  # also where no row has an error: Parquet files of one folder must agree
    assert first["id"].to_pylist() == [1, 2, 3]
    assert [bool(error) for error in first["error"].to_pylist()] == [False, True, False]
    assert second["translation"].to_pylist() == first["translation"].to_pylist()[:1] == ["Guten Morgen."]


def test_a_missing_column_is_named() -> None:
    with pytest.raises(TableError, match="no column 'body'"):
        asyncio.run(answers(actor("body"), pa.table({"text": ["Good morning."]})))
