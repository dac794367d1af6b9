"""A run continues whatever an earlier one has left: every row once, in order."""

import asyncio
import csv
import gzip
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.bulk.formats import FORMATS
from service.bulk.parts import OtherRun, Parts
from service.bulk.pipeline import RowResult
from service.bulk.run import Job, Totals, Work, answer, run
from service.bulk.shards import Shard
from service.bulk.table import RecordRows, TableError
from service.domain.errors import Unavailable
from service.domain.translation import TranslationRequest

JOB = Job("text", "translation", "en", "de", "", "", TranslationRequest((), "", ""))


class Upper:
    """Translates by upper case; ends as a process does that is killed, after a number of texts."""

    def __init__(self, fails_after: int = 1_000_000, version: str = "1") -> None:
        self.num_texts = 0
        self._fails_after = fails_after
        self._version = version

    def versions(self) -> dict[str, str]:
        return {"model/1": self._version}

    async def translate(
        self, texts: Sequence[str], source: str, target: str, request: TranslationRequest | None = None
    ) -> list[RowResult]:
        if list(texts) == ["a"]:  # a trial of the options
            return [RowResult("A", "stop")]
        self.num_texts += len(texts)
        if self.num_texts > self._fails_after:
            raise Unavailable("the engine failed")
        return [RowResult(f"{source}-{target} {text.upper()}", "stop") for text in texts]


def write_inputs(folder: Path, counts: Sequence[int]) -> dict[str, Path]:
    inputs = {}
    for file, count in enumerate(counts):
        path = folder / f"{file}.jsonl"
        path.write_text("".join(json.dumps({"id": f"{file}-{n}", "text": f"text {n}"}) + "\n" for n in range(count)))
        inputs[path.name] = path
    return inputs


def work_of(folder: Path, inputs: dict[str, Path], shard: Shard | None = None, **fields: Any) -> Work:
    parts = Parts(folder / "out.jsonl.parts", FORMATS["jsonl"])
    return replace(Work(inputs, parts, FORMATS["jsonl"], JOB, shard or Shard(), rows_per_part=3), **fields)


def names_in(folder: Path) -> set[str]:
    return {each.name for each in folder.iterdir()}


def rows_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.integers(0, 10), min_size=1, max_size=4),
    st.lists(st.integers(0, 30), max_size=4),
    st.integers(1, 5),
    st.sets(st.integers(0, 20), max_size=3),
)
def test_every_row_is_there_once_after_any_number_of_ends(
    counts: list[int], ends: list[int], num_shards: int, spoiled: set[int]
) -> None:
    asyncio.run(run_to_the_end(counts, ends, num_shards, spoiled))


async def run_to_the_end(counts: list[int], ends: list[int], num_shards: int, spoiled: set[int]) -> None:
    with TemporaryDirectory() as name:
        folder = Path(name)
        inputs = write_inputs(folder, counts)
        for number, end in enumerate(ends):
            try:
                await run(Upper(end), work_of(folder, inputs, Shard(number % num_shards, num_shards)), lambda _: None)
            except Unavailable:
                for index, path in enumerate(sorted((folder / "out.jsonl.parts").glob("0*.jsonl"))):
                    if index in spoiled:  # killed while it wrote
                        path.rename(path.with_name(f".{path.name}.0"))
        work = work_of(folder, inputs)
        totals = await run(Upper(), work, lambda _: None)
        work.parts.tidy()
        work.parts.join(folder / "out.jsonl")
        rows = rows_of(folder / "out.jsonl")
        assert [row["id"] for row in rows] == [f"{file}-{n}" for file, count in enumerate(counts) for n in range(count)]
        assert all(row["translation"] == f"en-de {row['text'].upper()}" for row in rows)
        assert totals.num_rows == len(rows)
        assert not work.parts.is_begun()
        assert names_in(folder) == {*inputs, "out.jsonl"}


