"""Vocabularies in YAML, whose pieces are text even where YAML has another opinion."""

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from export.importers.marian_files.yaml_file import parse_pieces, parse_settings
from tests.patience import patient

PIECES = (
    *("no", "null", "~", "1", "1.5", "0x10", "2026-11-26", "=", "<<", "---", "...", "", " "),
    *("-", "?", ":", "#", "'", '"', "\\", "{", "[a]", "&x", "*x", "|", "%", "@", "a: b"),
    *("▁", "▁no", "é", "\u2028", "\x07", "\U0001f600"),
)


def test_pieces_are_text() -> None:
    vocabulary = {piece: index for index, piece in enumerate(PIECES)}
    for unicode in (True, False):
        text = yaml.safe_dump(vocabulary, allow_unicode=unicode, sort_keys=False, width=1000)
        assert parse_pieces("x.yml", text.encode()) == vocabulary


def test_pieces_without_quotes_as_marian_writes_them() -> None:
    assert parse_pieces("x.yml", b"</s>: 0\nno: 1\n1: 2\nnull: 3\n") == {"</s>": 0, "no": 1, "1": 2, "null": 3}


def test_settings_may_end_with_nul() -> None:
    assert parse_settings(b"a: 1\0\0\0") == {"a": 1}
    with pytest.raises(ValueError, match="more than"):
        parse_settings(b" " * (2**17 + 1))


@given(st.binary(max_size=60), st.sampled_from(["x.yml", "x.json", "x.vocab"]))
def test_anything_else_is_a_value_error(data: bytes, name: str) -> None:
    for text in (data, b"a: 0\n" + data):
        try:
            found = parse_pieces(name, text)
        except ValueError:
            continue
        assert all(isinstance(piece, str) and index >= 0 for piece, index in found.items())


_LAUGHS = "a0: &a0 [x, x]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]\n" for n in range(1, 60)) + "models: *a59\n"
_MERGES = "a0: &a0 {x: 1}\n" + "".join(f"a{n}: &a{n} {{<<: [*a{n - 1}, *a{n - 1}]}}\n" for n in range(1, 60))


@pytest.mark.timeout(patient(60))
@pytest.mark.parametrize(
    ("text", "message"),
    [
        (_LAUGHS, "line 2: an alias"),
        (_MERGES, "line 2: an alias"),
        ("a: &a [*a]", "line 1: an alias"),
        ("&a a: 1\n*a : 2", "line 2: an alias"),
        ("a: !!binary aaaa", "line 1: a tag"),
        ("a: !!python/object/apply:os.abort []", "line 1: a tag"),
        ("a: !!int 1" + ":1" * 60_000, "line 1: a tag"),
        ("%TAG ! tag:yaml.org,2002:\n---\na: !int 1", "line 3: a tag"),
        ("[" * 100_000, "more than 20 lists or maps in each other"),
        ("".join(" " * n + "a:\n" for n in range(300)), "more than 20 lists or maps in each other"),
        ("? [a, b]\n: 1", "a list or map in place of a name"),
        ("a: 1\nb: 2\na: 3", "it has 'a' twice"),
        ("x: {a: 1, a: 3}", "it has 'a' twice"),
        ('a: "\\U00110000"', "it is not supported YAML"),
        ("a: 1\n---\nb: 2", "expected a single document"),
    ],
)
def test_settings_that_are_more_than_a_tree_are_refused(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        parse_settings(text.encode())
    assert len(str(caught.value)) < 500


@pytest.mark.timeout(patient(60))
def test_numbers_are_small() -> None:
    """What is no usual number is text: that is refused where a number is expected, and takes no time."""
    for text in ("1" + ":1" * 60_000, "9" * 100_000, "0x" + "f" * 100_000, "0b" + "1" * 100_000, "2001-99-99", ".nan"):
        assert parse_settings(b"a: " + text.encode()) == {"a": text}
    given = b"a: -1\nb: .5\nc: 1e-9\nd: 'no'\ne: no\nf:\ng: ! x\nh: <<\n1: 2\ni: &i 3\n"
    expected = {"a": -1, "b": 0.5, "c": 1e-9, "d": "no", "e": False, "f": None, "g": "x", "h": "<<", "1": 2, "i": 3}
    assert parse_settings(given) == expected


@pytest.mark.timeout(patient(60))
@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("x.yml", _LAUGHS, "line 2: an alias"),
        ("x.yml", "a: {b: [c, d]}", r"the id of 'a' is \{'b': \['c', 'd'\]\}"),
        ("x.yml", "a: [" + "x," * 4_000 + "]", r"the id of 'a' is \['x', .* \.\.\.\]"),
        ("x.yml", "{" + "a: [\n\n], " * 500_000, "other lines than one for each piece"),
        ("x.yml", '"\\ud800": 1', "half of a surrogate pair"),
        ("x.json", '{"\\ud800": 1}', "half of a surrogate pair"),
    ],
)
def test_vocabularies_of_anything_but_pieces_and_ids_are_refused(name: str, text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        parse_pieces(name, text.encode())
    assert len(str(caught.value)) < 500
