"""What separates texts within strings."""

import pytest

from service.documents.inline import Kind, Piece
from service.documents.layout import apart, laid_out

CODE = Piece(Kind.MARK, "<x/>")


def told(pieces: list[Piece]) -> list[str]:
    return [
        piece.text if piece.kind is Kind.TEXT else f"{piece.kind.value}:{piece.raw}"
        for piece in pieces
        if any(piece[1:])
    ]


@pytest.mark.parametrize(
    ("pieces", "found"),
    [
        (["one\ntwo  three"], ["one\ntwo  three"]),
        (["one\ttwo\nthree"], ["one", "break:\t", "two", "break:\n", "three"]),
        (["one \n  two  three ", CODE], ["one", "break: \n  ", "two", "break:  ", "three ", "mark:<x/>"]),
        (["In {n, plural, other {# files}}"], ["In {n, plural, other {# files}}"]),
        (
            ["{n, plural, one {a file} other {# files}}"],
            ["break:{n, plural, one {", "a file", "break:} other {", "kept:#", " files", "break:}}"],
        ),
        (
            ["Find {n, plural, =0 {no {kind} file} other {", CODE, " files}} now"],
            [
                *("Find ", "break:{n, plural, =0 {", "no {kind} file", "break:} other {"),
                *("mark:<x/>", " files", "break:}}", " now"),
            ],
        ),
        (
            ["{g, select, a {x {n, plural, other {y", CODE, "}}} other {}}"],
            [
                *("break:{g, select, a {", "x ", "break:{n, plural, other {", "y", "mark:<x/>", "break:}}"),
                *("break:} other {", "break:}}"),
            ],
        ),
        (["{n, plural, one {", CODE, "} "], ["{n, plural, one {", "mark:<x/>", "} "]),
        (["} {name} {", CODE], ["} {name} {", "mark:<x/>"]),
    ],
)
def test_nothing_moves_across_what_separates(pieces: list[str | Piece], found: list[str]) -> None:
    assert told(laid_out([Piece(Kind.TEXT, text=each) if isinstance(each, str) else each for each in pieces])) == found


def pairs(*texts: str) -> list[Piece]:
    """Return a pair around each text that is no sign."""
    return [
        piece
        for text in texts
        for piece in (
            [Piece(Kind.OPEN, "<a>"), Piece(Kind.TEXT, text=text), Piece(Kind.CLOSE, "</a>")]
            if text[:1].isalpha()
            else [Piece(Kind.TEXT, text=text)]
        )
    ]


@pytest.mark.parametrize(
    ("texts", "breaks"),
    [
        (("Home", " | ", "Contact"), [" | "]),
        (("Save", "Cancel", " "), [""]),
        (("A", " ", "B", "C"), [" ", ""]),
        (("Home",), []),
        (("Home", " 1 "), []),
        (("Home", "- and so on -", "Contact"), []),
    ],
)
def test_elements_that_are_all_there_is_are_texts_of_their_own(texts: tuple[str, ...], breaks: list[str]) -> None:
    found = apart(pairs(*texts), lambda _: True, lambda piece: Piece(Kind.BREAK, piece.text if piece else ""))
    assert [piece.raw for piece in found if piece.kind is Kind.BREAK] == breaks
    assert apart(pairs(*texts), lambda _: False, lambda _: CODE) == pairs(*texts)
