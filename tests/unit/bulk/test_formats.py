"""Tables in every format: what is read is written, with the new columns, whatever the values."""

import csv
import gzip
import io
import json
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.bulk.formats import FORMATS, format_of, has_known_ending
from service.bulk.pipeline import RowResult
from service.bulk.table import Answered, TableError, check_columns, new_columns

GOOD = RowResult('Hallo,\n"Welt"\t!', "stop", ("numbers", "term"), source_language_code="en")
BAD = RowResult("", "", error="no")
TEXTS = st.text(st.characters(codec="utf-8"), max_size=20)


def answered(path: Path, num_rows: int = 100) -> Answered:
    (rows,) = format_of(path).read(path, num_rows)
    return Answered(rows, [GOOD if index % 2 == 0 else BAD for index in range(len(rows))], "translation")


@pytest.mark.parametrize("name", ["jsonl", "csv", "tsv", "parquet"])
@given(st.lists(TEXTS, min_size=1, max_size=5))
def test_rows_pass_through_every_format(name: str, texts: list[str]) -> None:
    with TemporaryDirectory() as folder:
        source = Path(folder) / "in.jsonl"
        source.write_text("".join(json.dumps({"id": str(n), "text": text}) + "\n" for n, text in enumerate(texts)))
        form = FORMATS[name]
        first, second = Path(folder) / f"1{form.ending}", Path(folder) / f"2{form.ending}"
        form.write(first, answered(source))
        form.join(second, [first, first])
        (rows,) = form.read(second, 1000)
        assert [row["id"] for row in rows.records()] == 2 * [str(n) for n in range(len(texts))]
        assert list(rows.column("text")) == 2 * texts
        assert rows.column("translation")[0] == GOOD.text
        assert [bool(error) for error in rows.column("error")] == 2 * [n % 2 == 1 for n in range(len(texts))]


@pytest.mark.parametrize("name", ["csv", "parquet"])
def test_columns_that_only_some_rows_have_stay(name: str, tmp_path: Path) -> None:
    source, form = tmp_path / "in.jsonl", FORMATS[name]
    source.write_text('no\n{"text": "a", "n": 1}\n{"text": "b", "late": "x"}\n{"text": "c", "n": 1.5}\n')
    parts = [tmp_path / f"{number}{form.ending}" for number in range(2)]
    for part, rows in zip(parts, format_of(source).read(source, 2), strict=True):
        form.write(part, Answered(rows, [GOOD, BAD], "translation"))
    form.join(tmp_path / f"out{form.ending}", parts)
    (rows,) = form.read(tmp_path / f"out{form.ending}", 10)
    assert [str(value or "") for value in rows.column("late")] == ["", "", "x", ""]
    assert [float(value or 0) for value in rows.column("n")] == [0, 1, 0, 1.5]
    assert [value or "" for value in rows.column("translation")] == [GOOD.text, "", GOOD.text, ""]


def test_values_that_parquet_has_no_type_for_are_refused(tmp_path: Path) -> None:
    source = tmp_path / "in.jsonl"
    source.write_text('{"text": "a", "n": 1}\n{"text": "b", "n": "x"}\n')
    with pytest.raises(TableError, match="column 'n' can't be written as Parquet"):
        FORMATS["parquet"].write(tmp_path / "out.parquet", answered(source))
    source.write_text('{"text": "a", "n": 36893488147419103232}\n')
    with pytest.raises(TableError, match="column 'n' can't be written as Parquet"):
        FORMATS["parquet"].write(tmp_path / "out.parquet", answered(source))


def test_lines_of_text_stay_lines(tmp_path: Path) -> None:
    path = tmp_path / "in.txt"
    path.write_bytes("one\r\ntwo\u2028still two\n\nfour".encode())
    (rows,) = format_of(path).read(path, 100)
    assert rows.column("text") == ["one", "two\u2028still two", "", "four"]
    FORMATS["text"].write(tmp_path / "out.txt", answered(path))
    assert (tmp_path / "out.txt").read_bytes().count(b"\n") == 4


@pytest.mark.parametrize("num_rows", [1, 2, 3, 7, 100])
@pytest.mark.parametrize("ending", [".txt", ".jsonl", ".csv", ".parquet", ".jsonl.gz"])
def test_chunks_have_the_same_rows_whatever_their_size(ending: str, num_rows: int, tmp_path: Path) -> None:
    path = tmp_path / f"in{ending}"
    texts = [f"line {number}" for number in range(10)]
    if ending == ".parquet":
        pq.write_table(pa.table({"text": texts}), path, row_group_size=4)
    else:
        content = {
            ".txt": "".join(f"{text}\n" for text in texts),
            ".csv": "text\n" + "".join(f"{text}\n" for text in texts),
        }.get(ending, "".join(json.dumps({"text": text}) + "\n" for text in texts))
        path.write_bytes(gzip.compress(content.encode()) if ending.endswith(".gz") else content.encode())
    chunks = list(format_of(path).read(path, num_rows))
    assert [text for rows in chunks for text in rows.column("text")] == texts
    assert {len(rows) for rows in chunks[:-1]} <= {num_rows}
    assert format_of(path).count(path) in ((None,) if ending.endswith(".gz") else (10, 11))


