"""Word documents, made and read again by python-docx."""

import io
import re
import zipfile

import docx
import pytest
from docx.enum.text import WD_BREAK
from docx.oxml import parse_xml
from docx.oxml.ns import nsdecls, qn

from service.documents import DocumentError, open_document
from service.documents.archive import MAX_ENTRIES
from tests.unit.documents.pseudo import texts, translated, unchanged


def saved(document: docx.document.Document) -> bytes:
    stream = io.BytesIO()
    document.save(stream)
    return stream.getvalue()


def opened(data: bytes) -> docx.document.Document:
    return docx.Document(io.BytesIO(data))


def styles(document: docx.document.Document) -> list[object]:
    return [paragraph.style and paragraph.style.name for paragraph in document.paragraphs]


def parts(data: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        assert archive.testzip() is None
        return {name: archive.read(name) for name in archive.namelist()}


def made_of(*paragraphs: str) -> bytes:
    """Return a document of paragraphs, each given by what is in it."""
    document = docx.Document()
    for xml in paragraphs:
        document.element.body.add_p().extend(parse_xml(f"<w:p {nsdecls('w', 'r')}>{xml}</w:p>"))
    return saved(document)


def words_in(data: bytes) -> list[str]:
    return [each.text for each in opened(data).element.body.iter(qn("w:t"))]


def written_xml(data: bytes, changes: dict[str, bytes]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in (parts(data) | changes).items():
            archive.writestr(name, content)
    return stream.getvalue()


@pytest.fixture
def manual() -> bytes:
    document = docx.Document()
    document.add_heading("The manual", level=1)
    paragraph = document.add_paragraph("Find ", style="List Bullet")
    paragraph.add_run("the keys").bold = True
    paragraph.add_run(" in ")
    paragraph.add_run("room").italic = True
    paragraph.add_run(" seven & go.")
    table = document.add_table(rows=1, cols=2)
    table.cell(0, 0).text, table.cell(0, 1).text = "A cell", "12"
    document.sections[0].header.paragraphs[0].text = "A header"
    document.sections[0].footer.paragraphs[0].text = "A footer"
    lines = document.add_paragraph()
    lines.add_run("one\ttwo\nthree")
    lines.add_run().add_break(WD_BREAK.PAGE)
    lines.add_run("four")
    return saved(document)


def test_paragraphs_change_and_styles_stay(manual: bytes) -> None:
    document = open_document("a.docx", manual)
    assert texts(document) == [
        "The manual",
        'Find <span id="1">the keys</span> in <span id="5">room</span> seven &amp; go.',
        "A cell",
        'one<br id="1">two<br id="3">three',
        "four",
        "A footer",
        "A header",
    ]
    written = translated(document)
    before, after = opened(manual), opened(written)
    assert [each.text for each in after.paragraphs] == [each.text.upper() for each in before.paragraphs]
    assert styles(after) == styles(before)
    runs = [(run.text, run.bold, run.italic) for run in after.paragraphs[1].runs]
    assert runs == [(run.text.upper(), run.bold, run.italic) for run in before.paragraphs[1].runs]
    assert after.tables[0].cell(0, 0).text == "A CELL"
    assert after.sections[0].header.paragraphs[0].text == "A HEADER"
    assert after.sections[0].footer.paragraphs[0].text == "A FOOTER"
    same = [name for name, content in parts(manual).items() if parts(written)[name] == content]
    assert list(parts(written)) == list(parts(manual))
    assert set(parts(manual)) - set(same) == {"word/document.xml", "word/header1.xml", "word/footer1.xml"}


def test_the_same_texts_give_the_same_parts(manual: bytes) -> None:
    assert parts(unchanged(open_document("a.docx", manual))) == parts(manual)


def test_words_may_change_their_order_with_their_formatting(manual: bytes) -> None:
    document = open_document("a.docx", manual)
    translations = texts(document)
    translations[1] = 'Im <span id="5">Raum</span> die <span id="1">Schl\u00fcssel</span>'
    runs = [(run.text, run.bold, run.italic) for run in opened(document.written(translations)).paragraphs[1].runs]
    assert runs == [("Im ", None, None), ("Raum", None, True), (" die ", None, None), ("Schl\u00fcssel", True, None)]


FIELD = (
    '<w:r><w:fldChar w:fldCharType="begin"/></w:r><w:r><w:instrText xml:space="preserve"> {} </w:instrText></w:r>'
    '<w:r><w:fldChar w:fldCharType="separate"/></w:r><w:r><w:t>{}</w:t></w:r>'
    '<w:r><w:fldChar w:fldCharType="end"/></w:r>'
)


def test_a_text_box_in_a_sentence_stays_where_it_is_and_is_translated_in_both_of_its_forms() -> None:
    box = "<w:txbxContent><w:p><w:r><w:t>in a box</w:t></w:r></w:p></w:txbxContent>"
    texts_in_run = f"<w:t>before</w:t><w:drawing>{box}</w:drawing><w:pict>{box}</w:pict><w:t>after</w:t>"
    read = open_document("a.docx", made_of(f"<w:r><w:rPr><w:b/></w:rPr>{texts_in_run}</w:r>"))
    assert texts(read) == ['before<img id="1"><img id="2">after', "in a box", "in a box"]
    written = translated(read)
    assert words_in(written) == ["BEFORE", "IN A BOX", "IN A BOX", "AFTER"]
    assert all(run.bold for run in opened(written).paragraphs[0].runs)
    assert words_in(read.written(['nachher <img id="1"><img id="2">', "1", "2"])) == ["nachher ", "1", "2"]


RAISED = '<w:r><w:rPr><w:vertAlign w:val="{}"/></w:rPr><w:t>{}</w:t></w:r>'
RUBY = "<w:ruby><w:rubyPr/><w:rt>{}</w:rt><w:rubyBase>{}</w:rubyBase></w:ruby>"


def word(text: str) -> str:
    return f'<w:r><w:t xml:space="preserve">{text}</w:t></w:r>'


@pytest.mark.parametrize(
    ("xml", "given", "expected"),
    [
        (word("Big H") + RAISED.format("subscript", "2") + word("O here"), "Big H<sup", "BIG H|2|O HERE"),
        (word("house") + RAISED.format("superscript", "1") + word(" is"), "house<sup", "HOUSE|1| IS"),
        (word("name\tcity"), 'name<br id="1">city', "NAME|\t|CITY"),
        (word("the ") + f"<w:r>{RUBY.format(word('eki'), word('station'))}</w:r>", "the <span", "THE |eki|STATION"),
        ('<w:r><w:t>a</w:t><w:noBreakHyphen/><w:t xml:space="preserve">b is-x</w:t></w:r>', "a-b is-x", "A|B IS-X"),
        (
            '<w:hyperlink r:id="a">{}</w:hyperlink>{}<w:hyperlink r:id="a">{}</w:hyperlink>'.format(
                *map(word, ("home", " | ", "contact"))
            ),
            '<span id="0">home</span><br id="3"><span id="4">contact</span>',
            "HOME| | |CONTACT",
        ),
        (
            f'<w:fldSimple w:instr=" HYPERLINK x ">{word("home")}</w:fldSimple>{word(" now")}',
            '<span id="0">home</span> now',
            "HOME| NOW",
        ),
        (f'<w:fldSimple w:instr="PAGE">{word("7")}</w:fldSimple>{word(" now")}', '<code id="0">7</code> now', "7| NOW"),
        (
            '<w:r w:rsidR="1"><w:t xml:space="preserve">see </w:t></w:r><w:proofErr w:type="spellStart"/>'
            f'<w:hyperlink r:id="rId1">{word("this page")}</w:hyperlink>{word(" ")}<w:bookmarkStart w:id="0"/>'
            f'{FIELD.format("REF _Ref1", "Figure 3")}<w:bookmarkEnd w:id="0"/>{word(" ")}'
            f'{FIELD.format("HYPERLINK x", "the other")}<w:r><w:rPr><w:lang w:val="en"/></w:rPr><w:t>, now</w:t></w:r>'
            '<w:r><w:footnoteReference w:id="2"/></w:r><w:del w:id="9"><w:r><w:delText>gone</w:delText></w:r></w:del>'
            + word(" and then"),
            'see <img id="1"><span id="2">this page</span> <img id="6"><code id="7">Figure 3</code><img id="8"> '
            '<span id="10">the other</span>, now<img id="14"><img id="15"> and then',
            "SEE |THIS PAGE| |Figure 3| |THE OTHER|, NOW| AND THEN",
        ),
    ],
)
def test_what_belongs_together_stays_together(xml: str, given: str, expected: str) -> None:
    read = open_document("a.docx", made_of(xml))
    assert read.texts[0].text.startswith(given)
    written = translated(read)
    assert "|".join(words_in(written)) == expected
    names = "hyperlink rubyBase noBreakHyphen vertAlign bookmarkStart bookmarkEnd fldChar footnoteReference delText"
    for name in names.split():
        assert len(list(opened(written).element.iter(qn(f"w:{name}")))) == len(re.findall(rf"<w:{name}\b", xml))


def test_the_number_of_an_ordinal_is_not_raised_in_place_of_its_letters() -> None:
    source = made_of(word("the 1") + RAISED.format("superscript", "st") + word(" of May"))
    read = open_document("a.docx", source)
    assert texts(read) == ["the 1st of May"]
    assert parts(unchanged(read)) == parts(source)
    after = opened(read.written(["der 1. Mai"])).paragraphs[0]
    assert [(run.text, run.font.superscript) for run in after.runs] == [("der 1. Mai", None)]


PACKAGE = "http://schemas.openxmlformats.org/package/2006"
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"


def relationships(**targets: str) -> bytes:
    found = "".join(f'<Relationship Type="{OFFICE}/{kind}" Target="{name}"/>' for kind, name in targets.items())
    return f'<Relationships xmlns="{PACKAGE}/relationships">{found}</Relationships>'.encode()


def paragraph(text: str, root: str = "document") -> bytes:
    return f"<w:{root} {nsdecls('w', 'a')}><w:p>{word(text)}</w:p></w:{root}>".encode()


@pytest.mark.parametrize("name", ["word/document.xml", "Word\\document2.xml", "main.xml"])
def test_the_main_part_is_what_the_package_says(name: str) -> None:
    folder, _, base = name.replace("\\", "/").rpartition("/")
    files = {
        "_rels/.rels": relationships(officeDocument=f"/{name.lower()}"),
        name: paragraph("main"),
        f"{folder}/_rels/{base}.rels".lstrip("/"): relationships(header="../h.xml" if folder else "h.xml"),
        "h.xml": paragraph("header", "hdr"),
        "other.xml": paragraph("other"),
    }
    document = open_document("a.dotm", archive_of(files))
    assert (texts(document), list(document.notes)) == (["main", "header"], [])


def test_a_main_part_may_be_known_by_its_type_alone() -> None:
    for kind in ("ms-word.template.macroEnabled", "openxmlformats-officedocument.wordprocessingml.template"):
        types = f'<Types><Default Extension="XML" ContentType="application/vnd.{kind}.main+xml"/></Types>'
        files = {"[Content_Types].xml": types.encode(), "a.xml": paragraph("main")}
        assert texts(open_document("a.dotx", archive_of(files))) == ["main"]


def test_a_note_tells_of_each_kind_of_text_that_is_left() -> None:
    drawing = "<w:p xmlns:wp='x'><wp:docPr descr='A photo'/></w:p>"
    files = {
        "_rels/.rels": relationships(officeDocument="d.xml", **{"metadata/core-properties": "core.xml"}),
        "_rels/d.xml.rels": relationships(comments="c.xml", chart="chart.xml", diagramData="s.xml", oleObject="o.bin"),
        "d.xml": paragraph("main").replace(b"</w:document>", drawing.encode() + b"</w:document>"),
        "c.xml": b"<w:comments><w:comment w:id='1'/><w:comment w:id='2'/></w:comments>",
        "chart.xml": b"<c:chart><c:v>12</c:v></c:chart>",
        "s.xml": b"<dgm><a:t>Plan</a:t></dgm>",
        "o.bin": b"x",
        "core.xml": b"<cp xmlns:dc='x'><dc:title>Manual</dc:title><dc:subject></dc:subject></cp>",
    }
    assert list(open_document("a.docx", archive_of(files)).notes) == [
        "2 comments were left as they are.",
        "1 embedded object was left as it is.",
        "1 diagram (SmartArt) was left as it is.",
        "1 document property was left as it is.",
        "1 alternative text of a picture was left as it is.",
    ]


def test_a_field_that_goes_on_in_the_next_paragraph_ends_texts() -> None:
    begin = '<w:r><w:fldChar w:fldCharType="begin"/></w:r><w:r><w:instrText>TOC</w:instrText></w:r>'
    separate, end = (f'<w:r><w:fldChar w:fldCharType="{kind}"/></w:r>' for kind in ("separate", "end"))
    source = made_of(begin + separate + word("one"), word("two") + end)
    written = opened(translated(open_document("a.docx", source)))
    kinds = [each.get(qn("w:fldCharType")) for each in written.element.iter(qn("w:fldChar"))]
    assert kinds == ["begin", "separate", "end"]
    assert [each.text for each in written.paragraphs] == ["ONE", "TWO"]


def test_a_file_that_is_no_archive_or_no_word_document_is_refused(manual: bytes) -> None:
    with pytest.raises(DocumentError, match=r"^it is not a ZIP archive, which a \.docx is"):
        open_document("a.docx", b"Hello")
    with pytest.raises(DocumentError, match=r"^the archive has no .Content_Types..xml; it is not a Word document"):
        open_document("a.docx", archive_of({"a.txt": b"x"}))
    types = b'<Types><Override PartName="/x.xml" ContentType="text/plain"/></Types>'
    with pytest.raises(DocumentError, match="it names no text of a Word document"):
        open_document("a.docx", archive_of({"[Content_Types].xml": types}))
    with pytest.raises(DocumentError):
        open_document("a.docx", manual[: len(manual) // 2])


def archive_of(entries: dict[str, bytes]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in entries.items():
            archive.writestr(name, content)
    return stream.getvalue()


def test_a_bomb_is_not_unpacked(manual: bytes) -> None:
    with pytest.raises(
        DocumentError, match=r"^word/document\.xml: it unpacks \d+ bytes to 30000000, more than 250 times"
    ):
        open_document("a.docx", written_xml(manual, {"word/document.xml": b" " * 30_000_000}))
    many = {f"{number}.txt": b"" for number in range(MAX_ENTRIES + 1)}
    with pytest.raises(DocumentError, match=f"^the archive has {MAX_ENTRIES + 1} entries"):
        open_document("a.docx", archive_of(many))


def test_an_entry_that_is_larger_or_smaller_than_it_says_is_refused(manual: bytes) -> None:
    content = parts(manual)["word/document.xml"]
    for stated in (len(content) - 10, len(content) + 10):
        lie = manual.replace(len(content).to_bytes(4, "little"), stated.to_bytes(4, "little"))
        with pytest.raises(DocumentError, match=r"^word/document\.xml: it (unpacks to|is damaged)"):
            open_document("a.docx", lie)


def test_entities_in_a_part_are_refused(manual: bytes) -> None:
    content = b'<!DOCTYPE w [<!ENTITY a "b">]><w:document xmlns:w="x">&a;</w:document>'
    with pytest.raises(DocumentError, match=r"^word/document\.xml, line 1: it declares an entity, 'a'"):
        open_document("a.docx", written_xml(manual, {"word/document.xml": content}))


def test_broken_xml_is_named_with_its_part_and_position(manual: bytes) -> None:
    content = parts(manual)["word/document.xml"].replace(b"</w:body>", b"")
    with pytest.raises(DocumentError, match=r"^word/document\.xml, line \d+, column \d+: it is not well-formed XML"):
        open_document("a.docx", written_xml(manual, {"word/document.xml": content}))
