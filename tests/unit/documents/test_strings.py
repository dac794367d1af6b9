"""Java's properties, Apple's strings, Android's and .NET's resources: encodings, and what is refused."""

import pytest

from service.documents import DocumentError, open_document
from tests.unit.documents.pseudo import texts, translated


@pytest.mark.parametrize(
    ("data", "translation", "expected"),
    [
        (b"a=b", "ü €", rb"a=\u00fc \u20ac"),  # ASCII says the same in both encodings
        (b"a=\\u00E4", "ü", b"a=\\u00FC"),
        ("# é\na=b".encode(), "ü €", "# é\na=ü €".encode()),
        (b"# \xe9\na=b", "ü €", b"# \xe9\na=\xfc \\u20ac"),
        (b"a=b", "\U0001f600", rb"a=\ud83d\ude00"),
        (b"a=b\nc=1\\:2", "x: y", b"a=x\\: y\nc=1\\:2"),
        (b"a=b", " x\ty\n", b"a=x\\ty"),
        (b"a=It''s {0}", "C'est {0}", b"a=C''est {0}"),
        (b"a=x '{' {0}", "l'x '{' {0}", b"a=l'x '{' {0}"),
    ],
)
def test_properties_are_written_in_their_encoding(data: bytes, translation: str, expected: bytes) -> None:
    assert open_document("a.properties", data).written([translation]) == expected


@pytest.mark.parametrize("name", ["a.xml", "a.resx"])
def test_resources_in_utf_16(name: str) -> None:
    source = '<?xml version="1.0" encoding="utf-16"?>\n<resources><string>é</string></resources>'
    if name == "a.resx":
        source = source.replace("resources", "root").replace("string>", "value>")
        source = source.replace("<value>", "<data><value>").replace("</value>", "</value></data>")
    assert translated(open_document(name, source.encode("utf-16"))).decode("utf-16") == source.replace("é", "É")


def test_strings_that_are_cdata_in_part_are_told() -> None:
    document = open_document("a.xml", b"<resources><string>a <![CDATA[b]]></string></resources>")
    assert (texts(document), document.notes) == ([], ("1 strings that are CDATA in part were left as they are.",))


@pytest.mark.parametrize(
    ("name", "source", "problem"),
    [
        ("a.xml", "<a/>", "the root is <a>; Android's strings are in <resources>."),
        ("a.resx", "<a/>", "the root is <a>; .NET's resources are in <root>."),
        ("a.xml", "<resources>", "it is not well-formed XML: no element found."),
        ("a.properties", r"a=\u12", r"an escape \u has no four hexadecimal digits."),
        ("a.strings", '"a" = {};', 'here is no string; an entry is "key" = "value";.'),
        ("a.strings", '"a" = "b"', 'here is no ;; an entry is "key" = "value";.'),
        ("a.strings", "\x00", 'here is no =; an entry is "key" = "value";.'),
    ],
)
def test_what_is_refused(name: str, source: str, problem: str) -> None:
    with pytest.raises(DocumentError, match=r"^line 1") as caught:
        open_document(name, source.encode())
    assert str(caught.value).endswith(problem)
