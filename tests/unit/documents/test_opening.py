"""Which formats there are, and what every one of them does."""

import json
import re

import pytest

from service.documents import ENDINGS, DocumentError, DocumentOptions, UnknownFormat, open_document
from service.documents.opening import MAX_BYTES
from tests.programs import output_of
from tests.unit.documents.pseudo import texts, translated, unchanged

ARCHIVES = {".docm", ".docx", ".dotm", ".dotx", ".epub", ".odp", ".ods", ".odt", ".pptx"} | {
    *(".xlsm", ".xlsx", ".xltm", ".xltx")
}
MORE = ", and more words" * 20
MEASURED = """
import json, os, resource, sys
from service.documents import DocumentOptions, open_document
from tests.unit.documents.formats.office import word

size = int(sys.argv[1])
for name, before, source, after in json.loads(sys.argv[2]):
    if not os.fork():
        text = before + source * (size // len(source)) + after
        data = word(text) if name == "a.docx" else text.encode()
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        document = open_document(name, data, DocumentOptions(columns=("text",)))
        written = document.written([text.text + "!" for text in document.texts])
        assert len(document.texts) > size // 500 and len(written) > size
        print(name, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before, flush=True)
        os._exit(0)
    assert os.wait()[1] == 0, name
"""
LARGE = (
    ("a.csv", "id,text\n", '1,"A file, and another one"\n', ""),
    ("a.docx", "", f"<w:p><w:r><w:t>A file</w:t></w:r><w:r><w:rPr><w:b/></w:rPr><w:t>now{MORE}</w:t></w:r></w:p>", ""),
    ("a.html", "", f"<p>A <b>file</b> and another one{MORE}</p>\n", ""),
    ("a.md", "", f"A *file* and `another` one{MORE}\n\n", ""),
    ("a.po", "", f'msgid "A file and another one{MORE}"\nmsgstr ""\n\n', ""),
    ("a.txt", "", "A file and another one, and more of them\n", ""),
    ("a.vtt", "WEBVTT\n\n", f"00:01.000 --> 00:02.000\nA <i>file</i> and\nanother one{MORE}\n\n", ""),
    ("a.json", "[", '"A file and another one, and more of them",\n', "1]"),
    ("a.yml", "", "- A file and another one, and more of them\n", ""),
    (
        *("a.xliff", '<xliff version="1.2"><file><body>'),
        *(f"<trans-unit><source>A <g>file</g> and one{MORE}</source></trans-unit>", "</body></file></xliff>"),
    ),
)


@pytest.mark.parametrize("name", ["a.pdf", "a.doc", "a", "a.txt.gz", ".md", "a.txt\0.exe"])
def test_an_unknown_ending_is_refused_with_the_known_ones(name: str) -> None:
    with pytest.raises(UnknownFormat, match=r"supported: \.arb, \.ass, .*\.yaml, \.yml\."):
        open_document(name, b"Hello")


@pytest.mark.parametrize(
    ("name", "advice"), [("a.RTF", "convert it to .docx"), ("a.jsp", "try it as .html, on"), ("a.exe", "")]
)
def test_an_unknown_ending_is_told_the_format_that_is_near(name: str, advice: str) -> None:
    with pytest.raises(
        UnknownFormat, match=re.escape(f"is not supported ({advice}" if advice else "is not supported; supported")
    ):
        open_document(name, b"Hello")


def test_the_ending_is_read_in_any_case() -> None:
    assert texts(open_document("README.TXT", b"Hello")) == ["Hello"]


def test_a_file_that_is_too_large_is_refused() -> None:
    with pytest.raises(DocumentError, match="it has 33554433 bytes, and at most 33554432 are read"):
        open_document("a.txt", bytes(MAX_BYTES + 1))


@pytest.mark.parametrize("ending", sorted(set(ENDINGS) - ARCHIVES - {".properties"}))
def test_bytes_that_are_not_utf_8_are_named_with_their_line(ending: str) -> None:
    with pytest.raises(DocumentError, match=r"^line 2: byte 4 of the file, 0xff, is not UTF-8; convert the file"):
        open_document(f"a{ending}", b"id\n\xff", DocumentOptions(columns=("id",)))


def test_lines_are_texts_without_the_white_space_around_them() -> None:
    source = "\ufeff  A file\r\n\r\n12 %\r\n\tend".encode()
    document = open_document("a.txt", source)
    assert texts(document) == ["A file", "end"]
    assert translated(document).decode() == "\ufeff  A FILE\r\n\r\n12 %\r\n\tEND"
    assert document.written(["a\nb", "c"]).decode() == "\ufeff  a b\r\n\r\n12 %\r\n\tc"


def test_as_many_translations_as_texts_are_needed() -> None:
    with pytest.raises(ValueError, match="0 translations for 1 texts"):
        open_document("a.txt", b"Hello").written([])


def test_an_empty_file_stays_empty() -> None:
    for ending in (".txt", ".md", ".html", ".po", ".srt"):
        document = open_document(f"a{ending}", b"")
        assert (list(document.texts), unchanged(document)) == ([], b"")


@pytest.mark.parametrize("size", [250_000, pytest.param(5_000_000, marks=pytest.mark.full)])
def test_megabytes_take_bounded_memory(size: int) -> None:
    taken = dict(map(str.split, output_of(MEASURED, size, json.dumps(LARGE)).splitlines()))
    assert taken.keys() == {name for name, *_ in LARGE}
    assert {name for name, kib in taken.items() if int(kib) * 1000 >= 100 * size} == set()  # a hundred times the file