async def test_finished_parts_are_not_translated_again(tmp_path: Path) -> None:
    inputs = write_inputs(tmp_path, [60])
    with pytest.raises(Unavailable):
        await run(Upper(fails_after=40), work_of(tmp_path, inputs), lambda _: None)
    again = Upper()
    seen: list[Totals] = []
    totals = await run(again, work_of(tmp_path, inputs), seen.append)
    assert (totals.num_rows, totals.num_kept) == (60, 60 - again.num_texts)
    assert 0 < totals.num_kept < 60
    assert seen


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"rows_per_part": 4}, "rows per part"),
        ({"job": Job("text", "translation", "en", "fr", "", "", JOB.request)}, "options"),
    ],
)
async def test_another_command_does_not_continue_a_run(change: dict[str, Any], told: str, tmp_path: Path) -> None:
    inputs = write_inputs(tmp_path, [4])
    await run(Upper(), work_of(tmp_path, inputs), lambda _: None)
    with pytest.raises(OtherRun, match=f"begun with different {told}"):
        await run(Upper(), work_of(tmp_path, inputs, **change), lambda _: None)
    with pytest.raises(OtherRun, match="begun with different models"):
        await run(Upper(version="2"), work_of(tmp_path, inputs), lambda _: None)
    (path,) = inputs.values()
    written = path.read_bytes()
    for other in (written[:-2], written[:-2] + b"?\n", b"?" + written[1:]):
        path.write_bytes(other)
        with pytest.raises(OtherRun, match=r"begun with different inputs, such as 0\.jsonl"):
            await run(Upper(), work_of(tmp_path, inputs), lambda _: None)


async def test_inputs_without_a_part_may_be_mended_and_added(tmp_path: Path) -> None:
    inputs = write_inputs(tmp_path, [4, 0])
    (tmp_path / "1.jsonl").write_text('{"id": 1}\n')
    with pytest.raises(TableError, match=r"1\.jsonl: there is no column 'text'; the columns are 'id'"):
        await run(Upper(), work_of(tmp_path, inputs), lambda _: None)
    inputs = write_inputs(tmp_path, [4, 1, 2])
    totals = await run(Upper(), work_of(tmp_path, inputs), lambda _: None)
    assert totals.num_rows == 7
    with pytest.raises(OtherRun, match=r"begun with different inputs, such as 2\.jsonl"):
        await run(Upper(), work_of(tmp_path, write_inputs(tmp_path, [4, 1])), lambda _: None)


async def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    inputs = write_inputs(tmp_path, [4])
    lines = (tmp_path / "0.jsonl").read_bytes() * 20_000
    (tmp_path / "1.jsonl.gz").write_bytes(gzip.compress(lines)[:-2000])
    (tmp_path / "2.txt.gz").write_bytes(b"no")
    for name, told in (("1.jsonl.gz", "ended before"), ("2.txt.gz", "Not a gzipped file")):
        parts = Parts(tmp_path / f"of {name}", FORMATS["jsonl"])
        work = work_of(tmp_path, {**inputs, name: tmp_path / name}, rows_per_part=1000, parts=parts)
        with pytest.raises(TableError, match=f"{name}: .*{told}"):
            await run(Upper(), work, lambda _: None)
    (tmp_path / "3.parquet").write_bytes(b"no")
    with pytest.raises(TableError, match=r"3\.parquet: .*Parquet"):
        work_of(tmp_path, {"3.parquet": tmp_path / "3.parquet"}).num_rows()


async def test_records_need_not_have_the_column_each(tmp_path: Path) -> None:
    path = tmp_path / "in.jsonl"
    path.write_text('{"text": "b"}\n' + 4 * '{"id": 1}\n' + '{"text": "c"}\n')
    work = work_of(tmp_path, {"in.jsonl": path}, rows_per_part=2)
    assert (await run(Upper(), work, lambda _: None)).num_failed == 4


async def test_what_could_not_be_written_is_deleted(tmp_path: Path) -> None:
    def fill(path: Path) -> None:
        path.write_text("half")
        raise OSError(28, "No space left on device")

    parts = work_of(tmp_path, write_inputs(tmp_path, [1])).parts
    parts.begin({"inputs": {}})
    with pytest.raises(OSError, match="No space"):
        parts.write(0, 0, fill)
    assert names_in(parts.folder) == {"_run.json"}


async def test_only_parts_are_deleted(tmp_path: Path) -> None:
    work = work_of(tmp_path, write_inputs(tmp_path, [4]))
    await run(Upper(), work, lambda _: None)
    (work.parts.folder / ".mine").mkdir()
    (work.parts.folder / "notes.txt").write_text("mine")
    work.parts.tidy()
    work.parts.discard()
    assert names_in(work.parts.folder) == {".mine", "notes.txt"}


