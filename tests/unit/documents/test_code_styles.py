"""Code in office files: which styles and fonts make a text code, and what is told of it."""

import pytest

from service.documents import open_document
from service.documents.code_styles import CodeStyles, Style
from tests.unit.documents.formats.format import archived, files
from tests.unit.documents.formats.office import OPEN_XML, A, W, presentation, run, said
from tests.unit.documents.formats.packages import ODF_NAMES
from tests.unit.documents.pseudo import texts, translated

OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"


def relation(kind: str, target: str) -> str:
    return f'<Relationships><Relationship Type="{OFFICE}/{kind}" Target="{target}"/></Relationships>'


def word(body: str, styles: str = "") -> bytes:
    return archived(
        {
            "_rels/.rels": relation("officeDocument", "d.xml"),
            "_rels/d.xml.rels": relation("styles", "s.xml"),
            "d.xml": f'<w:document xmlns:w="{W}">{body}</w:document>',
            "s.xml": f'<w:styles xmlns:w="{W}">{styles}</w:styles>',
        }
    )


def word_style(key: str, name: str, rest: str = "", attributes: str = 'w:type="paragraph"') -> str:
    return f'<w:style w:styleId="{key}" {attributes}><w:name w:val="{name}"/>{rest}</w:style>'


def fonts(name: str) -> str:
    return f'<w:rPr><w:rFonts w:ascii="{name}" w:hAnsi="{name}"/></w:rPr>'


def paragraph(text: str, style: str = "", properties: str = "") -> str:
    return f'<w:p><w:pPr><w:pStyle w:val="{style}"/></w:pPr>{said(text, properties)}</w:p>'


PROSE = paragraph("Some prose")
NORMAL = 'w:type="paragraph" w:default="1"'


@pytest.mark.parametrize(
    ("body", "styles", "given"),
    [
        (paragraph("x", "Z1"), word_style("Z1", "HTML Preformatted"), []),
        (
            paragraph("x", "Z1"),
            word_style("Z1", "Mine", '<w:basedOn w:val="Z2"/>') + word_style("Z2", "Code Block"),
            [],
        ),
        (paragraph("x", "Z1"), word_style("Z1", "Mine", fonts("Source Code Pro")), []),
        (paragraph("x", "Z1"), word_style("Z1", "Code Caption"), ["x"]),
        (paragraph("x", "Z1"), word_style("Z1", "Heading 1", fonts("Courier New")), ["x"]),
        (paragraph("x", "Z1"), word_style("Z1", "Plain Text", fonts("Consolas")), ["x"]),
        (paragraph("x", "Z1"), word_style("Z1", "A", '<w:basedOn w:val="Z1"/>'), ["x"]),
        (paragraph("x", "", fonts("Consolas")), "", []),
        (paragraph("x", "", fonts("Monotype Corsiva")), "", ["x"]),
        (paragraph("x", "Z1", fonts("Arial")), word_style("Z1", "Mine", fonts("Courier")), ["x"]),
        # text in such a font is no code where this is the font of all text, or none is in another one
        (paragraph("x", "", fonts("Consolas")), word_style("N", "Normal", fonts("Courier New"), NORMAL), ["x"]),
        (paragraph("x", "", '<w:rPr><w:rStyle w:val="Z1"/></w:rPr>'), word_style("Z1", "Verbatim Char"), []),
    ],
)
def test_what_is_code_in_word(body: str, styles: str, given: list[str]) -> None:
    document = open_document("a.docx", word(PROSE + body, styles))
    assert texts(document) == ["Some prose", *given]
    assert list(document.notes) == ([] if given else ["1 paragraph of code was left as it is."])


def test_a_typewritten_document_is_translated() -> None:
    assert texts(open_document("a.docx", word(paragraph("All of it", "", fonts("Courier New"))))) == ["All of it"]


def test_code_in_a_sentence_keeps_its_run() -> None:
    code = said("open door ", fonts("Consolas").replace("</w:rPr>", '<w:noProof/><w:lang w:val="en"/></w:rPr>'))
    document = open_document("a.docx", word(f"<w:p>{said('Run ')}{code}{said('to see.')}</w:p>"))
    assert texts(document) == ['Run <code id="1">open door</code> to see.']
    assert code.replace("door ", "door") in files(translated(document))["d.xml"].decode()


def open_document_text(body: str, own: str = "", common: str = "") -> bytes:
    names = f'{ODF_NAMES} xmlns:svg="svg" xmlns:draw="d"'
    faces = '<style:font-face style:name="F1" svg:font-family="\'Fira Mono\'"/>'
    return archived(
        {
            "content.xml": f"<office:c {names}>{faces}{own}<text:p>Some prose</text:p>{body}</office:c>",
            "styles.xml": f"<office:s {names}>{faces}{common}</office:s>",
        }
    )


