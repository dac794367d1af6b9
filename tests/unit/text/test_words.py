"""Words: what counts as one, and that nothing visible is lost; spans of tokens."""

import re
import sys
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.text.spans import by_prefixes
from service.text.words import MARKS, RARE_MARKS, is_mark, is_word, is_word_boundary, unbroken, words
from tests.nasty_texts import nasty_text


def found(text: str, tokens: list[tuple[int, int]] | None = None) -> list[str]:
    return [text[start:end] for start, end in words(text, tokens or ())]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Save the file.", ["Save", "the", "file", "."]),
        ('He said: "It isn\'t 3.5 %!"', ["He", "said", ":", '"', "It", "isn't", "3.5", "%", "!", '"']),
        ("(files...) -> e-mail", ["(", "files", "...", ")", "-", ">", "e-mail"]),
        ("\ue000Hello\ue001, \ue002\ue003", ["\ue000", "Hello", "\ue001", ",", "\ue002", "\ue003"]),
        ("$40\u00a0\u2014 caf\u0065\u0301", ["$", "40", "\u2014", "cafe\u0301"]),
        ("  \n\t ", []),
        ("", []),
    ],
)
def test_words(text: str, expected: list[str]) -> None:
    assert found(text) == expected


def test_scripts_without_spaces_are_cut_at_tokens() -> None:
    text = "\u65e5\u672c\u8a9e\u306e\u6587ABC\u3002 Wort"
    cut = ["\u65e5\u672c\u8a9e", "\u306e", "\u6587ABC", "\u3002", "Wort"]
    assert found(text, [(0, 3), (3, 4), (4, 8), (8, 9), (9, 11), (11, 14)]) == cut


def test_what_is_a_word() -> None:
    assert all(map(is_word, ("a", "3.5", "\ue000", "-x")))
    assert not any(map(is_word, (".", "...", "$", "\u2014")))


@given(text=nasty_text(), data=st.data())
def test_words_are_in_order_and_hold_all_that_is_visible(text: str, data: st.DataObject) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=8)))
    tokens = list(zip([0, *cuts], [*cuts, len(text)], strict=True))
    spans = words(text, tokens)
    last = 0
    for start, end in spans:
        assert last <= start < end
        assert not any(map(str.isspace, text[start:end]))
        assert text[last:start].strip() == ""
        last = end
    assert text[last:].strip() == ""


def _between_boundaries(text: str) -> list[str]:
    places = [place for place in range(len(text) + 1) if is_word_boundary(text, place)]
    return [text[start:end] for start, end in pairwise(places)]


@given(
    st.text(
        st.sampled_from("aA1_-! \n\u4f60\u30fb\u0e01\u0e31\xe9\u0301\u0939\u093f\u0130\U0001f355\U0001d165\U00020000"),
        min_size=1,
    )
)
def test_parts_lie_between_word_boundaries(text: str) -> None:
    assert unbroken(text) == _between_boundaries(text)


@pytest.mark.parametrize("step", [5, pytest.param(1, marks=pytest.mark.full)])
def test_no_character_is_without_its_word_boundaries(step: int) -> None:
    others = range(0x20000, sys.maxunicode, 97)  # ideographs, private use, nothing
    codes = (*range(0, 0x20000, step), *others, *range(0xE0000, 0xE0200))
    text = "".join(f"a{chr(code)}a{chr(code)}-" for code in codes)
    assert unbroken(text) == _between_boundaries(text)


def test_by_prefixes_takes_what_each_token_adds() -> None:
    assert by_prefixes(lambda ids: " ".join("abc"[i] for i in ids), [0, 2, 1]) == [(0, 1), (1, 3), (3, 5)]
    # Two bytes of one character: the first alone is a different character.
    half = {(0,): "\ufffd", (0, 1): "é", (0, 1, 2): "é!"}
    assert by_prefixes(lambda ids: half.get(tuple(ids), ""), [0, 1, 2]) == [(0, 0), (0, 1), (1, 2)]


def test_the_classes_have_all_marks_of_this_version_of_python() -> None:
    everything = "".join(map(chr, range(sys.maxunicode + 1)))
    assert re.findall(f"[{MARKS}{RARE_MARKS}]", everything) == list(filter(is_mark, everything))
