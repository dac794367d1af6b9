"""Encodings of text files, and declared ones that are believed."""

import pytest

from service.documents import DocumentError, DocumentOptions, open_document
from service.documents.encodings import codec_of
from tests.unit.documents.pseudo import texts, translated

SRT = "1\r\n00:00:01,000 --> 00:00:02,000\r\nÉté – Straß\r\n"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_unicode_is_recognized_and_a_byte_order_mark_believed(encoding: str) -> None:
    has_mark = encoding in ("utf-8-sig", "utf-16", "utf-32")
    for options in (None, DocumentOptions(encoding="windows-1252")) if has_mark else (None,):
        document = open_document("t.srt", SRT.encode(encoding), options)
        assert translated(document) == SRT.upper().encode(encoding)


@pytest.mark.parametrize(("encoding", "name"), [("windows-1252", "t.srt"), ("shift-jis", "t.txt"), ("koi8-r", "t.csv")])
def test_a_named_encoding_is_used_both_ways(encoding: str, name: str) -> None:
    said = {"windows-1252": "Ça va – bien", "shift-jis": "日本語 ok", "koi8-r": "привет, мир"}[encoding]
    source = f"1\n0:01 --> 0:02\n{said}\n" if name == "t.srt" else f"text\n{said}\n"
    options = DocumentOptions(columns=("text",) * (name == "t.csv"), encoding=encoding)
    document = open_document(name, source.encode(encoding), options)
    assert said in texts(document)
    assert said.upper() in translated(document).decode(encoding)


def test_what_an_encoding_lacks_is_told() -> None:
    document = open_document("t.txt", b"\xe9", DocumentOptions(encoding="latin-1"))
    with pytest.raises(DocumentError, match=r"^the translation has 'ł', which latin-1 lacks; convert"):
        document.written(["ł"])
    with pytest.raises(DocumentError, match=r"^it can't be read as ascii: "):
        open_document("t.txt", b"\xe9", DocumentOptions(encoding="ascii"))
    with pytest.raises(DocumentError, match=r"^it can't be read as rot13: "):
        open_document("t.txt", b"a", DocumentOptions(encoding="rot13"))
    with pytest.raises(DocumentError, match=r"0xe9, is not UTF-8; convert the file, .* with --encoding"):
        open_document("t.txt", b"\xe9")


@pytest.mark.parametrize(
    ("name", "codec"),
    [
        ("UTF-8", "utf-8"),
        ("latin1", "iso8859-1"),
        ("ISO_8859-15", "iso8859-15"),
        ("Windows-1252", "cp1252"),
        ("KOI8-R", "koi8-r"),
        ("Shift_JIS", "shift_jis"),
        ("gb2312", "gb2312"),
        ("Big5-HKSCS", "big5hkscs"),
        *((name, None) for name in ("utf-7", "utf-16", "idna", "rot13", "zlib", "no-such", "../utf-8", "", "a" * 100)),
    ],
)
def test_only_codecs_of_the_list_are_believed(name: str, codec: str | None) -> None:
    assert codec_of(name) == codec
    assert codec is None or 'a<&"\\\n'.encode(codec) == b'a<&"\\\n'
