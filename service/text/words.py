"""Words of a text: what alignments speak of."""

import itertools
import re
import unicodedata
from collections.abc import Iterable, Iterator

from service.text.spans import Span

_RUN = re.compile(r"\S+")
_RESERVED = "\ue000-\uf8ff"  # the private use area, where reserved symbols are
# Scripts that put no spaces between words: Thai, Lao, Myanmar, Khmer, kana, Han and its extensions.
_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_UNSPACED += "\U00020000-\U0003ffff"
_RESERVED_OR_UNSPACED = re.compile(f"[{_RESERVED}{_UNSPACED}]")
_IS_RESERVED = re.compile(f"[{_RESERVED}]")
_IS_UNSPACED = re.compile(f"[{_UNSPACED}]")


def words(text: str, tokens: Iterable[Span] = ()) -> list[Span]:
    """Spans of the words: maximal runs without white space, punctuation and symbols at their ends apart.

    So "3.5" and "isn't" are words, and "(" and "files" and "..." of "(files..." are. A reserved symbol is always by
    itself. In scripts without spaces words are what `tokens` cut the text into.
    """
    cuts = {end for span in tokens for end in span}
    return [span for run in _RUN.finditer(text) for span in _parts(text, *run.span(), cuts)]


def is_word(word: str) -> bool:
    """Whether one of `words` is more than punctuation; a reserved symbol stands for a word."""
    return any(map(str.isalnum, word)) or _IS_RESERVED.search(word) is not None


def _parts(text: str, start: int, end: int, cuts: set[int]) -> Iterator[Span]:
    """Words of a run without white space."""
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


def _marks(text: str, start: int, end: int) -> Iterator[Span]:
    """Punctuation, equal marks in a row together: "..." is one."""
    for _, run in itertools.groupby(range(start, end), key=lambda place: text[place]):
        places = list(run)
        yield places[0], places[-1] + 1


def _is_border(around: str, is_cut: bool) -> bool:
    """Whether a word ends between two characters."""
    return _IS_RESERVED.search(around) is not None or (is_cut and _IS_UNSPACED.search(around) is not None)


def _is_mark(character: str) -> bool:
    return not character.isalnum() and unicodedata.category(character)[0] in "PS"
