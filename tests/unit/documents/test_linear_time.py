"""Whatever a document has, often or long: reading it takes linear time."""

import contextlib
import json
import time
from collections.abc import Callable, Mapping

import pytest

from service.documents import DocumentError, DocumentOptions, open_document
from tests.patience import patient
from tests.unit.documents.formats.office import in_cell, link_field, mark, presentation, said, spreadsheet, word
from tests.unit.documents.formats.packages import NOTE, book, open_document_file
from tests.unit.documents.pseudo import translated

OPTIONS = DocumentOptions(columns=("text",), target="de", has_all=True, front_matter=("a",), skip_keys=("*a*a*a*b",))


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("a.md", "[" * 15_000),
        ("a.md", "![" * 7_500),
        ("a.md", "*a " * 5_000),
        ("a.md", "a**b" * 4_000),
        ("a.md", ">" * 15_000),
        ("a.md", "`" * 7_500 + " `" * 3_750),
        ("a.md", "<a " * 5_000),
        ("a.html", "<b>a" * 4_000),
        ("a.vtt", "WEBVTT\n\n00:01.000 --> 00:02.000\n" + "<i>a\n" * 4_000),
        ("a.srt", "1\n00:00:01,000 --> 00:00:02,000\n" + "{\\<i " * 4_000),
        *(
            ("a.srt", "0:01 --> 0:02\n" + unit * (10_000 // len(unit)))
            for unit in ("\r", "a\r", "0:01 --> 0:02\na\n", "<i>", "{", "1\n", "- a\n", "0:" * 9, "<v a>")
        ),
        *(
            ("a.ass", "[Events]\nDialogue: ,,,,,,,,," + unit * (20_000 // len(unit)))
            for unit in ("{", "{\\p1}", "{\\p1", "\\N", "a\\N", "{\\i1}a", "{\\k", "a")
        ),
        *(
            ("a.ttml", f"<tt><p>{unit * (20_000 // len(unit))}a</p></tt>")
            for unit in (" ", "<br/>", "\n<br/> ", "<b>a</b>", "<!--a-->", "&lt;")
        ),
        *(
            ("a.rst", unit * (15_000 // len(unit)))
            for unit in ("`", "*a ", "``a", "- ", "a::\n\n", "_", "\\", ".. a::\n", ":a:")
        ),
        ("a.po", 'msgid "' + "\\" * 15_000 + 'a"\nmsgstr ""'),
        ("a.csv", 'text\n"' + '""' * 7_500),
        ("a.xlf", '<xliff version="1.2"><trans-unit><source>a' + "<bpt/>" * 4_000 + "</source></trans-unit></xliff>"),
        ("a.xlf", '<xliff version="1.2"><a b="' + "x" * 500_000 + '"/></xliff>'),
        ("a.json", "[" * 15_000),
        ("a.json", '"' + "\\" * 15_001),
        ("a.yml", "- " * 15_000 + "a"),
        ("a.yml", "k: [" + "[" * 15_000),
        ("a.yml", "k: " + "{a: " * 15_000),
        ("a.yml", "k: a" + "\n " * 15_000),
        ("a.yml", "k: |\n" + " \n" * 15_000),
        ("a.yml", "k: '" + "''" * 15_000),
        ("a.properties", "a" + "\\\n" * 15_000),
        ("a.properties", "a=" + "\\\n " * 15_000),
        *(
            ("a.json", json.dumps([sign * (1_900 // len(sign))] * 50))
            for sign in ("a-", "a/", "yy", "'", "[", "[]", "\\d", "(1", "*", "AB_", "^", "text/", "A", "- ")
        ),
        ("a.json", json.dumps({"icon": "a " * 50_000, "a." * 50_000: "&" * 100_000, "b": "&a " * 30_000})),
        *((name, '{"cells": [], "a": ' + "1" * 100_000 + "}") for name in ("a.json", "a.ipynb", "a.xcstrings")),
        ("a.ts", "<TS><message numerus='yes'><source>a b</source><translation>" + "<numerusform/>" * 99_000),
        ("a.strings", "/*" * 15_000),
        ("a.strings", '"' + '\\"' * 15_000),
        ("a.xml", "<resources><string>a" + "&lt;b " * 15_000 + "</string></resources>"),
        ("a.xml", "<resources><string>" + '"' * 15_000 + "a</string></resources>"),
        ("a.xml", "<resources><string>" + "<b/>" * 15_000 + "a</string></resources>"),
    ],
)
def test_hostile_files_take_linear_time(name: str, source: str) -> None:
    """In CPU time, of which each takes some tenths of a second; what takes quadratic time takes much longer."""
    began = time.process_time()
    with contextlib.suppress(DocumentError):
        translated(open_document(name, source.encode(), OPTIONS))
    assert time.process_time() - began < patient(2.5)


RUN = said("word ")
LINK = link_field(RUN).removesuffix(mark("end"))
ODT_NOTE = "word" + NOTE.format("a note")
TEXT_BOX = f"<w:p>{RUN}<w:r><w:pict><w:txbxContent><w:p>{RUN}</w:p></w:txbxContent></w:pict></w:r>{RUN}</w:p>"
SRT_TIMES, VTT_TIMES = "00:00:01,000 --> 00:00:02,000", "00:01.000 --> 00:02.000"
UNIT = '<trans-unit id="1"><source>a word</source></trans-unit>'


def xliff(units: str) -> str:
    return f'<xliff version="1.2"><file><body>{units}</body></file></xliff>'


Shape = tuple[str, Callable[[int], str | bytes]]
# What took quadratic time once, so clearly that it shows in small documents.
QUADRATIC: Mapping[str, Shape] = {
    "vtt, an open tag": ("a.vtt", lambda n: f"WEBVTT\n\n{VTT_TIMES}\nw <" + "a" * n),
    "markdown, spaces": ("a.md", lambda n: "a" + " " * n + "b"),
    "markdown, front matter": ("a.md", lambda n: "---\r\n" + "a: b\r\n" * (n // 10) + "w"),
    "markdown, values of front matter": ("a.md", lambda n: "---\n" + "a: >\n  b\n" * (n // 10) + "---\n"),
    "markdown, lines": ("a.md", "a\n".__mul__),
    "markdown, pairs in pairs": ("a.md", lambda n: "*a " * (n // 4) + "`b`" + "*" * (n // 4)),
    "markdown, blocks that do not end": ("a.md", lambda n: "\\[\n" * (n // 4)),
    "xliff, spaces in a tag": ("a.xlf", lambda n: xliff(UNIT.replace("</s", f"</source><target{' ' * n}/><s"))),
    "xliff, spaces in a value": ("a.xlf", lambda n: xliff(UNIT.replace("</trans", f'<target a="b{" " * n}"/></trans'))),
    "word, fields that do not end": ("a.docx", lambda n: word(f"<w:p>{mark('begin') * n}{RUN}</w:p>")),
    "word, links in links": ("a.docx", lambda n: word(f"<w:p>{LINK * (n // 4)}{mark('end') * (n // 4)}{RUN}</w:p>")),
    "yaml, comments": ("a.yml", lambda n: "k: a\n" + "  # b\n" * n),
    "yaml, empty lines": ("a.yml", lambda n: "k: a\n" * 9 + "\n" * n + "l: b"),
    "odt, notes": ("a.odt", lambda n: open_document_file(f"<text:p>{ODT_NOTE * (n // 4)}</text:p>")),
    "epub, a tag without an end": ("a.epub", lambda n: book("<a " * n)),
}
# Of each format what is often or long in it, by the number; half of them took quadratic time once, or more.
SHAPES: Mapping[str, Shape] = {
    **QUADRATIC,
    "text, lines": ("a.txt", "a word\n".__mul__),
    "csv, rows": ("a.csv", lambda n: "id,text\n" + "1,two words\n" * n),
    "csv, columns": ("a.csv", lambda n: ",".join(["text", *map(str, range(n))]) + "\n" + "w," * n + "w\n"),
    "csv, a long name": ("a.csv", lambda n: f"text,{'x' * n}\n" + "w,w\n" * n),
    "tsv, rows": ("a.tsv", lambda n: "id\ttext\n" + "1\ttwo words\n" * n),
    "po, entries": ("a.po", 'msgid "a word"\nmsgstr ""\n\n'.__mul__),
    "po, lines of a string": ("a.po", lambda n: 'msgid ""\n' + '"a word\\n"\n' * n + 'msgstr ""\n'),
    "srt, cues": ("a.srt", f"1\n{SRT_TIMES}\na word\n\n".__mul__),
    "srt, lines of a cue": ("a.srt", lambda n: f"1\n{SRT_TIMES}\n" + "- a word\n" * n),
    "srt, tags of a word": ("a.srt", lambda n: f"1\n{SRT_TIMES}\n" + "<i>w</i>" * n),
    "vtt, cues": ("a.vtt", lambda n: "WEBVTT\n\n" + f"{VTT_TIMES}\na word\n\n" * n),
    "ass, events": ("a.ass", lambda n: "[Events]\n" + "Dialogue: ,,,,,,,,,a {\\i1}word{\\i0}\n" * n),
    "tmx, units": ("a.tmx", lambda n: f"<tmx>{'<tu><tuv><seg>a word</seg></tuv></tu>' * n}</tmx>"),
    "ttml, cues": ("a.ttml", lambda n: f"<tt>{'<p>é word<br/>b</p>' * n}</tt>"),
    "html, paragraphs": ("a.html", "<p>a word</p>".__mul__),
    "html, depth": ("a.html", lambda n: "<div><b>" * n + "word"),
    "markdown, paragraphs": ("a.md", "a word\n\n".__mul__),
    "markdown, line breaks": ("a.md", "a word  \n".__mul__),
    "markdown, blocks of many names": ("a.md", lambda n: "".join(f"\\begin{{a{i}}}\n" for i in range(n // 4))),
    "markdown, templates": ("a.md", lambda n: "{% a %}" * (n // 4) + "b"),
    "markdown, braces": ("a.md", lambda n: "{/* a */}\n\n" + "<A b={" * (n // 4)),
    "markdown, brackets": ("a.md", lambda n: "[a]{.b}" + "[[" * (n // 4)),
    "markdown, signs": ("a.md", lambda n: "$a ==b ~c ^d {+e :f" * (n // 8)),
    "markdown, admonitions": ("a.md", lambda n: "!!! a\n    b\n\n" * (n // 4)),
    "markdown, terms": ("a.md", lambda n: "a\nb\n: c\n\n" * (n // 8)),
    "markdown, images": ("a.md", lambda n: "![a b](c 'd') " * (n // 8)),
    "markdown, definitions": ("a.md", lambda n: "".join(f"[a{i}]: b 'c'\n" for i in range(n // 8))),
    "markdown, cells": ("a.md", lambda n: "|a" * (n // 10) + "|\n" + "|-" * (n // 10) + "|\n" + "|w" * (n // 10)),
    "xliff, units on one line": ("a.xlf", lambda n: "\n" + xliff(UNIT * n)),
    "word, paragraphs": ("a.docx", lambda n: word(f"<w:p>{RUN}</w:p>" * n)),
    "word, runs": ("a.docx", lambda n: word(f"<w:p>{RUN * n}</w:p>")),
    "json, values": ("a.json", lambda n: "[" + '"a word",' * n + "1]"),
    "json, depth": ("a.json", lambda n: "[" + ('{"a":' * 150 + '"word"' + "}" * 150 + ",") * (n // 100) + "1]"),
    "notebook, cells": (
        "a.ipynb",
        lambda n: '{"cells": [' + ",".join(['{"cell_type": "markdown", "source": ["a word"]}'] * (n // 8)) + "]}",
    ),
    "rst, paragraphs": ("a.rst", "a *word*\n\n".__mul__),
    "rst, lines": ("a.rst", "a\n".__mul__),
    "rst, titles": ("a.rst", "a\n=\n\n`a`_\n\n".__mul__),
    "rst, signs": ("a.rst", lambda n: "`a *b |c :d:`e ``f " * (n // 8)),
    "rst, items": ("a.rst", "- a\n\n  - b::\n\n     c\n\n".__mul__),
    "yaml, keys": ("a.yml", "k: a word\n".__mul__),
    "yaml, lines of a value": ("a.yml", lambda n: "k: a\n" + "  word\n" * n),
    "yaml, lines of a block": ("a.yml", lambda n: "k: >\n" + "  word\n\n" * n),
    "yaml, a list in brackets": ("a.yml", lambda n: f"k: [{'a word, ' * n}]"),
    "properties, lines": ("a.properties", "k=a word\n".__mul__),
    "properties, lines of a value": ("a.properties", lambda n: "k=" + "a word\\\n " * n),
    "strings, entries": ("a.strings", '"k" = "a word";\n'.__mul__),
    "android, strings": ("a.xml", lambda n: f"<resources>{'<string>a word</string>' * n}</resources>"),
    "android, tags": ("a.xml", lambda n: f"<resources><string>a{'<b>c</b>&lt;i>d&lt;/i>' * n}</string></resources>"),
    "resx, values": ("a.resx", lambda n: f"<root>{'<data><value>a word</value></data>' * n}</root>"),
    "qt, messages": ("a.ts", lambda n: f"<TS>{'<message><source>a</source><translation/></message>' * n}</TS>"),
    "qt, spaces": ("a.ts", lambda n: f"<TS><message><source>a</source><translation{' ' * n}/></message></TS>"),
    "qt, endings": ("a.ts", lambda n: f"<TS><message><source>{'a(s)' * n}</source><translation/></message></TS>"),
    "xcstrings, keys": (
        "a.xcstrings",
        lambda n: '{"sourceLanguage":"en","strings":{' + ",".join(f'"a {i}":{{}}' for i in range(n)) + "}}",
    ),
    "xcstrings, spaces": ("a.xcstrings", lambda n: '{\n"strings" : {"a b": {"c":1' + " \n" * n + "}}}"),
    "xcstrings, variations": (
        "a.xcstrings",
        lambda n: (
            '{"sourceLanguage":"en","strings":{"k":{"localizations":{"en":{"variations":{'
            + ",".join(f'"c{i}":{{"stringUnit":{{"value":"a word"}}}}' for i in range(n))
            + "}}}}}}"
        ),
    ),
    "stringsdict, strings": (
        "a.stringsdict",
        lambda n: f"<plist><dict>{'<key>k</key><string>a word</string>' * n}</dict></plist>",
    ),
    "presentation, paragraphs": ("a.pptx", lambda n: presentation("<a:p><a:r><a:t>word</a:t></a:r></a:p>" * n)),
    "presentation, placeholders": (
        *("a.pptx", lambda n: presentation("<p:sp><p:nvSpPr><p:nvPr><p:ph/></p:nvPr></p:nvSpPr><a:p/></p:sp>" * n)),
    ),
    "presentation, runs": ("a.pptx", lambda n: presentation(f"<a:p>{'<a:r><a:t>word</a:t></a:r>' * n}</a:p>")),
    "spreadsheet, strings": ("a.xlsx", lambda n: spreadsheet("<si><t>a word</t></si>" * n)),
    "spreadsheet, runs": ("a.xlsx", lambda n: spreadsheet(f"<si>{in_cell('word ') * n}</si>")),
    "spreadsheet, cells": ("a.xlsx", lambda n: spreadsheet("", cells='<c t="str"><v>a word</v></c>' * n)),
    "spreadsheet, addresses": ("a.xlsx", lambda n: spreadsheet(f"<si><t>{'A1.' * n}</t></si>")),
    "spreadsheet, formulas": ("a.xlsx", lambda n: spreadsheet("<si/>", cells='<c><f>"a</f></c>' * n + "<" * n)),
    "odt, paragraphs": ("a.odt", lambda n: open_document_file("<text:p>word</text:p>" * n)),
    "epub, paragraphs": ("a.epub", lambda n: book("<p>a word</p>" * n)),
    "epub, empty tags": ("a.epub", lambda n: book("<p>" + 'a<a id="page1"/>' * n + "</p>")),
    "word, boxes": ("a.docx", lambda n: word(TEXT_BOX * (n // 4))),
}


def seconds_for(shape: str, number: int) -> float:
    name, made = SHAPES[shape]
    source = made(number)
    data = source.encode() if isinstance(source, str) else source
    began = time.process_time()
    with contextlib.suppress(DocumentError):
        translated(open_document(name, data, OPTIONS))
    return time.process_time() - began


@pytest.mark.parametrize("shape", QUADRATIC)
def test_four_times_as_much_takes_about_four_times_as_long(shape: str) -> None:
    seconds_for(shape, 100)  # imports
    few = max(seconds_for(shape, 2_500), 0.005)
    # What is quadratic takes 16 times as long, always; garbage collection makes one of the other runs long.
    assert any(seconds_for(shape, 10_000) < 9 * few for _ in range(3))


@pytest.mark.full
@pytest.mark.timeout(120)
@pytest.mark.parametrize("shape", SHAPES)
def test_300_000_take_less_than_a_process_may(shape: str) -> None:
    seconds = seconds_for(shape, 300_000)
    print(f"{shape}: {seconds:.1f} s")
    assert seconds < patient(60)
