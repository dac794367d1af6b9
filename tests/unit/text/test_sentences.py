"""Segments of documents."""

import re
import time
from itertools import accumulate, pairwise
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from service.domain.translation import SplitSentences
from service.text import sentences
from service.text.placeholders import find_placeholders
from service.text.sentences import Piece, is_simple_sentence

ON, OFF, NO_NEWLINES = SplitSentences.ON, SplitSentences.OFF, SplitSentences.NO_NEWLINES

_SPACES = ["\n", "\r\n", "\r", "\u2028", "\u2029", "\x85", "\f", "\v", "\x1c", "\t", "\u00a0", "\u3000", "\u200b"]
_BULLETS = ["- ", "* ", "• ", "1. ", "12) ", "a) ", "(iv) ", "– ", "# ", "> ", "- [ ] ", "3、"]
_MARKS = [". ", "! ", "? ", "...", "…", '"', "“", "”", "'", "(", ")", "。", "「", "」", "।", "؟ ", "\x00", "\u0301"]
_DIVIDING = ["---", "....", " . ", "« ", " »", "[a b]", "![a](b)", "Re: "]
_LATIN = ["Dr. ", "z. B. ", "e.g. ", "3.14", "ß", "Hello", "word ", "Ein Satz. ", "{{x}}", "http://a.b/c. "]
_OTHERS = ["你好", "नमस्ते", "مرحبا", "\ue000", "👩‍👩‍👧", "½"]
_PARTS = st.sampled_from([" ", "  ", *_SPACES, *_BULLETS, *_MARKS, *_DIVIDING, *_LATIN, *_OTHERS])
_DOCUMENTS = st.lists(_PARTS | st.text(max_size=5), max_size=25).map("".join)
_LANGUAGES = st.sampled_from(["en", "de", "zh", "hi", "ar", "ja", "eng_Latn", "pt-BR", "xx", "", "fr"])


def cut(text: str, language_code: str, mode: SplitSentences, *spans: Any) -> tuple[Piece, ...]:
    return tuple(sentences.pieces(text, language_code, mode, *spans))


def segments(text: str, language: str = "en", mode: SplitSentences = ON) -> list[str]:
    return [piece.text for piece in cut(text, language, mode) if piece.is_segment]


def check_document(text: str, language: str, mode: SplitSentences) -> None:
    pieces = cut(text, language, mode)
    assert "".join(piece.text for piece in pieces) == text
    assert all(piece.text for piece in pieces)
    for piece in pieces:
        if piece.is_segment:
            assert piece.text == piece.text.strip()
            assert any(map(str.isalpha, piece.text))
            assert mode is not ON or len(piece.text.splitlines()) == 1
    assert not any(not piece.is_segment and not after.is_segment for piece, after in pairwise(pieces))


@given(_DOCUMENTS, _LANGUAGES, st.sampled_from(SplitSentences))
def test_joined_pieces_are_the_text(text: str, language: str, mode: SplitSentences) -> None:
    check_document(text, language, mode)


@pytest.mark.full
@pytest.mark.timeout(600)
@settings(max_examples=10_000, deadline=None)
@given(_DOCUMENTS, _LANGUAGES, st.sampled_from(SplitSentences))
def test_joined_pieces_of_10_000_documents_are_the_text(text: str, language: str, mode: SplitSentences) -> None:
    check_document(text, language, mode)


@given(st.lists(_PARTS | st.text(max_size=5), min_size=1, max_size=40), st.data())
def test_nothing_is_cut_within_what_is_whole(parts: list[str], data: st.DataObject) -> None:
    text = "".join(parts)
    bounds = sorted(data.draw(st.sets(st.integers(0, len(text)), max_size=8)))
    spans = zip(bounds[::2], bounds[1::2], strict=False)
    whole = [(start, end) for start, end in spans if text[start:end] == text[start:end].strip()]
    pieces = cut(text, "en", ON, whole)
    assert "".join(piece.text for piece in pieces) == text
    for cut_at in accumulate(len(piece.text) for piece in pieces):
        assert not any(start < cut_at < end for start, end in whole)


def test_a_name_with_a_full_stop_stays_whole() -> None:
    text = "They play like Adam Ants. The Band here. And there."
    assert segments(text) == ["They play like Adam Ants.", "The Band here.", "And there."]
    pieces = cut(text, "en", ON, [(15, 34)])
    assert [piece.text for piece in pieces if piece.is_segment] == [
        "They play like Adam Ants. The Band here.",
        "And there.",
    ]


@pytest.mark.parametrize(
    "bullet",
    ["- ", "* ", "• ", "1. ", "2) ", "(3) ", "a) ", "iv) ", "– ", "## ", "> - ", "1.2. ", "- [x] ", ">> ", ">", "① "],
)
@pytest.mark.parametrize("mode", [ON, NO_NEWLINES])
def test_bullets_are_kept_apart(bullet: str, mode: SplitSentences) -> None:
    pieces = cut(f"Milk\n\t{bullet}Cheese", "en", mode)
    assert pieces == (Piece("Milk", True), Piece(f"\n\t{bullet}", False), Piece("Cheese", True))


