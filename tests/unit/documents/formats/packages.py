"""Formats that are archives of XML: Word, presentations, OpenDocument, EPUB."""

from collections.abc import Mapping

from tests.unit.documents.formats.format import Format, Mixture, archived, same
from tests.unit.documents.formats.readers import of_xhtml, of_xml
from tests.unit.documents.pseudo import served

A = "http://schemas.openxmlformats.org/drawingml/2006/main"
W = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
OPEN_XML = "application/vnd.openxmlformats-officedocument"
ODF = "urn:oasis:names:tc:opendocument:xmlns"
ODF_NAMES = " ".join(
    f'xmlns:{name}="{ODF}:{name}:1.0"' for name in ("office", "style", "text", "table", "drawing", "presentation")
)


def presentation(body: str, _: str = "", /, **more: str) -> bytes:
    types = {
        "/ppt/presentation.xml": f"{OPEN_XML}.presentationml.presentation.main+xml",
        "/ppt/slides/slide1.xml": f"{OPEN_XML}.presentationml.slide+xml",
        **more,
    }
    overrides = "".join(f'<Override PartName="{name}" ContentType="{kind}"/>' for name, kind in types.items())
    slide = f'<p:sld xmlns:p="p" xmlns:a="{A}"><p:txBody>{body}</p:txBody></p:sld>'
    return archived(
        {
            "[Content_Types].xml": f"<Types>{overrides}</Types>",
            "ppt/presentation.xml": "<p/>",
            **{name[1:]: slide for name in types if name != "/ppt/presentation.xml"},
            "ppt/media/image1.png": b"\x89PNG\0",
        }
    )


def word(body: str, _: str = "", kind: str = f"{OPEN_XML}.wordprocessingml.document") -> bytes:
    main = f'<Override PartName="/word/document.xml" ContentType="{kind}.main+xml"/>'
    names = f'xmlns:w="{W}" xmlns:mc="mc" xmlns:r="r" xmlns:v="v" xmlns:m="m"'
    return archived(
        {
            "[Content_Types].xml": f"<Types>{main}</Types>",
            "word/document.xml": f"<w:document {names}><w:body>{body}</w:body></w:document>",
            "word/media/image1.png": b"\x89PNG\0",
        }
    )


def open_document_file(body: str, kind: str = "text") -> bytes:
    styles = (
        '<style:style style:name="B" style:family="text"><style:text-properties fo:font-weight="bold"/></style:style>'
        '<style:style style:name="R" style:family="text"><style:text-properties officeooo:rsid="01"/></style:style>'
    )
    names = f'{ODF_NAMES} xmlns:draw="d" xmlns:fo="f" xmlns:officeooo="o" xmlns:xlink="x"'
    content = (
        f"<office:document-content {names}><office:automatic-styles>{styles}</office:automatic-styles>"
        f"<office:body><office:{kind}>{body}</office:{kind}></office:body></office:document-content>"
    )
    media_type = f"application/vnd.oasis.opendocument.{kind}"
    return archived({"mimetype": media_type, "content.xml": content, "Pictures/a.png": b"\x89PNG\0"})


def book(body: str, language: str = "en", more: Mapping[str, str | bytes] = {}) -> bytes:  # it is only read
    items = "".join(
        f'<item id="{name}" href="{name}" media-type="{kind}"/>'
        for name, kind in (
            ("a.css", "text/css"),
            ("t.ncx", "application/x-dtbncx+xml"),
            ("c1.xhtml", "application/xhtml+xml"),
            ("c%20a.xhtml", "application/xhtml+xml"),
        )
    )
    package = (
        '<package xmlns:dc="dc"><metadata><dc:title>A book</dc:title><dc:language>en</dc:language></metadata>'
        f'<manifest>{items}</manifest><spine><itemref idref="c%20a.xhtml"/></spine></package>'
    )
    page = (
        f'<?xml version="1.0"?>\n<!DOCTYPE html>\n<html xmlns="h" lang="{language}" xml:lang="{language}">'
        "<body>{}</body></html>"
    )
    return archived(
        {
            "mimetype": "application/epub+zip",
            "META-INF/container.xml": '<container><rootfile full-path="OEBPS/c.opf"/></container>',
            "OEBPS/c.opf": package,
            "OEBPS/a.css": "p { color: red }",
            "OEBPS/c1.xhtml": page.format("<p>last</p>"),
            "OEBPS/c a.xhtml": page.format(body),
            "OEBPS/t.ncx": "<!DOCTYPE ncx PUBLIC 'x' 'y'><ncx><navLabel><text>Start &amp; end</text></navLabel></ncx>",
            **more,
        }
    )


