"""What goes the short way of a plain sentence is one, whatever the text; `test_translator` compares the answers."""

import dataclasses
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from service.domain.options import RequestedOptions
from service.domain.translation import MimeType, SplitSentences, Term, TranslationRequest
from service.text.placeholders import find_placeholders
from service.text.sentences import Piece, cut
from service.translation.sentence import is_plain_sentence, may_be_plain_sentence

REQUEST = TranslationRequest(("Where is the station?",), "en", "de")
WORDS = (
    "Hello",
    "the",
    "3",
    "No",
    "a",
    "a)",
    "U.S.",
    "Dr.",
    "p.m",
    "x_y",
    "l’eau",
    "don't",
    "漢字",
    "हिन्दी",
    "é",
    "10:30",
)
MARKS = (
    " ",
    ", ",
    ". ",
    ".",
    "! ",
    "?",
    "-",
    " - ",
    "\n",
    ": ",
    "; ",
    "。",
    "।",
    "…",
    '"',
    "„",
    "(",
    ")",
    "{0}",
    "%s",
    "@",
)


@given(
    st.lists(st.sampled_from(WORDS + MARKS), max_size=8).map("".join) | st.text(max_size=30),
    st.sampled_from(SplitSentences),
    st.sampled_from(["en", "de", "hi", "ja", "el", "my"]),
)
@example("a) b", SplitSentences.ON, "en")
@example("Hello ", SplitSentences.ON, "en")
@example("Hello.\u2028", SplitSentences.NO_NEWLINES, "en")
@settings(max_examples=1000, deadline=None)
def test_a_plain_sentence_is_one_segment_with_nothing_to_protect(text: str, mode: SplitSentences, code: str) -> None:
    if text and is_plain_sentence(text, code, mode):
        assert cut(text, code, mode) == (Piece(text, is_segment=True),)
        assert not find_placeholders(text)
        assert len(text.splitlines()) == 1


@pytest.mark.parametrize("mode", SplitSentences)
@pytest.mark.parametrize(
    ("text", "is_one"),
    [
        ("Where is the train station?", True),
        ("Don't go-there, l’eau 3 a_b", True),
        ('He said (quietly): "It\'s 10:30"', True),
        ("漢字", True),
        ("नमस्ते दुनिया।", True),
        ("123", False),
        ("...", False),
        (" Hello", False),
        ("Hello ", False),
        ("- Hello", False),
        ("Hello {name}", False),
        ("See www.example.org", False),
        ("One\nTwo", False),
    ],
)
def test_ordinary_texts(text: str, is_one: bool, mode: SplitSentences) -> None:
    expected = is_one or (text == "- Hello" and mode is SplitSentences.OFF)
    assert is_plain_sentence(text, "en", mode) == expected


def test_two_sentences_are_not_one_unless_they_are_not_to_be_split() -> None:
    assert not is_plain_sentence("Excuse me. Do you speak English?", "en", SplitSentences.ON)
    assert is_plain_sentence("Excuse me. Do you speak English?", "en", SplitSentences.OFF)


@pytest.mark.parametrize(
    ("changes", "may_be"),
    [
        ({}, True),
        ({"options": RequestedOptions(beam_size=4), "is_strict": True}, True),
        ({"texts": ("a", "b")}, False),
        ({"texts": ("",)}, False),
        ({"texts": ("a" * 501,)}, False),
        ({"source_language_code": ""}, False),
        ({"mime_type": MimeType.HTML}, False),
        ({"preserve_formatting": True}, False),
        ({"return_alignments": True}, False),
        ({"terms": (Term("a", "b"),)}, False),
        ({"glossary": "g"}, False),
        ({"target_prefixes": ("",)}, False),
        ({"labels": (("a", "b"),)}, False),
    ],
)
def test_requests_that_need_more_go_the_general_way(changes: dict[str, Any], may_be: bool) -> None:
    assert may_be_plain_sentence(dataclasses.replace(REQUEST, **changes)) == may_be