def test_what_is_no_row_is_that_rows_problem(tmp_path: Path) -> None:
    path = tmp_path / "in.jsonl"
    path.write_bytes(b'{"text": "a"}\n{"text": \n[1]\n\xff\n\n{"text": "b"}\n')
    (rows,) = format_of(path).read(path, 100)
    problems = [rows.problem(index) for index in range(len(rows))]
    assert [bool(problem) for problem in problems] == [False, True, True, True, False]
    assert "line 2 is not JSON" in problems[1]
    assert problems[2] == "line 3 is JSON, but not an object"
    assert problems[3] == "line 4 is not UTF-8: byte 1 is 0xff"


def test_a_record_with_more_or_fewer_cells_is_its_own_problem(tmp_path: Path) -> None:
    path = tmp_path / "in.csv"
    path.write_text('id,text\n1,"a\nb"\n2,c,d\n3\n')
    (rows,) = format_of(path).read(path, 100)
    assert [rows.problem(index) for index in range(3)] == [
        "",
        "the record on line 4 has 3 cells, not 2",
        "the record on line 5 has 1 cell, not 2",
    ]
    assert read(path, b"sep=;\nid;text\n1\n")[1] == ["the record on line 3 has 1 cell, not 2"]
    assert rows.column("text")[0] == "a\nb"


def test_types_of_parquet_stay(tmp_path: Path) -> None:
    source = pa.table(
        {
            "when": pa.array([datetime(2026, 1, 2, tzinfo=UTC)], pa.timestamp("ns", "UTC")),
            "n": pa.array([2**63], pa.uint64()),
            "text": ["a"],
        }
    )
    pq.write_table(source, tmp_path / "in.parquet")
    FORMATS["parquet"].write(tmp_path / "out.parquet", answered(tmp_path / "in.parquet"))
    written = pq.read_table(tmp_path / "out.parquet")
    assert written.select(source.column_names).equals(source)
    assert written.schema.field("flags").type == pa.list_(pa.string())


def read(path: Path, content: bytes, num_rows: int = 100) -> tuple[list[dict[str, Any]], list[str]]:
    """Return the rows of a file, and the problem of each."""
    path.write_bytes(content)
    chunks = list(format_of(path).read(path, num_rows))
    problems = [rows.problem(index) for rows in chunks for index in range(len(rows))]
    return [dict(row) for rows in chunks for row in rows.records()], problems


@pytest.mark.parametrize("ending", [".txt", ".csv", ".jsonl", ".csv.gz"])
def test_the_mark_of_utf_8_is_no_text_and_utf_16_is_refused(ending: str, tmp_path: Path) -> None:
    packed = gzip.compress if ending.endswith(".gz") else bytes
    content = {".txt": "a\n", ".jsonl": '{"text": "a"}\n'}.get(ending, "text\na\n")
    assert read(tmp_path / f"in{ending}", packed(content.encode("utf-8-sig"))) == ([{"text": "a"}], [""])
    with pytest.raises(TableError, match="UTF-16, not UTF-8; convert it"):
        read(tmp_path / f"in{ending}", packed(content.encode("utf-16")))


def test_cells_that_are_not_utf_8_are_their_rows_problem(tmp_path: Path) -> None:
    rows, problems = read(tmp_path / "in.csv", "id,text\né,a\n2,b\n".encode("latin-1"))
    assert rows == [{"id": "\ufffd", "text": "a"}, {"id": "2", "text": "b"}]
    assert problems == ["the record on line 2 is not UTF-8", ""]


def test_tables_of_spreadsheets(tmp_path: Path) -> None:
    expected = [{"id": "1", "text": "a\r\nb"}, {"id": "2", "text": '"c", d'}]
    content = 'id,text,,\r\n1,"a\r\nb",,\r\n\r\n2,"""c"", d",,,\r\n'
    assert read(tmp_path / "in.csv", content.encode()) == (expected, ["", ""])
    semicolons = 'id;text\r1;"a\r\nb"\r2;"""c"", d"\r'  # and line ends as they once were
    assert read(tmp_path / "in.csv", semicolons.encode()) == (expected, ["", ""])
    for told in ("id\ttext", "id|text", "sep=|\r\nid|text", "\ufeffsep=;\nid;text"):
        rows = f'{told}\r\n1{told[-5]}"a, b"\r\n'.encode()
        assert read(tmp_path / "in.csv", rows) == ([{"id": "1", "text": "a, b"}], [""])
    assert read(tmp_path / "in.csv", b'text\n""\n\nb\n') == ([{"text": ""}, {"text": "b"}], ["", ""])


