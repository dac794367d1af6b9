"""Spans of code points."""

from hypothesis import given, settings
from hypothesis import strategies as st

from service.text.token_spans import by_prefixes, consecutive, disjoint, spread, stripped, without_spaces
from service.text.tokenizers import clean_up_spaces


def test_consecutive() -> None:
    assert consecutive([2, 0, 3]) == [(0, 2), (2, 2), (2, 5)]
    assert consecutive([]) == []


def test_spread_puts_empty_spans_where_there_is_none() -> None:
    assert spread([(0, 2), (2, 5)], [False, True, False, True, False]) == [(0, 0), (0, 2), (2, 2), (2, 5), (5, 5)]


def test_disjoint_gives_the_last_one_what_several_claim() -> None:
    assert disjoint([(0, 1), (0, 1), (0, 1), (1, 4)]) == [(0, 0), (0, 0), (0, 1), (1, 4)]
    assert disjoint([(0, 3), (2, 5), (6, 7)]) == [(0, 2), (2, 5), (6, 7)]
    assert disjoint([]) == []


def test_stripped() -> None:
    assert stripped([(0, 1), (1, 4), (4, 6)], " ab   ") == [(0, 0), (0, 2), (2, 2)]
    assert stripped([(0, 3)], "   ") == [(0, 0)]


def test_by_prefixes_takes_what_each_token_adds() -> None:
    assert by_prefixes(lambda ids: " ".join("abc"[i] for i in ids), [0, 2, 1]) == [(0, 1), (1, 3), (3, 5)]
    # Two bytes of one character: the first alone is a different character.
    half = {(0,): "\ufffd", (0, 1): "é", (0, 1, 2): "é!"}
    assert by_prefixes(lambda ids: half.get(tuple(ids), ""), [0, 1, 2]) == [(0, 0), (0, 1), (1, 2)]


@given(st.text("ab.,'!? nsmtvere", max_size=40))
@settings(derandomize=True, deadline=None, max_examples=300)
def test_without_spaces_follows_the_clean_up(text: str) -> None:
    cleaned = clean_up_spaces(text)
    characters = [(place, place + 1) for place in range(len(text))]
    places = without_spaces(characters, text, cleaned)
    for character, (start, end) in zip(text, places, strict=True):
        assert cleaned[start:end] == (character if end > start else "")
        assert end > start or character == " "
    assert "".join(cleaned[start:end] for start, end in places) == cleaned
