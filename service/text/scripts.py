"""Scripts written without spaces, and the marks that belong to the character before them.

The strings are for character classes of regular expressions.
"""

import unicodedata
from collections.abc import Iterable

# Thai, Lao and Tibetan; Myanmar; Khmer; kana and ideographs.
_RANGES = (
    ("\u0e00", "\u0fff"),
    ("\u1000", "\u109f"),
    ("\u1780", "\u17ff"),
    ("\u3005", "\u3007"),
    ("\u3040", "\u30ff"),
    ("\u3400", "\u9fff"),
    ("\uf900", "\ufaff"),
    ("\U00020000", "\U0003ffff"),
)
UNSPACED = "".join(f"{first}-{last}" for first, last in _RANGES)


def is_unspaced(character: str) -> bool:
    """Return whether a character belongs to a script that is written without spaces."""
    return character >= "\u0e00" and any(first <= character <= last for first, last in _RANGES)


def is_mark(character: str) -> bool:
    """Return whether a character belongs to the one before it: accents, vowel signs, tone marks."""
    return unicodedata.category(character) in ("Mn", "Mc")


def _marks(codes: Iterable[int]) -> str:
    marks = [code for code in codes if is_mark(chr(code))]
    firsts = [code for code, before in zip(marks, (None, *marks), strict=False) if before != code - 1]
    lasts = [code for code, after in zip(marks, (*marks[1:], None), strict=True) if after != code + 1]
    return "".join(f"{chr(first)}-{chr(last)}" for first, last in zip(firsts, lasts, strict=True))


MARKS = _marks(range(0x10000))  # of plane 0
RARE_MARKS = _marks((*range(0x10000, 0x20000), *range(0xE0000, 0xE0200)))  # of the others; slow where nothing matches
