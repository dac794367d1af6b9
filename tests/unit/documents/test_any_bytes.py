"""Whatever bytes a document has: it is read, or there is one clear error; never anything else."""

import contextlib
import io
import random
import zipfile

import docx
import pytest

from service.documents import DocumentError, DocumentOptions, open_document
from tests.unit.documents.pseudo import translated

OPTIONS = DocumentOptions(columns=("text",), target="de", has_all=True)
SOURCES = {
    "a.csv": 'id,text\n1,"He said ""go"", and went"\n2,keys\n',
    "a.tsv": "id\ttext\n1\tkeys\n",
    "a.txt": "keys\r\n\nwindow",
    "a.md": "# A *b* `c`\n\n> - [d](e) ![f](g)\n>   h\\\n>   i\n\n"
    "| a | b |\n|---|---|\n| c | `d` |\n\n<p>e</p>\n\n[r]: x\n",
    "a.html": "<p>a <b>b</b><br>c</p><script>d</script><ul><li>e",
    "a.po": '#, fuzzy\nmsgctxt "a"\nmsgid "b"\n"c"\n'
    'msgid_plural "d"\nmsgstr[0] ""\nmsgstr[1] "e"\n\n#~ msgid "f"\n#~ msgstr ""\n',
    "a.srt": "1\n00:00:01,000 --> 00:00:02,000\n<i>a</i>\n- b\n- c\n\n2\n00:00:03,000 --> 00:00:04,000\nd\n",
    "a.vtt": "WEBVTT\n\nNOTE a\n\nid\n00:01.000 --> 00:02.000 line:0\n<v b>c <i>d</i> &amp;\ne\n",
    "a.xlf": '<xliff version="1.2"><file><trans-unit id="a"><source>'
    'b <g id="1">c<x/></g><bpt id="2"/>d<ept id="2"/></source>'
    '<target state="new">e</target></trans-unit></file></xliff>',
    "a.xliff": '<xliff version="2.0"><file><unit><segment><source>a<pc id="1">b</pc>'
    "<ph/></source></segment></unit></file></xliff>",
}
XML = """<w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"><w:body><w:p><w:pPr/>
<w:r><w:rPr><w:b/></w:rPr><w:t xml:space="preserve">a </w:t></w:r><w:hyperlink>
<w:r><w:t>b</w:t><w:tab/><w:t>c</w:t></w:r>
</w:hyperlink><w:r><w:fldChar w:fldCharType="begin"/></w:r>
<w:r><w:instrText>HYPERLINK</w:instrText></w:r><w:r><w:fldChar
w:fldCharType="separate"/></w:r><w:r><w:t>d</w:t></w:r><w:r><w:fldChar w:fldCharType="end"/></w:r><w:bookmarkStart/>
<w:sdt><w:sdtContent><w:r><w:t>e</w:t><w:br w:type="page"/><w:t>f</w:t></w:r></w:sdtContent></w:sdt></w:p></w:body>
</w:document>"""


def mutated(data: bytes, chance: random.Random) -> bytes:
    """Return the data with some parts left out, repeated, moved or replaced."""
    for _ in range(chance.randint(1, 4)):
        start = chance.randrange(len(data) + 1)
        part = data[start : start + chance.randint(0, 12)]
        rest = data[start + len(part) :]
        other = chance.randrange(len(data) + 1)
        new = chance.choice([b"", part * 2, data[other : other + 10], bytes([chance.randrange(256)])])
        data = data[:start] + new + rest
    return data


@pytest.mark.parametrize("name", sorted(SOURCES))
def test_a_mutated_file_is_read_or_refused(name: str) -> None:
    chance = random.Random(name)
    num_read = 0
    for _ in range(400):
        with contextlib.suppress(DocumentError):
            translated(open_document(name, mutated(SOURCES[name].encode(), chance), OPTIONS))
            num_read += 1
    assert num_read > 5  # little XML stays well-formed


def test_a_mutated_word_document_is_read_or_refused() -> None:
    chance = random.Random(1)
    stream = io.BytesIO()
    docx.Document().save(stream)
    num_read = 0
    for number in range(400):
        whole = io.BytesIO()
        with zipfile.ZipFile(stream) as empty, zipfile.ZipFile(whole, "w") as archive:
            archive.writestr("[Content_Types].xml", empty.read("[Content_Types].xml"))
            xml = XML.encode()
            archive.writestr("word/document.xml", mutated(xml, chance) if number % 2 else xml)
        data = whole.getvalue()
        try:
            written = translated(open_document("a.docx", data if number % 2 else mutated(data, chance)))
        except DocumentError:
            continue
        open_document("a.docx", written)  # what is well-formed stays so
        num_read += 1
    assert num_read > 5


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("a.md", "[" * 30_000),
        ("a.md", "![" * 15_000),
        ("a.md", "*a " * 10_000),
        ("a.md", "a**b" * 8_000),
        ("a.md", ">" * 30_000),
        ("a.md", "`" * 15_000 + " `" * 7_500),
        ("a.md", "<a " * 10_000),
        ("a.html", "<b>a" * 8_000),
        ("a.vtt", "WEBVTT\n\n00:01.000 --> 00:02.000\n" + "<i>a\n" * 8_000),
        ("a.srt", "1\n00:00:01,000 --> 00:00:02,000\n" + "{\\<i " * 8_000),
        ("a.po", 'msgid "' + "\\" * 30_000 + 'a"\nmsgstr ""'),
        ("a.csv", 'text\n"' + '""' * 15_000),
        ("a.xlf", '<xliff version="1.2"><trans-unit><source>a' + "<bpt/>" * 8_000 + "</source></trans-unit></xliff>"),
        ("a.xlf", '<xliff version="1.2"><a b="' + "x" * 1_000_000 + '"/></xliff>'),
    ],
)
@pytest.mark.timeout(10)  # some tenths of a second; what takes quadratic time takes minutes
def test_hostile_files_take_linear_time(name: str, source: str) -> None:
    with contextlib.suppress(DocumentError):
        translated(open_document(name, source.encode(), OPTIONS))
