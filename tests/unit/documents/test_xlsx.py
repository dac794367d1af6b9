"""Spreadsheets: which of their texts are translated, and what else changes."""

import pytest

from service.documents import DocumentError, open_document
from tests.unit.documents.formats.format import archived, files
from tests.unit.documents.formats.office import OPEN_XML, spreadsheet
from tests.unit.documents.pseudo import texts, translated

SHEET, STRINGS = "xl/worksheets/sheet1.xml", "xl/sharedStrings.xml"
COMPUTED = '<c r="D1" t="str"><f>B1&amp;"!"</f><v>a!</v></c>'


def string(text: str) -> str:
    return f"<si><t>{text}</t></si>"


def test_strings_of_cells_are_translated_where_they_are() -> None:
    own = '<c r="B7" s="2" t="inlineStr"><is><t>one</t></is></c><c r="B8" t="str"><v>two</v></c>'
    data = spreadsheet(string("three"), cells=f'<c r="A9" t="s"><v>0</v></c>{own}')
    document = open_document("a.xlsx", data)
    assert [(text.text, text.place) for text in document.texts] == [
        *(("three", f"{SHEET}, A9"), ("one", f"{SHEET}, B7"), ("two", f"{SHEET}, B8")),
    ]
    before, after = files(data), files(translated(document))
    assert after[SHEET] == before[SHEET].replace(b">one<", b">ONE<").replace(b">two<", b">TWO<")
    assert {name for name in before if before[name] != after[name]} == {SHEET, STRINGS}


@pytest.mark.parametrize(
    ("cells", "more", "stays"),
    [
        ('<c><f>COUNTIF(A:A,"&lt;&gt;Sold ""out""")</f></c>', "", 'sold "out"'),
        ('<c><f>HYPERLINK("Another one","Go on")</f></c>', "", "Go on"),
        ("""<c><f>INDIRECT("'"&amp;A1&amp;"'!B2")</f></c>""", "", "A sheet"),
        ("", "", "'A sheet'!$B$2:C3"),
        ('<dataValidation><formula1>"Red,Green"</formula1></dataValidation>', "", "Green"),
        ('<x14:formula1><xm:f>"Red,Green"</xm:f></x14:formula1>', "", "Red"),
        ('<cfRule type="containsText" text="Late &amp; lost"/>', "", "Late & lost"),
        ('<filters><filter val="Late"/></filters>', "", "late"),
        ("", '<table><tableColumn id="1" name="Unit_x000a_price"/></table>', "Unit\nprice"),
    ],
)
def test_texts_that_formulas_and_tables_name_stay(cells: str, more: str, stays: str) -> None:
    strings = string(stays.replace("&", "&amp;")) + string("Another one")
    tables = {"xl/tables/table1.xml": more} if more else {}
    names = '<worksheet xmlns:x14="x" xmlns:xm="y"><sheetData/>'
    document = open_document("a.xlsx", spreadsheet(strings, **{SHEET: f"{names}{cells}</worksheet>"}, **tables))
    assert texts(document) == ["Another one"]
    told = " ".join(stays.split())  # which may be in a header of HTTP
    assert list(document.notes) == [
        f'Cells were left as they are where formulas or tables refer to their text: "{told}".'
    ]


def test_the_reading_of_japanese_words_is_left_out_of_a_translation() -> None:
    data = spreadsheet('<si><t>a b</t><rPh sb="0" eb="1"><t>c</t></rPh><phoneticPr fontId="1"/></si>')
    document = open_document("a.xlsx", data)
    assert texts(document) == ["a b"]
    assert files(translated(document))[STRINGS] == b"<sst><si><t>A B</t></si></sst>"
    assert files(document.written(["a b"]))[STRINGS] == files(data)[STRINGS]


def test_formulas_are_computed_anew_if_they_show_text() -> None:
    document = open_document("a.xlsx", spreadsheet(string("a"), cells=COMPUTED))
    written = files(translated(document))
    assert COMPUTED.encode() in written[SHEET]
    assert b'<calcPr fullCalcOnLoad="1" calcId="1"/>' in written["xl/workbook.xml"]


def test_the_main_part_may_be_known_by_its_ending() -> None:
    main = f'<Default Extension="xml" ContentType="{OPEN_XML}.spreadsheetml.sheet.main+xml"/>'
    strings = f'<Override PartName="/XL/s.xml" ContentType="{OPEN_XML}.spreadsheetml.sharedStrings+xml"/>'
    content = {"[Content_Types].xml": f"<Types>{main}{strings}</Types>", "xl/s.xml": f"<sst>{string('a')}</sst>"}
    assert texts(open_document("a.xlsx", archived({**content, "xl/w.xml": "<workbook/>"}))) == ["a"]


def test_another_archive_is_refused() -> None:
    with pytest.raises(DocumentError, match=r"^\[Content_Types\]\.xml: it names no spreadsheet\."):
        open_document("a.xlsx", archived({"[Content_Types].xml": "<Types/>"}))
