"""OpenDocument, EPUB, and its chapters by themselves."""

from collections.abc import Mapping
from dataclasses import replace

from tests.unit.documents.formats.format import Format, Mixture, archived, crlf, in_utf_16, same
from tests.unit.documents.formats.markup_readers import of_xhtml, of_xml
from tests.unit.documents.pseudo import served

ODF = "urn:oasis:names:tc:opendocument:xmlns"
ODF_NAMES = " ".join(
    f'xmlns:{name}="{ODF}:{name}:1.0"' for name in ("office", "style", "text", "table", "drawing", "presentation")
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


def chapter(body: str, language: str) -> bytes:
    return (
        f'<?xml version="1.0"?>\n<!DOCTYPE html>\n<html xmlns="h" lang="{language}" xml:lang="{language}">'
        f"<body>{body}</body></html>"
    ).encode()


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
    return archived(
        {
            "mimetype": "application/epub+zip",
            "META-INF/container.xml": '<container><rootfile full-path="OEBPS/c.opf"/></container>',
            "OEBPS/c.opf": package,
            "OEBPS/a.css": "p { color: red }",
            "OEBPS/c1.xhtml": chapter("<p>last</p>", language),
            "OEBPS/c a.xhtml": chapter(body, language),
            "OEBPS/t.ncx": "<!DOCTYPE ncx PUBLIC 'x' 'y'><ncx><navLabel><text>Start &amp; end</text></navLabel></ncx>",
            **more,
        }
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
    "<text:p>{}</text:p>|<text:h text:outline-level='1'>{}</text:h>"
    "|<table:table-cell><text:p>{}</text:p><text:p>{}</text:p></table:table-cell>",
    "word |two words| &amp; |é, |12 |<text:tab/>|<text:s text:c='2'/>|<text:line-break/>|<text:bookmark text:name='n'/>"
    "|<text:page-number>x</text:page-number>|<text:soft-page-break/>|<draw:frame><draw:image/></draw:frame>"
    "|<office:annotation><text:p>b</text:p></office:annotation>",
    "<text:span text:style-name='B'>{}</text:span>|<text:a xlink:href='x'>{}</text:a>|"
    "<text:ruby><text:ruby-base>{}</text:ruby-base><text:ruby-text>c</text:ruby-text></text:ruby>"
    "|<draw:frame><draw:text-box><text:p>{}</text:p></draw:text-box></draw:frame>|" + NOTE,
)


def of_open_document(kind: str, constructs: dict[str, str]) -> Format:
    return Format(
        lambda body, _: open_document_file(body, kind),
        _PARAGRAPHS | _CELLS | constructs,
        of_xml(("span",)),
        part="content.xml",
        separator="",
        mixture=_ODF_WORDS,
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
    mixture=Mixture(
        "<p>{}</p>|<div><h2>{}</h2></div>|<table><tr><td>{}</td><td>{}</td></tr></table>",
        "word |two words| &amp; |é, |12 |<br/>|<img src='a.png'/>|<a id='x'/>",
        "<b>{}</b>|<i class='y'>{}</i> |<a href='z'>{}</a>|<span>{}</span>",
    ),
    translate=served,
)
XHTML = replace(EPUB, document=chapter, part="", variants=(crlf, in_utf_16))
