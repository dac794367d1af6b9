"""Strings of programs in JSON: what is translated by whose conventions, and how it is written."""

import json

import pytest

from service.documents import DocumentError, DocumentOptions, open_document
from tests.unit.documents.pseudo import texts, translated


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ('{"a": {"message": "x", "description": "y", "placeholders": {"p": {"content": "$1"}}}}', ["x"]),  # Chrome
        ('{"a": {"defaultMessage": "x", "description": "y"}, "b": {"defaultMessage": "z"}}', ["x", "z"]),  # FormatJS
        ('{"a": {"string": "x", "context": "y", "developer_comment": "z"}}', ["x"]),  # Transifex
        ('{"a": {"description": "y", "one": "x", "other": "z"}}', ["x", "z"]),  # go-i18n
        ('{"a": {"message": "x", "title": "y"}}', ["x", "y"]),  # a key of another program
        ('{"a": {"message": "x"}, "b": "y"}', ["x", "y"]),
        ('{"@@locale": "en", "a": "x", "@a": {"description": "y", "placeholders": {"z": {"example": "w"}}}}', ["x"]),
        ('{"$schema": "https://a/b", "$id": {"x": "y"}, "a": "z"}', ["z"]),
        ('["x", {"y": [["z"]]}]', ["x", "z"]),
        ('"x"', ["x"]),
        ('{"key_one": "{{count}} item", "key_other": "{{count}} items"}', ["{{count}} item", "{{count}} items"]),
    ],
)
def test_what_is_a_text(source: str, expected: list[str]) -> None:
    assert texts(open_document("a.json", source.encode())) == expected


def test_a_note_counts_what_is_for_translators() -> None:
    source = b'{"a": {"message": "x", "description": "y"}, "b": {"message": "1", "description": "z"}}'
    assert open_document("a.json", source).notes == ("2 descriptions of texts for translators were left as they are.",)
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
    ("source", "problem"),
    [
        ("", "a value is expected"),
        ("{", "a key or }} is expected"),
        ('{"a" "b"}', "a colon is expected"),
        ('{"a": }', "a value is expected"),
        ('["a",]', "a value is expected"),
        ('["a" "b"]', "a comma or the end is expected"),
        ('{"a": "b"]', "a comma or the end is expected"),
        ("[] []", "the end of the file is expected"),
        ('["a\nb"]', "a value or ] is expected"),
        ("[01]", "a value or ] is expected"),
        ('// c\n"a"', "a value is expected"),
        ("[" * 201, "it is nested more than 200 deep"),
    ],
)
def test_what_is_no_json_is_refused(source: str, problem: str) -> None:
    with pytest.raises(DocumentError, match=r"^line \d: ") as caught:
        open_document("a.json", source.encode())
    assert problem.replace("}}", "}") in str(caught.value)
    if problem != "it is nested more than 200 deep":
        with pytest.raises(json.JSONDecodeError):
            json.loads(source)
