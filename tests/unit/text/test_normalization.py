"""Texts without invisible characters, and in the form in which terms are compared."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.text.normalization import has_invisible, normalized, visible
from service.text.spans import Span


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("soft\u00adware", "software"),
        ("\ufeffa\u200bb\u2060c\u200e\u202ad\u2068e\u2069\u061c\u034f", "abcde"),
        ("a\x00b\x07\x7f\x9f\x1b", "ab"),
        ("\x1b[1ma\tb\r\nc\x85d", "\x1b[1ma\tb\r\nc\x85d"),
        ("soft\u200cware\u200d", "software"),
        ("می\u200cروم क्\u200dष 👩\u200d👩 ❤\ufe0f\u200d🔥", "می\u200cروم क्\u200dष 👩\u200d👩 ❤\ufe0f\u200d🔥"),
        ("ภาษา\u200bไทย", "ภาษา\u200bไทย"),
        ("", ""),
    ],
)
def test_what_nobody_sees_is_left_out(text: str, expected: str) -> None:
    assert visible(text).text == expected
    assert has_invisible(text) or text == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The coun-\ntry, the informa\u2010\r\n  tion, pa\u00ad\rper", "The country, the information, paper"),
        ("A far-off town: far-\noff, Far-\noff", "A far-off town: far-off, Far-off"),
        ("It is well-\nknown, self-\nmade, for her well-\nness", "It is well-known, self-made, for her wellness"),
        ("Anglo-\nAmerican", "Anglo-American"),
        ("pre-\nand post-war, Vor-\nund Nachteile, yes -\nno", None),
        ("Take item-\n1. one\n- two -\n\nthree", None),
    ],
)
def test_words_that_lines_cut_are_joined(text: str, expected: str | None) -> None:
    assert visible(text, joins_lines=True).text == (expected or text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Cafe\u0301", "Café"),
        ("A\u030angstro\u0308m", "Ångström"),
        ("train\u00a0station", "train station"),
        ("train \t station\u3000x", "train station x"),
        ("one\n two", "one\n two"),
        ("king’s kingʼs", "king's king's"),
        ("\u1112\u1161\u11ab", "한"),
        ("plain", "plain"),
    ],
)
def test_forms_of_the_same_are_equal(text: str, expected: str) -> None:
    assert normalized(text)[0] == expected


_TEXTS = st.lists(
    st.sampled_from(["a", "b ", "  ", "e\u0301", "\u00ad", "\u200d", "می", "\u200c", "\x00", "\n", "’", "\u00a0"]),
    max_size=20,
).map("".join)


@given(_TEXTS, st.data())
def test_positions_lead_back_to_the_text(text: str, data: st.DataObject) -> None:
    seen, _, offsets = visible(text)
    for place, character in enumerate(seen):
        start, end = (place, place + 1) if offsets is None else offsets.span(place, place + 1)
        assert text[start:end] == character
    form, places = normalized(text)
    start = data.draw(st.integers(0, len(form)))
    end = data.draw(st.integers(start, len(form)))
    written = Span(start, end) if places is None else places.span(start, end)
    assert normalized(text[slice(*written)])[0] == form[start:end]


def test_what_is_kept_stays() -> None:
    text = "a\u00adb\u00adc \u00add {coun-\ntry} coun-\ntry x"
    seen, kept, _ = visible(text, [Span(2, 5), Span(9, 20), Span(31, 32)], joins_lines=True)
    assert seen == "ab\u00adc d {coun-\ntry} country x"
    assert [seen[slice(*span)] for span in kept] == ["b\u00adc", "{coun-\ntry}", "x"]


@pytest.mark.parametrize(
    "unit", ["a\u0301\u0316", "\u0301", "  ", " \n", "\u00ad", "\u200d👩", "\u1100", "’", "\u00a0 ", "a-\n", "a-\nb"]
)
def test_any_text_takes_linear_time(unit: str) -> None:
    text = unit * (20_000 // len(unit))
    start = time.process_time()
    visible(text, joins_lines=True)
    normalized(text)
    assert time.process_time() - start < 0.75
