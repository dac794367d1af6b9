"""Raised and lowered signs: which are a part of a word, and which are marks behind one."""

import pytest

from service.documents.raised import merged


def told(*parts: str) -> list[str]:
    """Return the parts with units in brackets and marks in angles; raised ones begin with ^, "|" is anything else."""
    texts = [None if part == "|" else (part.removeprefix("^"), part.startswith("^")) for part in parts]

    def cut(part: str, start: int, end: int) -> str:
        return "^" * part.startswith("^") + part.removeprefix("^")[start:end]

    return merged(parts, texts, cut, lambda inner: f"({''.join(inner)})", lambda part: f"<{part}>")


@pytest.mark.parametrize(
    ("parts", "found"),
    [
        (("H", "^2", "O is water"), ["(H^2O)", " is water"]),
        (("the H", "^2", "SO", "^4"), ["the ", "(H^2SO^4)"]),
        (("10 m", "^2", " today"), ["10 ", "(m^2)", " today"]),
        (("x", "^i", "+y", "^j"), ["(x^i)", "+", "(y^j)"]),
        (("SO", "^4", "^2-"), ["(SO^4^2-)"]),
        (("E=mc", "^2"), ["E=", "(mc^2)"]),
        (("very wet", "^1", "."), ["very wet", "<^1>", "."]),
        (("some CaCl", "^2", "."), ["some ", "(CaCl^2)", "."]),
        (("10", "^6", " of"), ["(10^6)", " of"]),
        (("The house", "^1", " is open"), ["The house", "<^1>", " is open"]),
        (("open.", "^[1]", " The"), ["open.", "<^[1]>", " The"]),
        (("Dragoman", "^TM", " is"), ["Dragoman", "<^TM>", " is"]),
        (("Dragoman", "^R", " is"), ["Dragoman", "<^R>", " is"]),
        (("^1", " a note"), ["<^1>", " a note"]),
        (("a", "|", "^2"), ["a", "|", "<^2>"]),
        (("the 1", "^st", " of"), ["the 1", "^st", " of"]),
        (("the ", "^raised words", " of"), ["the ", "^raised words", " of"]),
        (("m", "^2", "s", "^3", "t"), ["(m^2s^3t)"]),
        (("as it is", "^1", " now"), ["as it is", "<^1>", " now"]),
        (("2 mol", "^2", " of"), ["2 ", "(mol^2)", " of"]),
    ],
)
def test_signs_stay_with_what_they_belong_to(parts: tuple[str, ...], found: list[str]) -> None:
    assert told(*parts) == found