@pytest.mark.parametrize("quoting", [csv.QUOTE_MINIMAL, csv.QUOTE_ALL])
@pytest.mark.parametrize(("ending", "delimiter"), [(".csv", ","), (".csv", ";"), (".tsv", "\t")])
def test_what_another_writer_quotes_is_read(ending: str, delimiter: str, quoting: Any, tmp_path: Path) -> None:
    random = Random(7)
    names = ["id", "text", "more", "last"]
    for _ in range(50):
        cells = [
            "".join(random.choices('"ab\n\t,;é', [1, 8, 8, 1, 1, 1, 1, 1], k=random.randint(0, 9))) for _ in range(16)
        ]
        rows = [[f"{number}", *cells[2 * number : 2 * number + 2], "x"] for number in range(8)]
        file = io.StringIO()
        csv.writer(file, delimiter=delimiter, quoting=quoting).writerows([names, *rows])
        found, _ = read(tmp_path / f"in{ending}", file.getvalue().encode(), 3)
        assert found == [dict(zip(names, row, strict=True)) for row in rows]


def test_quotes_of_corpora_are_characters(tmp_path: Path) -> None:
    texts = ['"Go," he said.', '"Open', 'Closed"', '5" wide', '"', "x"]
    content = "text\tn\n" + "".join(f"{text}\t{n}\n" for n, text in enumerate(texts))
    content += "".join(f"{n}\t{text}\n" for n, text in enumerate(texts))
    rows, problems = read(tmp_path / "in.tsv", content.encode())
    assert [row["text"] for row in rows[:6]] == [row["n"] for row in rows[6:]] == texts
    assert not any(problems)


def test_quotes_without_an_end_take_no_other_row(tmp_path: Path) -> None:
    rows, problems = read(tmp_path / "in.csv", b'id,text\n1,"a," b\n2,"c\n3,d\n')
    assert [row["text"] for row in rows[1:]] == ['"c', "d"]
    assert [bool(problem) for problem in problems] == [True, False, False]


@pytest.mark.parametrize(("ending", "output"), [(".csv", "csv"), (".csv", "parquet"), (".parquet", "parquet")])
def test_tables_without_rows_keep_their_columns(ending: str, output: str, tmp_path: Path) -> None:
    source, form = tmp_path / f"in{ending}", FORMATS[output]
    if ending == ".parquet":
        pq.write_table(pa.table({"id": pa.array([], pa.int8()), "text": pa.array([], pa.string())}), source)
    else:
        source.write_text("id,text\n")
    form.write(tmp_path / f"part{form.ending}", answered(source))
    form.join(tmp_path / f"out{form.ending}", [tmp_path / f"part{form.ending}"])
    (rows,) = form.read(tmp_path / f"out{form.ending}", 10)
    assert (len(rows), list(rows.names())) == (0, ["id", "text", *new_columns("translation")])
    form.join(tmp_path / f"none{form.ending}", [])  # JSON lines without a line have no columns
    assert not any(map(len, form.read(tmp_path / f"none{form.ending}", 10)))


def test_outputs_are_compressed_as_their_names_say(tmp_path: Path) -> None:
    source = tmp_path / "in.jsonl"
    source.write_text('{"text": "a"}\n')
    for name in ("jsonl", "csv", "text"):
        form = FORMATS[name]
        form.write(tmp_path / f"part{form.ending}", answered(source))
        form.join(tmp_path / f"out{form.ending}.gz", 2 * [tmp_path / f"part{form.ending}"])
        (rows,) = form.read(tmp_path / f"out{form.ending}.gz", 10)
        assert len(rows) >= 2


def test_values_in_cells_are_json(tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_text('{"text": "a", "t": true, "l": ["é", null], "n": 1.5, "none": null}\n')
    FORMATS["csv"].write(tmp_path / "out.csv", answered(tmp_path / "in.jsonl"))
    (row,), _ = read(tmp_path / "out.csv", (tmp_path / "out.csv").read_bytes())
    assert [row[name] for name in ("t", "l", "n", "none")] == ["true", '["é", null]', "1.5", ""]


def test_two_columns_of_a_name_are_refused(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("id,text,id\n1,a,2\n")
    pq.write_table(pa.table([["a"], [1], [2]], names=["text", "n", "n"]), tmp_path / "in.parquet")
    for name, told in (("in.csv", "'id'"), ("in.parquet", "'n'")):
        (rows,) = format_of(tmp_path / name).read(tmp_path / name, 10)
        with pytest.raises(TableError, match=f"two columns have the name {told}; rename one"):
            check_columns(rows, ["text"], [])


def test_missing_and_present_columns_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "in.jsonl"
    path.write_text('{"id": 1, "error": "x"}\n')
    (rows,) = format_of(path).read(path, 10)
    with pytest.raises(TableError, match="no column 'text'; the columns are 'id', 'error'"):
        check_columns(rows, ["text"], [])
    with pytest.raises(TableError, match="already has a column 'error'"):
        check_columns(rows, ["id"], new_columns("translation"))


def test_unknown_endings_are_refused(tmp_path: Path) -> None:
    with pytest.raises(TableError, match=r"ends with '\.xlsx'; supported: \.ndjson"):
        format_of(tmp_path / "a.xlsx")
    assert not has_known_ending(tmp_path / "a.xlsx")
    assert has_known_ending(tmp_path / "a.parquet")
