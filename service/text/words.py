"""Where words begin and end, in scripts with and without spaces."""

import unicodedata

# Scripts written without spaces: Thai, Lao and Tibetan; Myanmar; Khmer; kana and ideographs.
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
UNSPACED = "".join(f"{first}-{last}" for first, last in _RANGES)  # for a character class of a regular expression


def is_unspaced(character: str) -> bool:
    """Whether a character belongs to a script that is written without spaces."""
    return character >= "\u0e00" and any(first <= character <= last for first, last in _RANGES)


def is_word_boundary(text: str, position: int) -> bool:
    """Whether no word goes on across a position; in scripts without spaces, each character may begin one."""
    if not 0 < position < len(text):
        return True
    before, after = text[position - 1], text[position]
    if unicodedata.combining(after) or unicodedata.category(after) in ("Mn", "Mc"):
        return False
    return not (_is_in_word(before) and _is_in_word(after)) or is_unspaced(before) or is_unspaced(after)


def _is_in_word(character: str) -> bool:
    return character.isalnum() or character == "_" or unicodedata.category(character) in ("Mn", "Mc")
