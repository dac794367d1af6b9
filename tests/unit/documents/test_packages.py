"""Presentations, OpenDocument files and books: which of their files are read, in which order, and what stays."""

import pytest

from service.documents import DocumentError, DocumentOptions, open_document
from tests.unit.documents.formats.format import archived, files
from tests.unit.documents.formats.office import OPEN_XML, presentation, said, word
from tests.unit.documents.formats.packages import NOTE, book, open_document_file
from tests.unit.documents.pseudo import texts, translated

TO_GERMAN = DocumentOptions(target="de-AT")
CHARTS = {
    "/ppt/charts/chart1.xml": f"{OPEN_XML}.drawingml.chart+xml",
    "/ppt/c.xml": f"{OPEN_XML}.presentationml.comments+xml",
}
LOCKED = '<encryption><CipherReference URI="{}"/></encryption>'


def test_all_other_files_stay_byte_for_byte() -> None:
    for name, data, changed in (
        ("a.pptx", presentation("<a:p><a:r><a:t>a</a:t></a:r></a:p>"), {"ppt/slides/slide1.xml"}),
        ("a.docx", word(f"<w:p>{said('a')}</w:p>"), {"word/document.xml"}),
        ("a.odt", open_document_file("<text:p>a</text:p>"), {"content.xml"}),
        ("a.epub", book("<p>a</p>"), {"OEBPS/c a.xhtml", "OEBPS/c1.xhtml", "OEBPS/t.ncx", "OEBPS/c.opf"}),
    ):
        document = open_document(name, data, TO_GERMAN)
        before, after = files(data), files(translated(document))
        assert list(before) == list(after)
        assert {each for each in before if before[each] != after[each]} == changed


def test_slides_are_read_in_their_order_and_charts_are_told() -> None:
    more = {f"/ppt/slides/slide{number}.xml": f"{OPEN_XML}.presentationml.slide+xml" for number in (10, 2)}
    notes = {"/ppt/notesSlides/notesSlide1.xml": f"{OPEN_XML}.presentationml.notesSlide+xml"}
    document = open_document("a.pptx", presentation("<a:p><a:r><a:t>a</a:t></a:r></a:p>", **more, **notes, **CHARTS))
    assert [text.place.partition(",")[0].rpartition("/")[2] for text in document.texts] == [
        *("slide1.xml", "slide2.xml", "slide10.xml"),
        *("notesSlide1.xml", "chart1.xml"),
    ]
    assert [note.partition(" ")[0] for note in document.notes] == ["Charts", "Comments"]


def test_texts_within_texts_are_written_where_these_put_them() -> None:
    body = f"<text:p>a{NOTE.format('one')} b{NOTE.format('two' + NOTE.format('three'))} c</text:p>"
    document = open_document("a.odt", open_document_file(body))
    assert texts(document) == ['a<img id="1"> b<img id="3"> c', "one", "two", "three"]
    written = document.written(['C<img id="3"> B<img id="1">', "1", "2", "3"])
    expected = f"<text:p>C{NOTE.format('2' + NOTE.format('3'))} B{NOTE.format(1)}</text:p>"
    assert expected in files(written)["content.xml"].decode()
    written = document.written([texts(document)[0], "1", "two", "three"])
    assert body.replace("one", "1") in files(written)["content.xml"].decode()


def test_comments_are_told() -> None:
    comment = "<office:annotation><text:p>b</text:p></office:annotation>"
    document = open_document("a.odt", open_document_file(f"<text:p>a{comment}</text:p>"))
    assert (texts(document), document.notes) == (["a"], ("Comments were left as they are.",))


def test_cells_whose_text_is_an_attribute_too_have_it_once() -> None:
    cell = '<table:table-cell office:value-type="string" office:string-value="a"><text:p>a</text:p></table:table-cell>'
    written = translated(open_document("a.ods", open_document_file(cell, "spreadsheet")))
    assert '<table:table-cell office:value-type="string"><text:p>A<' in files(written)["content.xml"].decode()


