"""Raised and lowered signs, notes and formulas stay with their words, whatever a translation does."""

import pytest

from tests.unit.text.markup.backwards import texts, turned


@pytest.mark.parametrize(
    ("html", "text", "expected"),
    [
        # formulas, units and ordinals are copied as a whole
        ("H<sub>2</sub>O is wet.", "H2O is wet.", "wet is H<sub>2</sub>O."),
        ("see C<sub>6</sub>H<sub>12</sub> now", "see C6H12 now", "now C<sub>6</sub>H<sub>12</sub> see"),
        ("is 10 m<sup>2</sup> wide", "is 10 m2 wide", "wide m<sup>2</sup> 10 is"),
        ("is 5 km<sup>2</sup> wide", "is 5 km2 wide", "wide km<sup>2</sup> 5 is"),
        ("the 1<sup>st</sup> day", "the 1st day", "day 1<sup>st</sup> the"),
        ("of 10<sup>-6</sup> or so", "of 10-6 or so", "so or 10<sup>-6</sup> of"),
        ("see <sup>14</sup>C here", "see 14C here", "here <sup>14</sup>C see"),
        ("so <i>x</i><sub>1</sub> is", "so x1 is", "is <i>x</i><sub>1</sub> so"),
        ("so Na<sup>+</sup> is", "so Na+ is", "is Na<sup>+</sup> so"),
        ("so &mu;m<sup>2</sup> is", "so \u03bcm2 is", "is &mu;m<sup>2</sup> so"),
        ("H<span>2</span>O is wet", "H2O is wet", "wet is H<span>2</span>O"),  # as of Word, without names of elements
        # of notes the model sees nothing
        ("a word<sup><a href=n>1</a></sup> is", "a word is", "is word<sup><a href=n>1</a></sup> a"),
        ("a word<a href=n><sup>1</sup></a> is", "a word is", "is word<a href=n><sup>1</sup></a> a"),
        ("a word<sup>1,2</sup> is", "a word is", "is word<sup>1,2</sup> a"),
        ("a word<span>[3]</span> is", "a word is", "is word<span>[3]</span> a"),
        ("a <b>word</b><sup>*</sup> is", "a word is", "is <b>word</b><sup>*</sup> a"),
        ("Open it.<sup>[1]</sup>", "Open it.", "it Open.<sup>[1]</sup>"),
        ("so House<sup>&reg;</sup> is", "so House is", "is House<sup>&reg;</sup> so"),
        ("so House<sup>TM</sup> is", "so House is", "is House<sup>TM</sup> so"),
        ("<sup>1</sup> See this", "See this", "<sup>1</sup> this See"),
        ("on water<sub>2</sub> too", "on water too", "too water<sub>2</sub> on"),
        # what is raised, but is words
        ("the <sup>new house</sup> is", "the new house is", "is <sup>house new</sup> the"),
        ("the <sub>small</sub> house", "the small house", "house <sub>small</sub> the"),
        ("the <b>5</b> houses", "the 5 houses", "houses <b>5</b> the"),
    ],
)
def test_signs_stay_with_their_words(html: str, text: str, expected: str) -> None:
    assert texts(html) == [text]
    assert turned(html) == expected


def test_sentences_keep_their_notes() -> None:
    html = "<p>It is open.<sup>[1]</sup> It is old.<sup>[2]</sup></p>"
    assert texts(html) == ["It is open. It is old."]