def run(text: str, properties: str = "") -> str:
    return f"<a:r>{properties}<a:t>{text}</a:t></a:r>"


BOLD, ENGLISH = '<a:rPr b="1"/>', '<a:rPr lang="en-US" dirty="0"/>'
LINK = '<a:rPr lang="en-US"><a:hlinkClick r:id="rId1" xmlns:r="r"/></a:rPr>'
LINK_WRITTEN = LINK.replace(' lang="en-US"', "")

PPTX = Format(
    presentation,
    same(
        f"<a:p><a:pPr/>{run('TWO WORDS')}<a:endParaRPr/></a:p>",
        f"<a:p>{run('SOME ')}{run('BOLD', BOLD)}{run(' WORD')}</a:p>",
        f"<a:p>{run('ONE')}<a:br/>{run('TWO')}</a:p>",
        f'<a:p>{run("PAGE ")}<a:fld type="slidenum"><a:t>n</a:t></a:fld></a:p>',
        f"<a:p>{run('12 %')}</a:p><a:p/>",
    )
    | {
        f"<a:p>{run('tw', ENGLISH)}{run('o &amp; é')}</a:p>": f"<a:p>{run('TWO &amp; É')}</a:p>",
        f"<a:p>{run('all', BOLD)}{run(' bold', BOLD)}</a:p>": f"<a:p>{run('ALL BOLD', BOLD)}</a:p>",
        f"<a:p>{run('see ')}{run('it', LINK)}</a:p>": (f"<a:p>{run('SEE ')}{run('IT', LINK_WRITTEN)}</a:p>"),
    },
    of_xml(("r", "rPr", "hlinkClick", "t"), ("t",)),
    part="ppt/slides/slide1.xml",
    separator="",
    mixtures=(
        Mixture(
            ("<a:p>{}</a:p>", "<a:tbl><a:tc><a:txBody><a:p>{}</a:p></a:txBody></a:tc></a:tbl>"),
            (
                *(run("word "), run("two words"), run("bold ", BOLD), run("é", ENGLISH), run("it", LINK), "<a:br/>"),
                *(
                    run("2", '<a:rPr baseline="30000"/>'),
                    run("x, &amp; y. "),
                    '<a:fld type="slidenum"><a:t>n</a:t></a:fld>',
                ),
            ),
        ).made,
    ),
)


def said(text: str, properties: str = "") -> str:
    return f'<w:r>{properties}<w:t xml:space="preserve">{text}</w:t></w:r>'


def mark(kind: str) -> str:
    return f'<w:r><w:fldChar w:fldCharType="{kind}"/></w:r>'


def link_field(inner: str) -> str:
    return f"{mark('begin')}<w:r><w:instrText>HYPERLINK x</w:instrText></w:r>{mark('separate')}{inner}{mark('end')}"


HEAVY, RAISED = "<w:rPr><w:b/></w:rPr>", '<w:rPr><w:vertAlign w:val="superscript"/></w:rPr>'
PAGE = f"{mark('begin')}<w:r><w:instrText>PAGE</w:instrText></w:r>{mark('separate')}{said('n')}{mark('end')}"
BOX = f"<w:txbxContent><w:p>{said('A BOX')}</w:p></w:txbxContent>"
RUBY = f"<w:ruby><w:rubyPr/><w:rt>{said('x')}</w:rt><w:rubyBase>{said('Y Z')}</w:rubyBase></w:ruby>"
ALTERNATIVES = (
    f"<mc:AlternateContent><mc:Choice>{BOX}</mc:Choice><mc:Fallback>{BOX}</mc:Fallback></mc:AlternateContent>"
)

