"""Word documents: which of their files are read, what a translator is given, and what is refused."""

import io
import re
import zipfile

import pytest

from service.documents import DocumentError, open_document
from service.documents.archive import MAX_ENTRIES
from tests.unit.documents.formats.format import archived, files
from tests.unit.documents.formats.office import HEAVY, LOWERED, RAISED, RUBY, TAB, W, link, link_field, said, word
from tests.unit.documents.pseudo import texts

MAIN = "word/document.xml"


def test_words_may_change_their_order_with_their_formatting() -> None:
    body = said("Find ") + said("the keys", HEAVY) + said(" in ") + said("room", RAISED) + said(" now")
    document = open_document("a.docx", word(f"<w:p>{body}</w:p>"))
    assert texts(document) == ['Find <span id="1">the keys</span> in <span id="5">room</span> now']
    written = files(document.written(['Im <span id="5">Raum</span> die <span id="1">Schl\u00fcssel</span>']))[MAIN]
    expected = said("Im ") + said("Raum", RAISED) + said(" die ") + said("Schl\u00fcssel", HEAVY)
    assert f"<w:p>{expected}</w:p>" in written.decode()


@pytest.mark.parametrize(
    ("xml", "given"),
    [
        (said("Big H") + said("2", LOWERED) + said("O here"), 'Big H<sup id="1">2</sup>O here'),
        (said("house") + said("1", RAISED) + said(" is"), 'house<sup id="1">1</sup> is'),
        (said("the 1") + said("st", RAISED) + said(" of May"), "the 1st of May"),
        (said(f"name{TAB}city"), 'name<br id="1">city'),
        ('<w:r><w:t>name</w:t><w:ptab w:alignment="right"/><w:t>city</w:t></w:r>', 'name<br id="1">city'),
        (said("the ") + f"<w:r>{RUBY}</w:r>", 'the <span id="1">Y Z</span>'),
        (
            link(said("home")) + said(" | ") + link(said("contact")),
            '<span id="0">home</span><br id="3"><span id="4">contact</span>',
        ),
        (link_field(said("home")) + said(" now"), '<span id="0">home</span> now'),
        (f'<w:fldSimple w:instr="PAGE">{said("7")}</w:fldSimple>{said(" now")}', '<code id="0">7</code> now'),
        (
            said("a ") + '<w:bookmarkStart w:id="0"/>' + said("b") + '<w:bookmarkEnd w:id="0"/>' + said(" c"),
            'a <img id="1">b<img id="3"> c',
        ),
        ('<w:r><w:t>a</w:t><w:noBreakHyphen/><w:t xml:space="preserve">b is-x</w:t></w:r>', "a-b is-x"),
    ],
)
def test_what_a_translator_is_given(xml: str, given: str) -> None:
    assert texts(open_document("a.docx", word(f"<w:p>{xml}</w:p>"))) == [given]


def test_a_text_box_stays_where_it_is_in_its_sentence() -> None:
    box = f"<w:drawing><w:txbxContent><w:p>{said('in a box')}</w:p></w:txbxContent></w:drawing>"
    body = f"<w:p><w:r><w:t>before</w:t>{box}{box}<w:t>after</w:t></w:r></w:p>"
    document = open_document("a.docx", word(body))
    assert texts(document) == ['before<img id="1"><img id="2">after', "in a box", "in a box"]
    written = files(document.written(['nachher <img id="1"><img id="2">', "1", "2"]))[MAIN].decode()
    assert re.findall(r"<w:t(?: [^>]*)?>([^<]*)", written) == ["nachher ", "1", "2"]


OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"


def relationships(**targets: str) -> str:
    found = "".join(f'<Relationship Type="{OFFICE}/{kind}" Target="{name}"/>' for kind, name in targets.items())
    return (
        f'<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">{found}</Relationships>'
    )


def paragraph(text: str, root: str = "document", more: str = "") -> str:
    return f'<w:{root} xmlns:w="{W}"><w:p>{said(text)}</w:p>{more}</w:{root}>'


