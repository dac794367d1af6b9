"""Records of delimited text: each line of a corpus, and what spreadsheets write."""

import csv
import io

from hypothesis import given
from hypothesis import strategies as st

from service.documents.records import split_records

PLAIN = st.text('ab" ,é', max_size=6)
CELLS = st.text('ab" ,é\r\n', max_size=6)
WIDTHS = st.integers(2, 4)


def records(source: str) -> list[tuple[int, str, list[str]]]:
    return list(split_records(io.StringIO(source, newline=""), "\t", may_be_plain=True))


@given(WIDTHS.flatmap(lambda width: st.lists(st.lists(PLAIN, min_size=width, max_size=width), max_size=6)))
def test_each_line_of_a_corpus_is_a_record(rows: list[list[str]]) -> None:
    lines = ["\t".join(cells) + "\n" for cells in rows]
    found = records("".join(lines))
    assert [(number, text) for number, text, _ in found] == list(enumerate(lines, start=1))
    assert [cells for _, text, cells in found if '""' not in text] == [
        row for row in rows if '""' not in "\t".join(row)
    ]


@given(WIDTHS.flatmap(lambda width: st.lists(st.lists(CELLS, min_size=width, max_size=width), max_size=6)))
def test_what_spreadsheets_write_is_read(rows: list[list[str]]) -> None:
    stream = io.StringIO(newline="")
    writer = csv.writer(stream, "excel-tab")
    writer.writerows([["name"] * len(row) for row in rows[:1]] + rows)
    found = records(stream.getvalue())
    assert "".join(text for _, text, _ in found) == stream.getvalue()
    assert [cells for _, _, cells in found][1:] == rows


def test_an_empty_first_line_is_no_width_of_records() -> None:
    assert [cells for _, _, cells in records('\na\t"b\nc\t"d\n')] == [[], ["a", '"b'], ["c", '"d']]