DOCX = Format(
    word,
    same(
        f"<w:p><w:pPr/>{said('TWO WORDS &amp; É')}</w:p><w:p/>",
        f"<w:p>{said('FIND ')}{said('THE KEYS', HEAVY)}{said(' NOW')}</w:p>",
        f'<w:p>{said("SEE ")}<w:hyperlink r:id="rId1">{said("THIS PAGE")}</w:hyperlink>{said(" NOW")}</w:p>',
        f'<w:p>{said("A ")}<w:bookmarkStart w:id="0"/>{said("B")}<w:bookmarkEnd w:id="0"/></w:p>',
        f"<w:p>{said('A ')}{PAGE}{said(' B')}</w:p>",
        f"<w:p>{said('A ')}{link_field(said('B C'))}{said(' D')}</w:p>",
        f'<w:p><w:fldSimple w:instr="PAGE">{said("n")}</w:fldSimple>{said(" A")}</w:p>',
        f'<w:p>{said("A")}<w:r><w:footnoteReference w:id="2"/></w:r>{said(" B")}</w:p>',
        f"<w:p>{said('A ')}<w:del><w:r><w:delText>gone</w:delText></w:r></w:del>{said('B')}</w:p>",
        f"<w:p>{said('A ')}<w:ins>{said('B')}</w:ins></w:p>",
        f"<w:p>{said('A ')}<w:r>{RUBY}</w:r></w:p>",
        f"<w:p>{said('A')}<w:r><w:drawing>{BOX}</w:drawing></w:r>{said('B')}</w:p>",
        f"<w:p>{said('A')}<w:r>{ALTERNATIVES}</w:r>{said('B')}</w:p>",
        f"<w:p>{said('HOUSE')}{said('1', RAISED)}{said(' IS')}</w:p>",
        f"<w:p>{said('A')}<w:r><w:tab/></w:r>{said('B')}<w:r><w:br/></w:r>{said('C')}</w:p>",
        f"<w:sdt><w:sdtPr/><w:sdtContent><w:p>{said('A')}</w:p></w:sdtContent></w:sdt>",
        f"<w:tbl><w:tr><w:tc><w:p>{said('A')}</w:p></w:tc><w:tc><w:p>{said('12')}</w:p></w:tc></w:tr></w:tbl>",
        "<w:p><m:oMath><m:r><m:t>x</m:t></m:r></m:oMath></w:p><w:sectPr/>",
    ),
    of_xml(("pPr", "r", "rPr", "b", "i", "vertAlign", "t", "noBreakHyphen"), ("t", "delText", "instrText")),
    part="word/document.xml",
    separator="",
    mixtures=(
        Mixture(
            ("<w:p>{}</w:p>", "<w:p><w:pPr/>{}</w:p>", "<w:tbl><w:tr><w:tc><w:p>{}</w:p></w:tc></w:tr></w:tbl>"),
            (
                *(said("a b "), said("word"), said("bold", HEAVY), said("2", RAISED), said("nn o, "), said(" "), PAGE),
                "<w:r><w:rPr><w:b/></w:rPr><w:t>c</w:t><w:tab/><w:t>d</w:t></w:r>",
                '<w:r><w:rPr><w:i/></w:rPr><w:t>g</w:t><w:br w:type="page"/><w:t>h</w:t></w:r>',
                f"<w:r><w:t>i</w:t><w:drawing>{BOX}</w:drawing><w:t>j</w:t></w:r>",
                *('<w:bookmarkStart w:id="1"/>', '<w:bookmarkEnd w:id="1"/>', ALTERNATIVES, f"<w:r>{RUBY}</w:r>"),
                '<w:r><w:footnoteReference w:id="2"/></w:r>',
                "<w:r><w:rPr><w:b/></w:rPr><w:t>u</w:t><w:noBreakHyphen/><w:t>v</w:t></w:r>",
                *(mark("begin"), "<w:r><w:instrText>HYPERLINK x</w:instrText></w:r>", mark("separate"), mark("end")),
            ),
            (
                '<w:hyperlink w:anchor="x">{}</w:hyperlink>',
                "<w:sdt><w:sdtPr/><w:sdtContent>{}</w:sdtContent></w:sdt>",
                '<w:fldSimple w:instr="HYPERLINK x">{}</w:fldSimple>',
                "<w:ins>{}</w:ins>",
                link_field("{}"),
            ),
        ).made,
    ),
)


def of_word(kind: str) -> Format:
    """Return the format of Word's files of another type."""
    return Format(
        lambda body, _: word(body, kind=kind),
        DOCX.constructs,
        DOCX.outline,
        part=DOCX.part,
        separator="",
        mixtures=DOCX.mixtures,
    )


