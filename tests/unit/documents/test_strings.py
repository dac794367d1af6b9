"""Strings of programs in JSON and other formats: what is translated, how it is written, and what is refused."""

import json
from collections.abc import Sequence

import pytest

from service.documents import DocumentOptions, open_document
from tests.unit.documents.pseudo import texts, translated


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ('{"a": {"message": "x", "description": "y", "placeholders": {"p": {"content": "$1"}}}}', ["x"]),  # Chrome
        ('{"a": {"defaultMessage": "x", "description": "y"}, "b": {"defaultMessage": "z"}}', ["x", "z"]),  # FormatJS
        ('{"a": {"string": "x", "context": "y", "developer_comment": "z"}}', ["x"]),  # Transifex
        ('{"a": {"description": "y", "one": "x", "other": "z"}, "b": "w"}', ["x", "z", "w"]),  # go-i18n
        ('{"a": {"message": "x", "title": "y"}}', ["x", "y"]),  # a key of another program
        ('{"a": {"message": "x"}, "b": "y"}', ["x", "y"]),
        ('{"@@locale": "en", "a": "x", "@a": {"description": "y", "placeholders": {"z": {"example": "w"}}}}', ["x"]),
        ('{"$schema": "https://a/b", "$id": {"x": "y"}, "a": "z"}', ["z"]),
        ('["x", {"y": [["z"]]}]', ["x", "z"]),
        ('[["x"], {"message": "y"}]', ["y"]),
        ('"x"', ["x"]),
        ('{"key_one": "{{count}} item", "key_other": "{{count}} items"}', ["{{count}} item", "{{count}} items"]),
    ],
)
def test_what_is_a_text(source: str, expected: list[str]) -> None:
    assert texts(open_document("a.json", source.encode())) == expected


TREE = b'{"a": {"title": "x", "icon": "fa-x", "meta": {"note": "y"}}, "b.title": "z", "list": [{"type": "w"}]}'


@pytest.mark.parametrize(
    ("keys", "skipped", "expected", "left"),
    [
        ((), (), "xyz", "2: icon, type"),
        (("icon", "list"), (), ["x", "fa-x", "y", "z", "w"], ""),
        (
            (),
            ("meta.*", "b.t*"),
            "x",
            "4: icon, note, title, type",
        ),
        ((), ("a",), "z", "4: title, icon, note, type"),
        (
            ("a.title",),
            ("*",),
            "x",
            "4: icon, note, title, type",
        ),
        (("itle", "A"), ("eta",), "xyz", "2: icon, type"),
    ],
)
def test_keys_say_what_is_a_text(
    keys: tuple[str, ...], skipped: tuple[str, ...], expected: Sequence[str], left: str
) -> None:
    document = open_document("a.json", TREE, DocumentOptions(keys=keys, skip_keys=skipped))
    note = left.replace(": ", " values that are not text were left as they are: keys ")
    assert (texts(document), document.notes) == ([*expected], (f"{note}.",) if left else ())


def test_a_note_names_some_keys() -> None:
    document = open_document("a.json", json.dumps({f"k{number:02}": "fa-x" for number in range(20)}).encode())
    assert document.notes[0].endswith(": keys k00, k01, k02, k03, k04, k05, k06, k07, k08, k09, k10, k11, 8 others.")


@pytest.mark.parametrize(
    ("name", "source", "expected"),
    [
        (
            "a.json",
            '{"a": "&Save {file}", "b": "Save &&as", "c": "AT&T"}',
            '{"a": "&SAVE {FILE}", "b": "SAVE &&AS", "c": "AT&T"}',
        ),
        ("a.yml", "a: Save &as", "a: SAVE &AS"),
        ("a.yml", "a: '&Save'", "a: '&SAVE'"),
        ("a.properties", "file=&File\na=E&xit && go\nb=Save _all_", "file=&FILE\na=E&XIT && GO\nb=SAVE _ALL_"),
        ("a.strings", '"a" = "Save %@ &now";', '"a" = "SAVE %@ &NOW";'),
        (
            "a.resx",
            "<root><data><value>Save &amp;As...</value></data></root>",
            "<root><data><value>SAVE &amp;AS...</value></data></root>",
        ),
        (
            "a.resx",
            "<root><data><value>R_esize</value></data></root>",
            "<root><data><value>R_ESIZE</value></data></root>",
        ),
    ],
)
def test_accelerators_are_no_part_of_the_text(name: str, source: str, expected: str) -> None:
    document = open_document(name, source.encode())
    assert "&" not in "".join(texts(document)).replace("AT&T", "").replace(" && ", "")
    assert translated(document).decode() == expected


def test_a_note_counts_what_is_for_translators() -> None:
    source = b'{"a": {"message": "x", "description": "y"}, "b": {"message": "1", "description": "z"}}'
    assert open_document("a.json", source).notes == ("2 descriptions for translators were left as they are.",)
    assert open_document("a.json", b'{"a": {"message": "x"}}').notes == ()


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (r'["\u00a0x \u2019", "ä ’"]', r'["\u00a0X \u2019", "Ä \u2019"]'),  # only what is an escape somewhere
        (r'["\u00e9 \u2019"]', r'["\u00c9 \u2019"]'),  # ASCII
        (r'["\u00E4"]', r'["\u00C4"]'),
        ('["é"]', '["É"]'),
        (r'["a\/b", "<\u003cc"]', r'["A\/B", "\u003c\u003cC"]'),
        (r'["a\tb\u0001"]', r'["A\tB\u0001"]'),
    ],
)
def test_characters_are_written_as_the_source_writes_them(source: str, expected: str) -> None:
    assert translated(open_document("a.json", source.encode())).decode() == expected


def test_what_ascii_lacks_stays_as_it_is_without_escapes() -> None:
    assert open_document("a.json", b'["a"]').written(["ü \U0001f600"]).decode() == '["ü \U0001f600"]'
    assert open_document("a.json", rb'["a", "\u00e9"]').written(["\U0001f600", "b"]) == rb'["\ud83d\ude00", "b"]'


def test_the_locale_is_the_targets() -> None:
    document = open_document("a.arb", b'{"@@locale": "en", "a": "x"}', DocumentOptions(target="pt-BR"))
    assert document.written(["y"]) == b'{"@@locale": "pt_BR", "a": "y"}'


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
    assert (texts(document), document.notes) == ([], ("1 string that is partly CDATA was left as it is.",))
