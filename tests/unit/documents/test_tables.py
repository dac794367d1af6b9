"""Tables, read again by the csv module."""

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.documents import DocumentError, DocumentOptions, open_document
from tests.unit.documents.pseudo import texts, translated, unchanged

TEXT = DocumentOptions(columns=("text",))
CELLS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=12)


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_only_the_named_column_changes_and_the_dialect_stays(delimiter: str) -> None:
    lines = ["id;text;note\r\n", '1;"He said; ""go""";"keep"\r\n', "2;a file;x\r\n", "3;12;y"]
    source = "".join(lines).replace(";", delimiter).encode()
    written = translated(open_document("t.csv", source, TEXT))
    expected = source.replace(b"He said", b"HE SAID").replace(b"go", b"GO").replace(b"a file", b"A FILE")
    assert written == expected


def test_a_translation_is_quoted_if_it_needs_to_be() -> None:
    document = open_document("t.csv", b"id,text\n1,plain\n", TEXT)
    rows = list(csv.reader(io.StringIO(document.written(['a, "b"\nc']).decode(), newline="")))
    assert rows == [["id", "text"], ["1", 'a, "b"\nc']]


def test_several_columns_are_translated_in_the_order_of_the_file() -> None:
    document = open_document("t.csv", b"b,x,a\none,two,three\n", DocumentOptions(columns=("a", "b")))
    assert texts(document) == ["one", "three"]
    assert translated(document) == b"b,x,a\nONE,two,THREE\n"


def test_a_mark_at_the_start_and_utf_16_stay() -> None:
    source = "text,b\nä file,x\n"
    for encoding in ("utf-8-sig", "utf-16"):
        written = translated(open_document("t.csv", source.encode(encoding), TEXT))
        assert written == source.replace("ä file", "Ä FILE").encode(encoding)


def test_tsv_has_no_quotes_and_a_translation_stays_in_its_line() -> None:
    document = open_document("t.tsv", b'id\ttext\r\n1\tsay "a\r\n\r\n', TEXT)
    assert texts(document) == ['say "a']
    assert document.written(['b\t"c\nd']) == b'id\ttext\r\n1\tb "c d\r\n\r\n'


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


@pytest.mark.parametrize(
    ("name", "source", "message"),
    [
        ("t.csv", 'a,text\n1,x\n2,"open\nx\n', "line 3: the cell that starts here with a quotation mark has no end"),
        ("t.csv", 'a,text\n1,"x"y\n', "line 2: 'y' follows the quotation mark that ends a cell"),
        ("t.csv", "a,text\n1,x\n2\n", "line 3: the record has 1 columns, and 'text' is column 2"),
        ("t.tsv", "a\ttext\n1\n", "line 2: the record has 1 columns"),
        ("t.csv", "a,b\n1,x\n", "line 1: there is no column 'text'; the columns are 'a', 'b'"),
        ("t.csv", "text,text\n1,x\n", "line 1: there are 2 columns 'text'"),
        ("t.csv", "", "line 1: there is no column 'text'; the columns are none"),
    ],
)
def test_a_broken_table_gets_an_error_with_its_line(name: str, source: str, message: str) -> None:
    with pytest.raises(DocumentError, match="^" + message.replace("[", r"\[").replace("(", r"\(")):
        open_document(name, source.encode(), TEXT)


def test_without_a_column_the_names_are_listed() -> None:
    with pytest.raises(DocumentError, match="name the columns to translate; they are 'a', 'b'"):
        open_document("t.csv", b"a,b\n")
