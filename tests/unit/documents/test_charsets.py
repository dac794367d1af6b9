"""Declared encodings: those that are believed."""

import pytest

from service.documents.encodings import codec_of


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
        ("utf-7", None),
        ("utf-16", None),
        ("idna", None),
        ("rot13", None),
        ("zlib", None),
        ("no-such", None),
        ("../utf-8", None),
        ("", None),
        ("a" * 100, None),
    ],
)
def test_only_codecs_of_the_list_are_believed(name: str, codec: str | None) -> None:
    assert codec_of(name) == codec
    assert codec is None or 'a<&"\\\n'.encode(codec) == b'a<&"\\\n'
