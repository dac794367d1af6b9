"""Strings of programs in YAML: Rails' conventions, styles of scalars, and what is refused."""

from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from service.documents import DocumentOptions, MimeType, open_document
from tests.unit.documents.pseudo import translated, unchanged

TO_GERMAN = DocumentOptions(target="de")
WORDS = st.text(st.sampled_from("aé :#-'\"\\\n{}[],&*!|>%@`?ß1😀\u00a0\t"), max_size=12)
VALUES = st.recursive(
    WORDS | st.integers() | st.booleans() | st.none() | st.dates(),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text("abc d", min_size=1, max_size=5), inner, max_size=4)
    ),
    max_leaves=12,
)


STYLES = st.fixed_dictionaries(
    {
        "default_style": st.sampled_from([None, "'", '"', "|", ">"]),
        "default_flow_style": st.sampled_from([None, True, False]),
        "indent": st.integers(2, 6),
        "width": st.sampled_from([20, 80]),
        "allow_unicode": st.booleans(),
    }
)


@given(VALUES, STYLES)
@settings(max_examples=40)
def test_what_pyyaml_writes_stays(value: object, style: dict[str, Any]) -> None:
    source = yaml.safe_dump(value, sort_keys=False, **style)
    document = open_document("a.yml", source.encode())
    assert unchanged(document) == source.encode()
    written = document.written([text.text + " - more: x # y" for text in document.texts])
    assert shape(yaml.safe_load(written)) == shape(value)


def shape(value: object) -> object:
    """Return a value without what is added to its texts, and without the white space around these."""
    if isinstance(value, dict):
        return {key: shape(each) for key, each in value.items()}
    if isinstance(value, list):
        return [shape(each) for each in value]
    return " ".join(value.replace(" - more: x # y", "").split()) if isinstance(value, str) else value


@pytest.mark.parametrize(
    ("source", "target", "expected"),
    [
        ("en:\n  a: b\n", "de", "de:\n  a: B\n"),
        ('"en":\n  a: b\n', "pt-BR", '"pt-BR":\n  a: B\n'),
        ("en-GB:\n  a: b\n", "de", "de:\n  a: B\n"),
        ("ui:\n  a: b\n", "de", "ui:\n  a: B\n"),
        ("zh_TW:\n  a: b\n", "de", "de:\n  a: B\n"),
        ("en:\n  a: b\nfr:\n  a: b\n", "de", "en:\n  a: B\nfr:\n  a: B\n"),
        ("en: b\n", "de", "en: B\n"),
        ("en:\n  a: 1\n", "de", "en:\n  a: 1\n"),
    ],
)
def test_a_root_that_names_the_language_names_the_target(source: str, target: str, expected: str) -> None:
    document = open_document("a.yml", source.encode(), DocumentOptions(target=target))
    assert translated(document).decode() == expected
    if expected.startswith(("de:", '"pt')):
        assert document.notes[0].startswith("The root's key ")


def test_rails_conventions() -> None:
    source = """en:
  date: {formats: {long: "%B %d, %Y"}, day_names: [Sunday, Monday], order: [ :year, :month ]}
  number: {format: {delimiter: ","}, human: {format: "%n %u"}, currency: {unit: "US dollar"}}
  intro_html: <b>x</b>
  body:
    html: <i>y</i>
"""
    document = open_document("a.yml", source.encode(), TO_GERMAN)
    found = {text.text: text.mime_type for text in document.texts}
    assert list(found) == ["Sunday", "Monday", "US dollar", "<b>x</b>", "<i>y</i>"]
    assert [text for text, kind in found.items() if kind is MimeType.HTML] == ["<b>x</b>", "<i>y</i>"]


@pytest.mark.parametrize(
    ("source", "translation", "expected"),
    [
        ("k: a", "yes", 'k: "yes"'),
        ("k: a", "- x", 'k: "- x"'),
        ("k: a", "x #y", 'k: "x #y"'),
        ("k: a", "x#y", "k: x#y"),
        ("k: a", "l'x, [y]", "k: l'x, [y]"),
        ("k: [a]", "x, y", 'k: ["x, y"]'),
        ("k: a", 'x\n"y"', r'k: "x\n\"y\""'),
        ("k: 'a'", "x\ny", r'k: "x\ny"'),
        ('k: "a"', 'a "b" \\', r'k: "a \"b\" \\"'),
        ("k: |\n  a\n", "x\n\ny: z", "k: |\n  x\n\n  y: z\n"),
        ("k: >\n  a\n", "x\ny", "k: >\n  x\n\n  y\n"),
        ("k: |\r\n  a\r\n", "x\ny", "k: |\r\n  x\r\n  y\r\n"),
    ],
)
def test_a_translation_is_written_so_that_it_is_read_as_it_is(source: str, translation: str, expected: str) -> None:
    assert open_document("a.yml", source.encode()).written([translation]).decode() == expected
    (found,) = yaml.safe_load(expected).values()
    assert (found[0] if isinstance(found, list) else found).strip() == translation


@pytest.mark.parametrize(
    ("source", "texts"),
    [
        ("? a\n: b", ["b"]),
        ("? [a b, c d]\n: e f", ["e f"]),
        ("--- a", ["a"]),
        ("a: !!str b\nc: &x !x d\ne: ! 'f'\ng: *x", ["b", "f"]),
        ("a: [!b, c]", ["c"]),
        ("a: [?b, c]", ["c"]),  # a key, for libyaml
        ("{a: :b, :c: d e, f: [:g, h]}", ["d e", "h"]),  # symbols of Ruby
        ('a: "b \\\n  c"', ["b c"]),
        ("a: &x # why\n  b", ["b"]),
        ("a: b\nc: |", ["b"]),
    ],
)
def test_what_is_a_text(source: str, texts: list[str]) -> None:
    document = open_document("a.yml", source.encode())
    assert [text.text for text in document.texts] == texts
    assert unchanged(document) == source.encode()