def odf_style(name: str, family: str = "paragraph", parent: str = "", font: str = "") -> str:
    properties = f'<style:text-properties style:font-name="{font}"/>' if font else ""
    about = f'style:name="{name}" style:family="{family}" style:parent-style-name="{parent}"'
    return f"<style:style {about}>{properties}</style:style>"


@pytest.mark.parametrize(
    ("body", "own", "common", "given"),
    [
        ('<text:p text:style-name="Preformatted_20_Text">x</text:p>', "", odf_style("Preformatted_20_Text"), []),
        (
            *('<text:p text:style-name="P1">x</text:p>', odf_style("P1", parent="Mine")),
            *(odf_style("Mine", font="F1"), []),
        ),
        (
            '<text:p>Run <text:span text:style-name="T1">open<text:s/>door</text:span>.</text:p>',
            *(odf_style("T1", "text", "Source_20_Text"), odf_style("Source_20_Text", "text")),
            ['Run <code id="1">opendoor</code>.'],
        ),
        (
            '<draw:frame draw:style-name="gr1"><text:p>x</text:p></draw:frame>',
            *(odf_style("gr1", "graphic", font="Courier"), "", []),
        ),
        (
            '<text:p text:style-name="P1">x</text:p>',
            odf_style("P1", font="F1"),
            odf_style("Standard", font="F1"),
            ["x"],
        ),
    ],
)
def test_what_is_code_in_open_document(body: str, own: str, common: str, given: list[str]) -> None:
    document = open_document("a.odt", open_document_text(body, own, common))
    assert texts(document) == ["Some prose", *given]
    assert list(document.notes) == ([] if given else ["1 paragraph of code was left as it is."])


LATIN = '<a:rPr><a:latin typeface="{}"/></a:rPr>'
LEVELS = '<a:lstStyle><a:lvl2pPr><a:defRPr><a:latin typeface="Menlo"/></a:defRPr></a:lvl2pPr></a:lstStyle>'


@pytest.mark.parametrize(
    ("body", "given"),
    [
        (f"<a:p>{run('x', LATIN.format('Courier'))}</a:p>", []),
        (f"<a:p>{run('Run ')}{run('x', LATIN.format('Courier'))}</a:p>", ['Run <code id="1">x</code>']),
        (f"<a:p>{run('x', LATIN.format('+mn-lt'))}</a:p>", ["x"]),
        (f'{LEVELS}<a:p><a:pPr lvl="1"/>{run("x")}</a:p>', []),
        (f"{LEVELS}<a:p>{run('x')}</a:p>", ["x"]),
    ],
)
def test_what_is_code_in_presentations(body: str, given: list[str]) -> None:
    prose = f"<a:p>{run('Some prose')}</a:p>"
    assert texts(open_document("a.pptx", presentation(prose + body))) == ["Some prose", *given]


def placeholder(about: str, body: str) -> str:
    return f"<p:sp><p:nvSpPr><p:cNvPr/><p:nvPr><p:ph {about}/></p:nvPr></p:nvSpPr><p:txBody>{body}</p:txBody></p:sp>"


@pytest.mark.parametrize(
    ("about", "level", "given"),
    [('idx="7"', 1, []), ('idx="7"', 0, ["x"]), ('idx="8"', 1, ["x"]), ('type="title"', 1, ["x"])],
)
def test_code_in_presentations_by_layouts(about: str, level: int, given: list[str]) -> None:
    body = f'<a:p>{run("Some prose")}</a:p>{placeholder(about, f"""<a:p><a:pPr lvl="{level}"/>{run("x")}</a:p>""")}'
    layout = placeholder('idx="7"', LEVELS) + placeholder('type="title"', LEVELS)
    more = {
        "ppt/slides/_rels/slide1.xml.rels": relation("slideLayout", "../layout.xml"),
        "ppt/layout.xml": f'<p:sldLayout xmlns:p="p" xmlns:a="{A}">{layout}</p:sldLayout>',
    }
    slide = presentation(body, **{"/ppt/layout.xml": f"{OPEN_XML}.presentationml.slideLayout+xml"})
    assert texts(open_document("a.pptx", archived({**files(slide), **more}))) == ["Some prose", *given]


@pytest.mark.parametrize(
    ("name", "is_code"),
    [
        *((name, True) for name in ("Source Text", "SourceCode", "HTML Code", "code-inline", "Quellcode", "Code 2")),
        *((name, False) for name in ("Plain Text", "Postal Code", "Code of Conduct", "Barcode", "")),
    ],
)
def test_the_names_of_styles_for_code(name: str, is_code: bool) -> None:
    assert CodeStyles({"k": Style(name, "", None)}, None, by_font=True).is_code(None, ("k",)) == is_code