@pytest.mark.parametrize("name", ["word/document.xml", "Word\\document2.xml", "main.xml"])
def test_the_main_part_is_what_the_package_says(name: str) -> None:
    folder, _, base = name.replace("\\", "/").rpartition("/")
    content = {
        "_rels/.rels": relationships(officeDocument=f"/{name.lower()}"),
        name: paragraph("main"),
        f"{folder}/_rels/{base}.rels".lstrip("/"): relationships(header="../h.xml" if folder else "h.xml"),
        "h.xml": paragraph("header", "hdr"),
        "other.xml": paragraph("other"),
    }
    document = open_document("a.dotm", archived(content))
    assert (texts(document), list(document.notes)) == (["main", "header"], [])


@pytest.mark.parametrize(
    "kind",
    [
        *("ms-word.document.macroEnabled", "ms-word.template.macroEnabled"),
        "openxmlformats-officedocument.wordprocessingml.template",
    ],
)
def test_a_main_part_may_be_known_by_its_type_alone(kind: str) -> None:
    types = f'<Types><Default Extension="XML" ContentType="application/vnd.{kind}.main+xml"/></Types>'
    assert texts(open_document("a.dotx", archived({"[Content_Types].xml": types, "a.xml": paragraph("main")}))) == [
        "main"
    ]


def test_a_note_tells_of_each_kind_of_text_that_is_left() -> None:
    content = {
        "_rels/.rels": relationships(officeDocument="d.xml", **{"metadata/core-properties": "core.xml"}),
        "_rels/d.xml.rels": relationships(comments="c.xml", chart="chart.xml", diagramData="s.xml", oleObject="o.bin"),
        "d.xml": paragraph("main", more="<w:p xmlns:wp='x'><wp:docPr descr='A photo'/></w:p>"),
        "c.xml": "<w:comments><w:comment w:id='1'/><w:comment w:id='2'/></w:comments>",
        "chart.xml": "<c:chart><c:v>12</c:v></c:chart>",
        "s.xml": "<dgm><a:t>Plan</a:t></dgm>",
        "o.bin": "x",
        "core.xml": "<cp xmlns:dc='x'><dc:title>Manual</dc:title><dc:subject></dc:subject></cp>",
    }
    assert list(open_document("a.docx", archived(content)).notes) == [
        "2 comments were left as they are.",
        "1 embedded object was left as it is.",
        "1 diagram (SmartArt) was left as it is.",
        "1 document property was left as it is.",
        "1 alternative text of a picture was left as it is.",
    ]


ENTITY = '<!DOCTYPE w [<!ENTITY a "b">]><w:document xmlns:w="x">&a;</w:document>'
NO_WORD = '<Types><Override PartName="/x.xml" ContentType="text/plain"/></Types>'


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"Hello", r"^it is not a ZIP archive, as a \.docx must be"),
        (word("")[:300], "^it is not a ZIP archive"),
        (archived({"a.txt": "x"}), r"^the archive has no .Content_Types..xml; it is not a Word document"),
        (archived({"[Content_Types].xml": NO_WORD}), "it names no main file of a Word document"),
        (archived({f"{n}.txt": "" for n in range(MAX_ENTRIES + 1)}), f"^the archive has {MAX_ENTRIES + 1} entries"),
        (archived({**files(word("")), MAIN: ENTITY}), r"^word/document\.xml, line 1: it declares the entity 'a'"),
        (word("</w:body>"), r"^word/document\.xml, line \d+, column \d+: it is not well-formed XML"),
    ],
)
def test_what_is_refused(data: bytes, problem: str) -> None:
    with pytest.raises(DocumentError, match=problem):
        open_document("a.docx", data)


def test_a_bomb_is_not_unpacked() -> None:
    stream = io.BytesIO(word(""))
    with zipfile.ZipFile(stream, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.xml", b" " * 30_000_000)
    with pytest.raises(DocumentError, match=r"^a\.xml: it unpacks from \d+ bytes to 30000000; at most 250 times"):
        open_document("a.docx", stream.getvalue())


def test_an_entry_that_is_larger_or_smaller_than_it_says_is_refused() -> None:
    honest = word(f"<w:p>{said('a word')}</w:p>")
    content = files(honest)[MAIN]
    for stated in (len(content) - 10, len(content) + 10):
        lie = honest.replace(len(content).to_bytes(4, "little"), stated.to_bytes(4, "little"))
        with pytest.raises(DocumentError, match=r"^word/document\.xml: it (unpacks to|is damaged)"):
            open_document("a.docx", lie)