@pytest.mark.parametrize(
    "named",
    [
        '<table:table-cell table:formula="of:=IF([.A1]=&quot;Yes&quot;;1;0)"/>',
        '<table:content-validation table:condition=\'of:cell-content-is-in-list("Yes";"No")\'/>',
        '<table:filter-condition table:value="yes"/>',
        """<table:table table:name="Yes"><table:table-cell table:formula="INDIRECT([.A1]&amp;'.B1')"/></table:table>""",
    ],
)
def test_texts_of_cells_that_formulas_name_stay(named: str) -> None:
    cells = "<table:table-cell><text:p>Yes</text:p></table:table-cell><text:p>Yes</text:p>"
    document = open_document("a.ods", open_document_file(named + cells, "spreadsheet"))
    assert texts(document) == ["Yes"]
    assert list(document.notes) == ['Cells were left as they are where formulas or tables refer to their text: "Yes".']


def test_a_presentation_without_slides_stays_as_it_is() -> None:
    main = f'<Override PartName="/ppt/p.xml" ContentType="{OPEN_XML}.presentationml.presentation.main+xml"/>'
    content = {"[Content_Types].xml": f"<Types>{main}</Types>", "ppt/p.xml": "<p/>"}
    document = open_document("a.pptx", archived(content))
    assert {name: each.decode() for name, each in files(translated(document)).items()} == content


def test_a_book_is_read_in_its_order_and_gets_the_language() -> None:
    data = book("<p>first</p>")
    document = open_document("a.epub", data, TO_GERMAN)
    assert texts(document) == ["A book", "first", "last", "Start & end"]
    written = files(translated(document))
    assert b"<dc:title>A BOOK</dc:title><dc:language>de-AT</dc:language>" in written["OEBPS/c.opf"]
    assert b'lang="de-AT" xml:lang="de-AT">' in written["OEBPS/c a.xhtml"]
    assert b"<text>START &amp; END</text>" in written["OEBPS/t.ncx"]
    assert b'lang="en"' in files(translated(open_document("a.epub", data)))["OEBPS/c a.xhtml"]


@pytest.mark.parametrize(
    ("name", "data", "problem"),
    [
        ("a.odt", b"PK", "it is not a ZIP archive, as an OpenDocument file must be: "),
        ("a.epub", b"PK", "it is not a ZIP archive, as an .epub must be: "),
        ("a.pptx", b"PK", "it is not a ZIP archive, as a .pptx must be: "),
        ("a.odt", archived({"a": "b"}), "the archive has no content.xml; it is not an OpenDocument file."),
        ("a.epub", archived({"a": "b"}), "the archive has no META-INF/container.xml; it is not an EPUB."),
        ("a.epub", archived({"META-INF/container.xml": "<a/>"}), "META-INF/container.xml: it names no book."),
        ("a.pptx", archived({"a": "b"}), "the archive has no [Content_Types].xml; it is not a presentation."),
        ("a.pptx", archived({"[Content_Types].xml": "<Types/>"}), "[Content_Types].xml: it names no presentation."),
        (
            "a.odt",
            archived({"content.xml": "x", "META-INF/manifest.xml": "<manifest:encryption-data/>"}),
            "META-INF/manifest.xml: it is encrypted; save it without a password.",
        ),
        (
            "a.epub",
            book("x", more={"META-INF/encryption.xml": LOCKED.format("OEBPS/c1.xhtml")}),
            "META-INF/encryption.xml: its chapters are encrypted (DRM), so they can't be read.",
        ),
        (
            "a.epub",
            book("x", more={"OEBPS/c1.xhtml": b"\xff"}),
            "OEBPS/c1.xhtml, line 1: byte 1 of the file, 0xff, is not UTF-8",
        ),
        (
            "a.odt",
            open_document_file("<text:p>a<draw:b>" * 10 + "</draw:b></text:p>" * 10),
            "content.xml, line 1: paragraphs are nested more than 8 deep.",
        ),
    ],
)
def test_what_is_refused(name: str, data: bytes, problem: str) -> None:
    with pytest.raises(DocumentError) as caught:
        open_document(name, data)
    assert str(caught.value).startswith(problem)


def test_a_book_with_scrambled_fonts_is_read() -> None:
    data = book("<p>a</p>", more={"META-INF/encryption.xml": LOCKED.format("OEBPS/a.css")})
    assert texts(open_document("a.epub", data))[1] == "a"