NOTE = (
    "<text:note><text:note-citation>i</text:note-citation><text:note-body><text:p>{}</text:p></text:note-body>"
    "</text:note>"
)
_PARAGRAPHS = same(
    "<text:h>TWO WORDS</text:h>",
    '<text:p>A <text:span text:style-name="B">B</text:span> C</text:p>',
    '<text:p><text:a xlink:href="x">A</text:a></text:p>',
    '<text:p>A<text:tab/>B<text:line-break/>C<text:s text:c="2"/>D</text:p>',
    '<text:p>A <text:bookmark-start text:name="n"/>B<text:bookmark-end text:name="n"/></text:p>',
    "<text:p>PAGE <text:page-number>x</text:page-number> OF</text:p>",
    f"<text:p>A{NOTE.format('B')} C</text:p>",
    "<text:p>A <draw:frame><draw:text-box><text:p>B</text:p><text:p>C</text:p></draw:text-box></draw:frame>D</text:p>",
    "<text:p>A<office:annotation><text:p>b</text:p></office:annotation></text:p>",
    "<text:tracked-changes><text:deletion><text:p>a</text:p></text:deletion></text:tracked-changes>",
    "<text:p>A <text:ruby><text:ruby-base>B</text:ruby-base><text:ruby-text>c</text:ruby-text></text:ruby></text:p>",
    "<text:list><text:list-item><text:p>A</text:p></text:list-item></text:list>",
) | {
    "<text:p>\n  a\n  é &amp; b\n</text:p>": "<text:p>\n  A É &amp; B\n</text:p>",
    '<text:p>tw<text:span text:style-name="R">o w</text:span>ords</text:p>': "<text:p>TWO WORDS</text:p>",
}
_CELLS = same(
    "<table:table-cell><text:p>A</text:p></table:table-cell>",
    '<table:table-cell office:value-type="string"><text:p>A</text:p><text:p>B</text:p></table:table-cell>',
    '<table:table-cell office:value-type="float"><text:p>1 euro</text:p></table:table-cell>',
    '<table:table-cell table:formula="f"><text:p>b</text:p></table:table-cell>',
    '<table:table-cell table:number-columns-repeated="9"/>',
)
_ODF_WORDS = Mixture(
    (
        *("<text:p>{}</text:p>", '<text:h text:outline-level="1">{}</text:h>'),
        "<table:table-cell><text:p>{}</text:p><text:p>{}</text:p></table:table-cell>",
    ),
    (
        *("word ", "two words", " &amp; ", "é, ", "12 ", "<text:tab/>", '<text:s text:c="2"/>', "<text:line-break/>"),
        *("<text:page-number>x</text:page-number>", '<text:bookmark text:name="n"/>', "<text:soft-page-break/>"),
        *("<draw:frame><draw:image/></draw:frame>", "<office:annotation><text:p>b</text:p></office:annotation>"),
    ),
    (
        *('<text:span text:style-name="B">{}</text:span>', '<text:a xlink:href="x">{}</text:a>', NOTE),
        "<text:ruby><text:ruby-base>{}</text:ruby-base><text:ruby-text>c</text:ruby-text></text:ruby>",
        "<draw:frame><draw:text-box><text:p>{}</text:p></draw:text-box></draw:frame>",
    ),
)


def of_open_document(kind: str, constructs: dict[str, str]) -> Format:
    return Format(
        lambda body, _: open_document_file(body, kind),
        _PARAGRAPHS | _CELLS | constructs,
        of_xml(("span",)),
        part="content.xml",
        separator="",
        mixtures=(_ODF_WORDS.made,),
    )


ODT = of_open_document("text", {})
ODP = of_open_document(
    "presentation",
    same(
        '<draw:page draw:name="p"><draw:frame><draw:text-box><text:p>A</text:p></draw:text-box></draw:frame>'
        "<presentation:notes><draw:frame><draw:text-box><text:p>B</text:p></draw:text-box></draw:frame>"
        "</presentation:notes></draw:page>",
        "<draw:custom-shape><text:p>A</text:p></draw:custom-shape>",
    ),
)
ODS = of_open_document(
    "spreadsheet",
    same(
        '<table:table table:name="n"><table:table-row><table:table-cell><office:annotation><text:p>a</text:p>'
        "</office:annotation><text:p>A</text:p></table:table-cell></table:table-row></table:table>"
    ),
)

EPUB = Format(
    book,
    same(
        "<h1>TWO WORDS</h1>",
        "<p>A <b>B</b> &amp; SO</p>",
        '<p>A <a id="page12"/>B<br/>C</p>',
        '<title/><p>A</p><script src="x.js"/><p>B</p>',
        "<ul><li>A</li></ul><pre>b</pre><svg><path d='M0'/></svg>",
        '<p>A<sup><a href="#n">1</a></sup></p>',
        '<hr class="x"/><p class="y">B</p>',
    ),
    of_xhtml,
    part="OEBPS/c a.xhtml",
    separator="",
    mixtures=(
        Mixture(
            ("<p>{}</p>", "<div><h2>{}</h2></div>", "<table><tr><td>{}</td><td>{}</td></tr></table>"),
            ("word ", "two words", " &amp; ", "é, ", "<br/>", '<img src="a.png"/>', '<a id="x"/>', "12 "),
            ("<b>{}</b>", '<i class="y">{}</i> ', '<a href="z">{}</a>', "<span>{}</span>"),
        ).made,
    ),
    translate=served,
)