def test_what_is_no_bullet_is_not_cut_off() -> None:
    for text in ("I. Newton", "A. Lincoln was tall.", "-5 degrees", "*bold* words", "2026 was good.", "I am"):
        assert segments(text) == [text]


@pytest.mark.parametrize("mode", SplitSentences)
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Name\tAddress\t\tCity", ["Name", "Address", "City"]),
        ("\tOne.\tTwo \t ", ["One.", "Two"]),
        ("One <->two<-> three", ["One", "two", "three"]),
        ("One<->", ["One"]),
        ("<->\t<->1<->", []),
    ],
)
def test_what_is_apart_separates_segments(text: str, expected: list[str], mode: SplitSentences) -> None:
    apart = [found.span() for found in re.finditer("<->", text)]
    assert [piece.text for piece in cut(text, "en", mode, apart, apart) if piece.is_segment] == expected


def test_a_tab_that_belongs_to_a_bullet_or_indents_is_no_separator() -> None:
    assert segments("a)\tOne.\n-\tTwo.") == ["One.", "Two."]
    assert segments("One\n\ttwo.", mode=NO_NEWLINES) == ["One\n\ttwo."]


def test_lines_are_cut_or_joined() -> None:
    text = "A sentence that\ngoes on here.\r\nNext\r\n\r\nNew paragraph\n- item one\n  goes on\n- item two\u2029End"
    lines = ["A sentence that", "goes on here.", "Next", "New paragraph", "item one", "goes on", "item two", "End"]
    assert segments(text, mode=ON) == lines
    joined = ["A sentence that\ngoes on here.", "Next", "New paragraph", "item one\n  goes on", "item two", "End"]
    assert segments(text, mode=NO_NEWLINES) == joined
    assert segments("It was Dr.\nSmith. Yes.", mode=NO_NEWLINES) == ["It was Dr.\nSmith.", "Yes."]
    assert segments("  One. Two.\n\nThree.\n", mode=OFF) == ["One. Two.\n\nThree."]


@pytest.mark.parametrize("mode", SplitSentences)
def test_nothing_without_letters_is_a_segment(mode: SplitSentences) -> None:
    for text in (" ", "\n\n\t", "3.14", "12:30", "- ", "***", "\x00", "\u0301", "👍", "½", "\ue000 \ue001"):
        assert cut(text, "en", mode) == (Piece(text, False),)
    assert cut("", "en", mode) == ()


@pytest.mark.parametrize(
    "unit",
    [
        *("你好。", "“", "a ", "A.", "Dr. ", "(a. ", "\n", "1. ", "- ", "This is one. ", ".", '"', "». ", "「", ". »"),
        *("། ", "!\xa0", "  ", "a  ", ". . ", "._", "-- -", "[a", "[a] ", "![a](b", "« ", "Re: ", ": Re: [x] ", ">a"),
    ],
)
def test_many_characters_in_one_line_take_linear_time(unit: str) -> None:
    text = unit * (50_000 // len(unit))
    start = time.process_time()
    assert "".join(piece.text for piece in cut(text, "en", ON)) == text
    assert time.process_time() - start < 1


def test_a_long_sentence_is_cut_nowhere_and_the_next_ones_are_found() -> None:
    long = "This sentence " + "goes on and on " * 300 + "to its end."
    assert segments(f"Short. {long} {long} Short.") == ["Short.", long, long, "Short."]


@given(
    st.lists(
        st.sampled_from(["Hello", "the", "3", "a)", "U.S.", "Dr.", "x_y", "l’eau", "don't", "漢字", "हिन्दी", "10:30"])
        | st.sampled_from(
            [" ", ", ", ". ", ".", "! ", "?", " - ", "\n", ": ", "。", "।", "…", '"', "(", "{0}", "%s", "@"]
        ),
        max_size=8,
    ).map("".join)
    | st.text(max_size=30),
    st.sampled_from(SplitSentences),
    st.sampled_from(["en", "de", "hi", "ja", "el", "my"]),
)
@example("a) b", SplitSentences.ON, "en")
@example("Hello ", SplitSentences.ON, "en")
@example("Hello.\u2028", SplitSentences.NO_NEWLINES, "en")
def test_a_simple_sentence_is_one_segment_with_nothing_to_protect(text: str, mode: SplitSentences, code: str) -> None:
    if is_simple_sentence(text):
        assert cut(text, code, mode) == (Piece(text, is_segment=True),)
        assert not find_placeholders(text)


def test_most_sentences_are_simple() -> None:
    """So they need no search."""
    assert is_simple_sentence("Where is the train station?")
    assert is_simple_sentence("Don't go-there, l’eau 3")
    assert not is_simple_sentence("Excuse me. Do you speak English?")