async def test_parts_that_another_shard_writes_meanwhile_are_of_the_same_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inputs = write_inputs(tmp_path, [4])
    work = work_of(tmp_path, inputs)
    exists = Path.exists

    def begins_meanwhile(path: Path) -> bool:
        found = exists(path)
        if path.name == "_run.json" and not found:
            path.write_text(json.dumps(work.record({"model/1": "1"})))
            (path.parent / "000000-00000001.jsonl").write_text("{}\n")
        return found

    monkeypatch.setattr(Path, "exists", begins_meanwhile)
    totals = await run(Upper(), work, lambda _: None)
    assert totals.num_kept == 1


async def test_a_folder_of_something_else_is_left_alone(tmp_path: Path) -> None:
    inputs = write_inputs(tmp_path, [1])
    work = work_of(tmp_path, inputs, parts=Parts(tmp_path, FORMATS["jsonl"]))
    with pytest.raises(OtherRun, match="has files that 'dragoman bulk' did not write"):
        await run(Upper(), work, lambda _: None)
    work.parts.discard()
    assert inputs["0.jsonl"].exists()


@pytest.mark.parametrize(("num_shards", "counts"), [(1, [12]), (2, [8, 4]), (3, [4, 4, 4]), (6, [2] * 6)])
def test_a_shard_counts_its_own_rows(num_shards: int, counts: list[int], tmp_path: Path) -> None:
    inputs = write_inputs(tmp_path, [4, 4, 4])
    assert [work_of(tmp_path, inputs, Shard(each, num_shards)).num_rows() for each in range(num_shards)] == counts


async def test_rows_fail_alone_and_have_languages_of_their_own(tmp_path: Path) -> None:
    path = tmp_path / "in.jsonl"
    path.write_text(
        '{"text": "aa", "to": "fr"}\n{"text": null}\n{"text": 5}\nno\n{"text": "b", "to": ""}\n{"text": "c", "to": 1}\n'
        '{"text": "\\ud83d"}\n'
    )
    job = Job("text", "translation", "en", "de", "", "to", JOB.request)
    work = work_of(tmp_path, {"in.jsonl": path}, job=job, rows_per_part=10)
    totals = await run(Upper(), work, lambda _: None)
    work.parts.join(tmp_path / "out.jsonl")
    rows = rows_of(tmp_path / "out.jsonl")
    assert [row["translation"] for row in rows] == ["en-fr AA", None, None, None, "en-de B", None, None]
    assert rows[-1]["text"] == "\ud83d"
    assert [row["error"] for row in rows] == [
        None,
        "column 'text' is empty (null)",
        "column 'text' holds int, not text",
        "line 4 is not JSON: Expecting value: line 1 column 1 (char 0)",
        None,
        "column 'to' has no language code, and there is no --to",
        "column 'text' has half of a surrogate pair; write both halves",
    ]
    assert totals.num_failed == 5


async def test_a_missing_column_ends_the_run(tmp_path: Path) -> None:
    inputs = write_inputs(tmp_path, [1])
    job = Job("body", "translation", "en", "de", "", "", JOB.request)
    with pytest.raises(TableError, match="no column 'body'"):
        await run(Upper(), work_of(tmp_path, inputs, job=job), lambda _: None)


FORMULAS = ("=1+1", "+1", "-5 °", "@a", "\t=1", "\r=1", "\n=1", "＝1", "＠a")
TEXTS = ("a=1", "'=1", " 1", "", "*", "–5", "1-1")


class Same(Upper):
    async def translate(
        self, texts: Sequence[str], source: str, target: str, request: TranslationRequest | None = None
    ) -> list[RowResult]:
        return [RowResult(text, "stop") for text in texts]


@pytest.mark.parametrize("escapes", [True, False])
@pytest.mark.parametrize("form", ["csv", "tsv"])
def test_translations_that_a_spreadsheet_would_compute_are_escaped(form: str, escapes: bool, tmp_path: Path) -> None:
    job = replace(JOB, escapes_formulas=escapes)
    answered = asyncio.run(answer(Same(), RecordRows([{"text": text} for text in FORMULAS + TEXTS], {}), job))
    path = tmp_path / f"out.{form}"
    FORMATS[form].write(path, answered)
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="," if form == "csv" else "\t"))
    assert [row["text"] for row in rows] == [*FORMULAS, *TEXTS]  # what came in stays as it is
    expected = [f"'{text}" for text in FORMULAS] if escapes else FORMULAS
    assert [row["translation"] for row in rows] == [*expected, *TEXTS]
