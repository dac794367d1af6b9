"""Of each format of strings and of packages what documents have in it, and what a translator into capitals makes of it.

Each construct stands for itself, so any number of them, in any order, is a document, and its translation is theirs.
"""

import io
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

A = "http://schemas.openxmlformats.org/drawingml/2006/main"
OPEN_XML = "application/vnd.openxmlformats-officedocument"
ODF = "urn:oasis:names:tc:opendocument:xmlns"
ODF_NAMES = " ".join(f'xmlns:{name}="{ODF}:{name}:1.0"' for name in ("office", "style", "text", "table", "drawing"))


def archived(files: Mapping[str, str | bytes]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            # What is repeated often would be too small for what it unpacks to.
            is_stored = name == "mimetype" or len(content) > 100_000
            kind = zipfile.ZIP_STORED if is_stored else zipfile.ZIP_DEFLATED
            archive.writestr(zipfile.ZipInfo(name), content, kind)
    return stream.getvalue()


def presentation(body: str, **more: str) -> bytes:
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


def open_document_text(body: str) -> bytes:
    styles = (
        '<style:style style:name="B" style:family="text"><style:text-properties fo:font-weight="bold"/></style:style>'
        '<style:style style:name="R" style:family="text"><style:text-properties officeooo:rsid="01"/></style:style>'
    )
    names = f'{ODF_NAMES} xmlns:draw="d" xmlns:fo="f" xmlns:officeooo="o" xmlns:xlink="x"'
    content = (
        f"<office:document-content {names}><office:automatic-styles>{styles}</office:automatic-styles>"
        f"<office:body><office:text>{body}</office:text></office:body></office:document-content>"
    )
    kind = "application/vnd.oasis.opendocument.text"
    return archived({"mimetype": kind, "content.xml": content, "Pictures/a.png": b"\x89PNG\0"})


def book(body: str, more: Mapping[str, str | bytes] = {}) -> bytes:  # it is only read
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
    page = '<?xml version="1.0"?>\n<!DOCTYPE html>\n<html xmlns="h" lang="en" xml:lang="en"><body>{}</body></html>'
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


@dataclass(frozen=True)
class Format:
    """A format: how constructs become a document, in which file of it they are, and what each becomes."""

    document: Callable[[str], bytes]
    constructs: Mapping[str, str]
    part: str = ""
    separator: str = field(default="")

    def written(self, constructs: list[str]) -> bytes:
        return self.document(self.separator.join(constructs))

    def body(self, data: bytes) -> bytes:
        """Return the file that the constructs are in."""
        if not self.part:
            return data
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            return archive.read(self.part)


def run(text: str, properties: str = "") -> str:
    return f"<a:r>{properties}<a:t>{text}</a:t></a:r>"


BOLD, ENGLISH = '<a:rPr b="1"/>', '<a:rPr lang="en-US" dirty="0"/>'
LINK = '<a:rPr lang="en-US"><a:hlinkClick r:id="rId1" xmlns:r="r"/></a:rPr>'
LINK_WRITTEN = LINK.replace(' lang="en-US"', "")

FORMATS: Mapping[str, Format] = {
    "a.json": Format(
        lambda body: f'{{"é": "",\n{body}\n}}\n'.encode(),
        {
            '"a.b" : "two words"': '"a.b" : "TWO WORDS"',
            '"n": 12.50e+3, "t": true, "z": null': '"n": 12.50e+3, "t": true, "z": null',
            '"deep": {"er": [ "one", 1, {"x": "y z"}, [] ]}': '"deep": {"er": [ "ONE", 1, {"x": "Y Z"}, [] ]}',
            '"twice": "a", "twice": "b"': '"twice": "A", "twice": "B"',
            r'"e": "a \"b\"\n\tc \\ d"': r'"e": "A \"B\"\n\tC \\ D"',
            '"space": "  x  "': '"space": "  X  "',
            '"none": "", "digits": "12 %"': '"none": "", "digits": "12 %"',
            '"key_other": "ä"': '"key_other": "Ä"',
            r'"half": "a \ud83d"': r'"half": "a \ud83d"',
            r'"pair": "a \ud83d\ude00"': '"pair": "A \U0001f600"',
            '"@k": {"description": "d"}, "$schema": "http://a/b"': '"@k": {"description": "d"}, "$schema": "http://a/b"',
            '"@@locale": "en", "k": "a"': '"@@locale": "de", "k": "A"',
        },
        separator=",\n",
    ),
    "a.yml": Format(
        lambda body: f"# a comment\ntop: 1\n{body}\n".encode(),
        {
            "k: two words # a comment": "k: TWO WORDS # a comment",
            "k: 'it''s'": "k: 'IT''S'",
            r'k: "a \"b\"\n\u00e9"': 'k: "A \\"B\\"\\n\\u00c9"',
            'k: "one\n  two\n\n  three \\\n  four"': 'k: "ONE TWO\\nTHREE FOUR"',
            "k: one\n  two # c": "k: ONE TWO # c",
            "k: |\n  one\n\n    two\n": "k: |\n  ONE\n\n    TWO\n",
            "k: >-\n  one\n  two\n\n  three": "k: >-\n  ONE TWO\n\n  THREE",
            "k: |2+\n   one\n\n": "k: |2+\n   ONE\n\n",
            "k:\n- one\n- a: b\n  c: two words\n-\n  - x": "k:\n- ONE\n- a: B\n  c: TWO WORDS\n-\n  - X",
            "k: [a b, \"c\", {d: e, 'f': g h}, 1] # x": "k: [A B, \"C\", {d: E, 'f': G H}, 1] # x",
            "k: {a: b,\n  c}": "k: {a: B,\n  c}",
            "k: &name a b\nl: *name\n<<: *name": "k: &name A B\nl: *name\n<<: *name",
            "k: !!str 12 a\nl: !ruby/symbol b\nm: :sym": "k: !!str 12 A\nl: !ruby/symbol b\nm: :sym",
            "k: yes\nl: ~\nm: 1e3\nn: 2001-01-02T03:04:05Z\no:": "k: yes\nl: ~\nm: 1e3\nn: 2001-01-02T03:04:05Z\no:",
            "date:\n  formats:\n    x: '%d of'\n  day: Sunday": "date:\n  formats:\n    x: '%d of'\n  day: SUNDAY",
            "number:\n  format:\n    format: '%n %u'\n    unit: pound": (
                "number:\n  format:\n    format: '%n %u'\n    unit: POUND"
            ),
            "a_html: <b>x</b> y &amp; z": 'a_html: "<b>X</b> Y &amp; Z"',
            '"quoted key": -x y': '"quoted key": "-X Y"',
            "u: see http://a.b/c#d": "u: SEE HTTP://A.B/C#D",
            "q:\n  later\n  text": "q:\n  LATER TEXT",
            "---\nother: 'doc'": "---\nother: 'DOC'",
        },
        separator="\n",
    ),
    "a.properties": Format(
        lambda body: f"# é\n{body}\n".encode(),
        {
            "key=two words": "key=TWO WORDS",
            "key : a\\\n    b\\\r\n  c": "key : ABC",
            "k\\ e\\:y a": "k\\ e\\:y A",
            "! a comment\n  # another\\\n\nempty=\nalone": "! a comment\n  # another\\\n\nempty=\nalone",
            "e=\\ a\\tb\\n\\\\c": "e=\\ A\\tB\\n\\\\C",
            "u=\\u0041b": "u=AB",
            "m=It''s {0}": "m=IT''S {0}",
            "m=It's {0}": "m=IT'S {0}",
            "t=a  ": "t=A  ",
            "n=12": "n=12",
        },
        separator="\n",
    ),
    "a.strings": Format(
        lambda body: f"/* é */\n{body}\n".encode(),
        {
            '"a b" = "two words";': '"a b" = "TWO WORDS";',
            'key="a \\"b\\"\\n";// c': 'key="A \\"B\\"\\n";// c',
            '/* = "no"; */ "k" /**/ = "a\nb" ;': '/* = "no"; */ "k" /**/ = "A\\nB" ;',
            '"alone";': '"alone";',
            '"p" = "%1$@ %d";': '"p" = "%1$@ %D";',
        },
        separator="\n",
    ),
    "a.xml": Format(
        lambda body: (
            '<?xml version="1.0" encoding="utf-8"?>\n<resources xmlns:tools="t" tools:locale="en" '
            f'xmlns:xliff="urn:oasis:names:tc:xliff:document:1.2">\n{body}\n</resources>\n'
        ).encode(),
        {
            '<string name="a">two words</string>': '<string name="a">TWO WORDS</string>',
            '<string name="a">\n  é\n  b</string >': '<string name="a">\n  É B</string >',
            r'<string name="a">it\'s \"x\"\n\t\u0040 &amp; &lt; "q"</string>': (
                r'<string name="a">IT\'S \"X\"\n\t@ &amp; &lt; Q</string>'
            ),
            '<string name="a">"  it\'s  b "</string>': r'<string name="a">"  IT\'S  B "</string>',
            '<string name="a" translatable="false">x</string>': '<string name="a" translatable="false">x</string>',
            '<string name="a">a <b>b <i>c</i></b><br/>d</string>': (
                '<string name="a">A <b>B <i>C</i></b><br/>D</string>'
            ),
            r'<string name="a">a <b>b</b>\n\nc</string>': r'<string name="a">A <b>B</b>\n\nC</string>',
            '<string name="a">for <xliff:g id="n" example="x">%1$s</xliff:g> only</string>': (
                '<string name="a">FOR <xliff:g id="n" example="x">%1$s</xliff:g> ONLY</string>'
            ),
            r'<string name="a"> <![CDATA[<p>a <a href="x">it\'s</a></p>]]> </string>': (
                r'<string name="a"> <![CDATA[<p>A <a href="x">IT\'S</a></p>]]> </string>'
            ),
            '<string name="a">a &lt;b>b&lt;/b&gt;</string>': '<string name="a">A &lt;b>B&lt;/b&gt;</string>',
            '<string name="a">@string/b</string><string/>': '<string name="a">@string/b</string><string/>',
            r'<string name="a">\@you \?</string>': r'<string name="a">\@YOU ?</string>',
            '<plurals name="p"><item quantity="one">a</item><item quantity="other">b</item></plurals>': (
                '<plurals name="p"><item quantity="one">A</item><item quantity="other">B</item></plurals>'
            ),
            '<string-array name="p"><item>a</item><!-- c --></string-array><integer name="i">1</integer>': (
                '<string-array name="p"><item>A</item><!-- c --></string-array><integer name="i">1</integer>'
            ),
        },
        separator="\n",
    ),
    "a.resx": Format(
        lambda body: f'<?xml version="1.0"?>\n<root>\n{body}\n</root>\n'.encode(),
        {
            '<data name="a" xml:space="preserve"><value>a &amp; é</value><comment>c</comment></data>': (
                '<data name="a" xml:space="preserve"><value>A &amp; É</value><comment>c</comment></data>'
            ),
            '<data name="a"><value> a\n b </value></data>': '<data name="a"><value> A\n B </value></data>',
            '<data name="a" type="t"><value>x</value></data>': '<data name="a" type="t"><value>x</value></data>',
            '<data name="&gt;&gt;a.b"><value>x</value></data>': '<data name="&gt;&gt;a.b"><value>x</value></data>',
            "<resheader><value>x</value></resheader>": "<resheader><value>x</value></resheader>",
        },
        separator="\n",
    ),
    "a.pptx": Format(
        presentation,
        {
            f"<a:p><a:pPr/>{run('two words')}<a:endParaRPr/></a:p>": (
                f"<a:p><a:pPr/>{run('TWO WORDS')}<a:endParaRPr/></a:p>"
            ),
            f"<a:p>{run('tw', ENGLISH)}{run('o &amp; é')}</a:p>": f"<a:p>{run('TWO &amp; É')}</a:p>",
            f"<a:p>{run('some ')}{run('bold', BOLD)}{run(' word')}</a:p>": (
                f"<a:p>{run('SOME ')}{run('BOLD', BOLD)}{run(' WORD')}</a:p>"
            ),
            f"<a:p>{run('all', BOLD)}{run(' bold', BOLD)}</a:p>": f"<a:p>{run('ALL BOLD', BOLD)}</a:p>",
            f"<a:p>{run('see ')}{run('it', LINK)}</a:p>": f"<a:p>{run('SEE ')}{run('IT', LINK_WRITTEN)}</a:p>",
            f"<a:p>{run('one')}<a:br/>{run('two')}</a:p>": f"<a:p>{run('ONE')}<a:br/>{run('TWO')}</a:p>",
            f'<a:p>{run("page ")}<a:fld type="slidenum"><a:t>n</a:t></a:fld></a:p>': (
                f'<a:p>{run("PAGE ")}<a:fld type="slidenum"><a:t>n</a:t></a:fld></a:p>'
            ),
            f"<a:p>{run('12 %')}</a:p><a:p/>": f"<a:p>{run('12 %')}</a:p><a:p/>",
        },
        part="ppt/slides/slide1.xml",
    ),
    "a.odt": Format(
        open_document_text,
        {
            "<text:h>two words</text:h>": "<text:h>TWO WORDS</text:h>",
            "<text:p>\n  a\n  é &amp; b\n</text:p>": "<text:p>\n  A É &amp; B\n</text:p>",
            '<text:p>a <text:span text:style-name="B">b</text:span> c</text:p>': (
                '<text:p>A <text:span text:style-name="B">B</text:span> C</text:p>'
            ),
            '<text:p>tw<text:span text:style-name="R">o w</text:span>ords</text:p>': "<text:p>TWO WORDS</text:p>",
            '<text:p><text:a xlink:href="x">a</text:a></text:p>': '<text:p><text:a xlink:href="x">A</text:a></text:p>',
            '<text:p>a<text:tab/>b<text:line-break/>c<text:s text:c="2"/>d</text:p>': (
                '<text:p>A<text:tab/>B<text:line-break/>C<text:s text:c="2"/>D</text:p>'
            ),
            '<text:p>a <text:bookmark-start text:name="n"/>b<text:bookmark-end text:name="n"/></text:p>': (
                '<text:p>A <text:bookmark-start text:name="n"/>B<text:bookmark-end text:name="n"/></text:p>'
            ),
            "<text:p>page <text:page-number>x</text:page-number> of</text:p>": (
                "<text:p>PAGE <text:page-number>x</text:page-number> OF</text:p>"
            ),
            "<text:p>a<text:note><text:note-citation>i</text:note-citation><text:note-body><text:p>b</text:p>"
            "</text:note-body></text:note> c</text:p>": (
                "<text:p>A<text:note><text:note-citation>i</text:note-citation><text:note-body><text:p>B</text:p>"
                "</text:note-body></text:note> C</text:p>"
            ),
            "<text:p>a <draw:frame><draw:text-box><text:p>b</text:p><text:p>c</text:p></draw:text-box></draw:frame>"
            "d</text:p>": (
                "<text:p>A <draw:frame><draw:text-box><text:p>B</text:p><text:p>C</text:p></draw:text-box></draw:frame>"
                "D</text:p>"
            ),
            "<text:p>a<office:annotation><text:p>b</text:p></office:annotation></text:p>": (
                "<text:p>A<office:annotation><text:p>b</text:p></office:annotation></text:p>"
            ),
            "<text:tracked-changes><text:deletion><text:p>a</text:p></text:deletion></text:tracked-changes>": (
                "<text:tracked-changes><text:deletion><text:p>a</text:p></text:deletion></text:tracked-changes>"
            ),
            "<text:p>a <text:ruby><text:ruby-base>b</text:ruby-base><text:ruby-text>c</text:ruby-text></text:ruby>"
            "</text:p>": (
                "<text:p>A <text:ruby><text:ruby-base>B</text:ruby-base><text:ruby-text>c</text:ruby-text></text:ruby>"
                "</text:p>"
            ),
            "<table:table-cell><text:p>a</text:p></table:table-cell>"
            '<table:table-cell office:value-type="float"><text:p>1 euro</text:p></table:table-cell>'
            '<table:table-cell table:formula="f"><text:p>b</text:p></table:table-cell>': (
                "<table:table-cell><text:p>A</text:p></table:table-cell>"
                '<table:table-cell office:value-type="float"><text:p>1 euro</text:p></table:table-cell>'
                '<table:table-cell table:formula="f"><text:p>b</text:p></table:table-cell>'
            ),
        },
        part="content.xml",
    ),
    "a.epub": Format(
        book,
        {
            "<h1>two words</h1>": "<h1>TWO WORDS</h1>",
            "<p>a <b>b</b> &amp; é</p>": "<p>A <b>B</b> &amp; É</p>",
            '<p>a <a id="page12"/>b<br/>c</p>': '<p>A <a id="page12"/>B<br/>C</p>',
            '<title/><p>a</p><script src="x.js"/><p>b</p>': '<title/><p>A</p><script src="x.js"/><p>B</p>',
            "<ul><li>a</li></ul><pre>b</pre><svg><path d='M0'/></svg>": (
                "<ul><li>A</li></ul><pre>b</pre><svg><path d='M0'/></svg>"
            ),
            '<p>a<sup><a href="#n">1</a></sup></p>': '<p>A<sup><a href="#n">1</a></sup></p>',
            '<hr class="x"/><p class="y">b</p>': '<hr class="x"/><p class="y">B</p>',
        },
        part="OEBPS/c a.xhtml",
    ),
}
