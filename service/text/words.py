"""Words of texts, in scripts with and without spaces, and the characters that belong to them."""

import itertools
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence

from service.text.spans import TokenSpan

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
# Both this and `MARKS` are for character classes of regular expressions.
UNSPACED = "".join(f"{first}-{last}" for first, last in _RANGES)
_MARK_CATEGORIES = ("Mn", "Mc")
_RUN = re.compile(r"\S+")
_RESERVED = "\ue000-\uf8ff"  # the private use area, which contains the reserved symbols
_RESERVED_OR_UNSPACED = re.compile(f"[{_RESERVED}{UNSPACED}]")
_IS_RESERVED = re.compile(f"[{_RESERVED}]")
_IS_UNSPACED = re.compile(f"[{UNSPACED}]")


def is_unspaced(character: str) -> bool:
    """Return whether a character belongs to a script that is written without spaces."""
    return character >= "\u0e00" and any(first <= character <= last for first, last in _RANGES)


def is_mark(character: str) -> bool:
    """Return whether a character belongs to the one before it: accents, vowel signs, tone marks."""
    return unicodedata.category(character) in _MARK_CATEGORIES


def _ranges_of_marks(codes: Sequence[int]) -> str:
    """Return the marks among these code points, in order, for a character class."""
    categories = map(unicodedata.category, map(chr, codes))  # without calls of `is_mark`, which would delay the start
    marks = [code for code, category in zip(codes, categories, strict=True) if category in _MARK_CATEGORIES]
    firsts = [code for code, before in zip(marks, (None, *marks), strict=False) if before != code - 1]
    lasts = [code for code, after in zip(marks, (*marks[1:], None), strict=True) if after != code + 1]
    return "".join(f"{chr(first)}-{chr(last)}" for first, last in zip(firsts, lasts, strict=True))


# Of plane 0; there are none among ideographs, Hangul's syllables and private use, which are most of it.
MARKS = _ranges_of_marks((*range(0x300, 0x3400), *range(0xA000, 0xAC00), *range(0xF900, 0x10000)))
# Of the other planes, likewise; slow where nothing matches.
RARE_MARKS = _ranges_of_marks((*range(0x10000, 0x17000), *range(0x1B000, 0x1F000), *range(0xE0100, 0xE01F0)))


def is_word_boundary(text: str, position: int) -> bool:
    """Return whether a position is not within a word; in scripts without spaces, each character may begin one."""
    if not 0 < position < len(text):
        return True
    before, after = text[position - 1], text[position]
    if unicodedata.combining(after) or is_mark(after):
        return False
    return not (_is_in_word(before) and _is_in_word(after)) or is_unspaced(before) or is_unspaced(after)


def unbroken(text: str) -> list[str]:
    """Split a text at all word boundaries: into words, and single characters between them."""
    return _UNBROKEN.findall(text)


def words(text: str, tokens: Iterable[TokenSpan] = ()) -> list[TokenSpan]:
    """Return the spans of words: maximal runs without white space; punctuation and symbols at their ends are separate.

    "3.5" and "isn't" are words, and "(files..." is "(", "files" and "..."; a reserved symbol is a word of its own. In
    scripts without spaces, `tokens` divide the text into words.
    """
    cuts = {end for span in tokens for end in span}
    return [span for run in _RUN.finditer(text) for span in _parts(text, *run.span(), cuts)]


def is_word(word: str) -> bool:
    """Return whether one of `words` is more than punctuation; a reserved symbol counts as a word."""
    return any(map(str.isalnum, word)) or _IS_RESERVED.search(word) is not None


def _parts(text: str, start: int, end: int, cuts: set[int]) -> Iterator[TokenSpan]:
    first, last = start, end
    while first < end and _is_mark(text[first]):
        first += 1
    while last > first and _is_mark(text[last - 1]):
        last -= 1
    yield from _marks(text, start, first)
    begun = first
    if _RESERVED_OR_UNSPACED.search(text, first, last):
        for place in range(first + 1, last):
            if _is_border(text[place - 1 : place + 1], place in cuts):
                yield begun, place
                begun = place
    if begun < last:
        yield begun, last
    yield from _marks(text, last, end)


def _marks(text: str, start: int, end: int) -> Iterator[TokenSpan]:
    """Yield punctuation, runs of the same mark together: "..." is one."""
    for _, run in itertools.groupby(range(start, end), key=lambda place: text[place]):
        places = list(run)
        yield places[0], places[-1] + 1


def _is_border(around: str, is_cut: bool) -> bool:
    return _IS_RESERVED.search(around) is not None or (is_cut and _IS_UNSPACED.search(around) is not None)


def _is_mark(character: str) -> bool:
    return not character.isalnum() and unicodedata.category(character)[0] in "PS"


def _is_in_word(character: str) -> bool:
    return character.isalnum() or character == "_" or is_mark(character)


def _unbroken() -> re.Pattern[str]:
    """Return a regular expression for text without word boundaries in it."""
    letter = f"[^\\W{UNSPACED}]"
    # The class for the other planes is slow to reject, so it is only tried on characters beyond plane 0.
    mark = f"(?:[{MARKS}]|(?=[\U00010000-\U0010ffff])[{RARE_MARKS}])"
    return re.compile(f"(?:{letter}++|\\A(?={mark})|.)(?:{mark}++(?:(?<![{UNSPACED}]){letter}++)?)*+", re.DOTALL)


_UNBROKEN = _unbroken()
