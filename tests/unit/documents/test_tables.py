"""Tables, read again by the csv module; and their records: lines of a corpus, and what spreadsheets write."""

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.documents import DocumentError, DocumentOptions, open_document
from service.documents.tables import split_records
from tests.unit.documents.pseudo import texts, translated, unchanged

TEXT = DocumentOptions(columns=("text",))
CELLS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=12)
PLAIN = st.text('ab" ,é', max_size=6)
QUOTED = st.text('ab" ,é\r\n', max_size=6)
WIDTHS = st.integers(2, 4)
FORMULAS = """id|text
1|=SUM(A1:A9)
2|=$A$1&"x"
3|='A sheet'!B2
4|=-2*(3+A1)
5|="a"&B1
6|=Summe.Wenn(A1;"go")
7|=@IF(A1>5,"Yes","No")
8|=Data!A1
9|=> go
10|=A1 steak
11|=) ha
12|== go ==
"""


def test_a_translation_is_quoted_if_it_needs_to_be() -> None:
    document = open_document("t.csv", b"id,text\n1,plain\n", TEXT)
    rows = list(csv.reader(io.StringIO(document.written(['a, "b"\nc']).decode(), newline="")))
    assert rows == [["id", "text"], ["1", 'a, "b"\nc']]


def test_tsv_has_quoted_cells_as_spreadsheets_write_them_and_others_stay_in_their_line() -> None:
    source = b'id\ttext\r\n1\tsay "a\r\n2\t"a ""b""\tc"\r\n3\t"x" y\r\n\r\n'
    document = open_document("t.tsv", source, TEXT)
    assert texts(document) == ['say "a', 'a "b"\tc', '"x" y']
    assert document.written(['b\t"c\nd', 'e\t"f"', "z"]) == (b'id\ttext\r\n1\tb "c d\r\n2\t"e\t""f"""\r\n3\tz\r\n\r\n')


def test_quotes_of_corpora_are_characters() -> None:
    source = b'"He said,\tx\nthen he left."\ty\n"Go!"\tz\n'
    document = open_document("t.tsv", source, DocumentOptions(columns=("1",)))
    assert texts(document) == ['"He said,', 'then he left."', "Go!"]
    assert unchanged(document) == source


def test_a_translation_that_begins_with_a_quotation_mark_is_quoted_in_tsv_as_well() -> None:
    document = open_document("t.tsv", b"id\ttext\n1\tgo\n2\tgo\n", TEXT)
    written = document.written(['"a" b', '"c'])
    rows = list(csv.reader(io.StringIO(written.decode()), delimiter="\t"))
    assert rows == [["id", "text"], ["1", '"a" b'], ["2", '"c']]


@pytest.mark.parametrize(
    ("source", "columns", "expected"),
    [
        ("sep=;\r\nid;text\r\n1;go, now\r\n", ["text"], ["go, now"]),
        ('\ufeff"sep=|"\nid|text\n1|go, now\n', ["text"], ["go, now"]),
        ("text\nOpen it\nClose it, please\n", ["text"], ["Open it", "Close it, please"]),
        ("Title, of text\nOpen it; now\n", ["Title, of text"], ["Open it; now"]),
        ("id;text, long;note\n1;a, b, c, d;x\n", ["text, long"], ["a, b, c, d"]),
        ("a|b\nx|Hello, you, and; me\n", ["b"], ["Hello, you, and; me"]),
        ('a,b\n"x;y;z;",go\n', ["b"], ["go"]),
        ("id;text\r1;go\r2;run\r", ["text"], ["go", "run"]),
        ("1,go\n2,run\n", ["2"], ["go", "run"]),  # no names
        ("no,word\n1,go\n2,run\n", ["2"], ["go", "run"]),  # "no" is above numbers only
        ("text,text\na,b\n", ["2"], ["b"]),
        ("id,2,3\n1,go,run\n", ["2"], ["go"]),  # a name, first
        ("id,text,note\n1,go,a\n2\n\n3,run,b,c\n4,,x\n", ["text"], ["go", "run"]),
        ("id,text\n", ["text"], []),
        ('"id", "text" ,x\n1, "go, now" ,y\n', ["text"], ["go, now"]),
        ("b,x,a\none,two,three\n", ["a", "b"], ["one", "three"]),  # in the order of the file
        (FORMULAS, ["text"], ["=> go", "=A1 steak", "=) ha", "== go =="]),
    ],
)
def test_delimiter_and_columns_are_found(source: str, columns: list[str], expected: list[str]) -> None:
    document = open_document("t.csv", source.encode(), DocumentOptions(columns=tuple(columns)))
    assert texts(document) == expected
    assert unchanged(document) == source.encode()


def test_what_is_left_is_told_and_with_a_header_columns_by_number_have_names() -> None:
    document = open_document("t.csv", b'id,text\n1,go\n2\n3,=A1&"x"\n4,"=SUM(A1)"\n', TEXT)
    assert document.written(["a"]) == b'id,text\n1,a\n2\n3,"=A1&""x"""\n4,"=SUM(A1)"\n'
    assert list(document.notes) == [
        "1 record that lacks columns to translate was left as it is: line 3.",
        "2 cells with formulas were left as they are: lines 4, 5.",
    ]
    options = DocumentOptions(columns=("1",), has_header=True)
    assert texts(open_document("t.tsv", b"Hello\tx\ngo\ty\n", options)) == ["go"]


@given(
    st.lists(st.lists(CELLS, min_size=2, max_size=2), max_size=6), st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL])
)
def test_it_reads_what_the_csv_module_writes(rows: list[list[str]], quoting: int) -> None:
    stream = io.StringIO(newline="")
    csv.writer(stream, quoting=quoting).writerows([["id", "text"], *rows])  # type: ignore[arg-type]
    document = open_document("t.csv", stream.getvalue().encode(), TEXT)
    assert unchanged(document) == stream.getvalue().encode()
    written = list(csv.reader(io.StringIO(translated(document).decode(), newline="")))
    assert written[1:] == [[first, text.upper() if any(map(str.isalpha, text)) else text] for first, text in rows]


def test_columns_are_named() -> None:
    with pytest.raises(DocumentError, match="name the columns to translate; they are 'a', 'b'"):
        open_document("t.csv", b"a,b\n")


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


@given(WIDTHS.flatmap(lambda width: st.lists(st.lists(QUOTED, min_size=width, max_size=width), max_size=6)))
def test_what_spreadsheets_write_is_read(rows: list[list[str]]) -> None:
    stream = io.StringIO(newline="")
    writer = csv.writer(stream, "excel-tab")
    writer.writerows([["name"] * len(row) for row in rows[:1]] + rows)
    found = records(stream.getvalue())
    assert "".join(text for _, text, _ in found) == stream.getvalue()
    assert [cells for _, _, cells in found][1:] == rows


def test_an_empty_first_line_is_no_width_of_records() -> None:
    assert [cells for _, _, cells in records('\na\t"b\nc\t"d\n')] == [[], ["a", '"b'], ["c", '"d']]
