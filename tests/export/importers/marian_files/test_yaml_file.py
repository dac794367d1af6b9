"""Vocabularies in YAML, whose pieces are text even where YAML has another opinion."""

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from export.importers.marian_files.yaml_file import parse_pieces, parse_settings

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
        parse_settings(b" " * (2**20 + 1))


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=60), st.sampled_from(["x.yml", "x.json", "x.vocab"]))
def test_anything_else_is_a_value_error(data: bytes, name: str) -> None:
    for text in (data, b"a: 0\n" + data):
        try:
            found = parse_pieces(name, text)
        except ValueError:
            continue
        assert all(isinstance(piece, str) and index >= 0 for piece, index in found.items())
