"""Splitting of segments that are too long for a model, at the best positions."""

import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from itertools import islice

from service.domain.checkpoint import checkpoint
from service.text.spans import inside

# How much worse than the best a cut is, as the share of the text by which a better one may be further from the middle.
# A cut is after a mark and white space; in scripts without spaces, such as Chinese, after the mark.
_CLOSING = r"""["'“”‘’»›)\]}」』）】]*"""
_PLACES = (
    (0.0, re.compile(rf"[.!?…।॥؟]{_CLOSING}\s+|[。！？]{_CLOSING}\s*")),
    (0.1, re.compile(rf"[;:؛]{_CLOSING}\s+|[；：]{_CLOSING}\s*|\s[–—-]\s+")),
    (0.15, re.compile(rf"[,،]{_CLOSING}\s+|[，、]{_CLOSING}\s*")),
    (0.2, re.compile(r"[)\]}”»“]\s+|[」』）】]")),
    (0.3, re.compile(r"\s+")),
)
_EXTRA_PIECE = 0.25  # penalty of a cut that results in one more piece
_COUNTED = 4  # times the limit: for longer texts, tokens of halves are estimated, not all counted at every level
_MAX_PLACES = 100  # candidates examined on either side: the words of several sentences


def split_long(
    text: str, num_tokens: Callable[[str], int], limit: int, whole: Sequence[tuple[int, int]] = ()
) -> list[str]:
    """Split a text into pieces of at most `limit` tokens each; joined, the pieces are the text.

    Pieces of about equal length end at the end of a sentence, else after a semicolon, colon or dash, else after a
    comma, a closing bracket or white space, else between two user-perceived characters. White space stays with the
    preceding piece. No cut is within the spans `whole`, sorted and disjoint, unless one is too long itself.
    `num_tokens` is called about twice for each piece.
    """
    if num_tokens(text) <= limit:
        return [text]
    is_inside = inside(whole)
    penalties: dict[int, float] = {}
    for penalty, pattern in _PLACES:
        for found in pattern.finditer(text):
            if not is_inside(found.end()):
                penalties.setdefault(found.end(), penalty)
    places = sorted(penalties.items())
    pieces = []
    todo = [(0, len(text), 0.0)]
    while todo:
        checkpoint()
        start, end, estimate = todo.pop()
        is_counted = estimate <= _COUNTED * limit or end - start < 2
        tokens = num_tokens(text[start:end]) if is_counted else estimate
        if tokens <= limit:
            pieces.append(text[start:end])
        elif end - start < 2:
            raise ValueError(f"{text!r:.60} has {tokens:.0f} tokens; at most {limit} are allowed, and it can't be cut.")
        else:
            middle = _best_place(text, start, end, tokens / limit, places, is_inside)
            density = tokens / (end - start)
            todo += [(middle, end, density * (end - middle)), (start, middle, density * (middle - start))]
    return pieces


def chunks(text: str, size: int, whole: Sequence[tuple[int, int]] = ()) -> Iterator[str]:
    """Split a very long text lazily into pieces of at most `size` characters; joined, the pieces are the text.

    They end at the best cut in their last eighth, the last of those that `split_long` prefers, but not within the spans
    `whole`, sorted and disjoint; one longer than an eighth of `size` is a piece of its own, however long.
    """
    reach = size // 8
    is_inside = inside(whole)
    start = 0
    for first, last in [*((first, last) for first, last in whole if last - first > reach), (len(text), len(text))]:
        while first - start > size:
            end = start + size
            places = (
                found.end()
                for _, pattern in _PLACES
                for found in reversed(list(pattern.finditer(text, end - reach, end)))
                if not is_inside(found.end())
            )
            place = next(places, None) or _between_characters(text, end, reach, is_inside)
            yield text[start:place]
            start = place
        if start < first:
            yield text[start:first]
        if first < last:
            yield text[first:last]
        start = last


def _between_characters(text: str, end: int, reach: int, is_inside: Callable[[int], bool]) -> int:
    """Return the last cut up to `end` that is outside of spans and between two user-perceived characters."""
    free = [at for at in range(end, end - reach, -1) if not is_inside(at)]
    return next((at for at in free if not is_one_character(text[at - 1], text[at])), free[0] if free else end)


def _best_place(
    text: str,
    start: int,
    end: int,
    excess: float,
    places: Sequence[tuple[int, float]],
    is_inside: Callable[[int], bool],
) -> int:
    """Return where to cut text[start:end], which is `excess` times too long; `places` are positions with penalties."""
    length = end - start
    num_pieces = -int(-excess // 1)
    ideal = start + max(1, length * (num_pieces // 2) // num_pieces)

    def cost(place: tuple[int, float]) -> float:
        position, penalty = place
        part = excess * (position - start) / length
        num_extra = -int(-part // 1) - int(-(excess - part) // 1) - num_pieces
        return penalty + abs(position - ideal) / length + _EXTRA_PIECE * num_extra

    middle = bisect_left(places, (ideal, 0.0))
    first = max(middle - _MAX_PLACES, bisect_right(places, (start, 1.0)))
    near = places[first : min(middle + _MAX_PLACES, bisect_left(places, (end, 0.0)))]
    if near:
        return min(near, key=cost)[0]
    outward = list(islice(_outward(ideal, start, end), _MAX_PLACES))
    apart = (at for at in outward if not is_inside(at) and not is_one_character(text[at - 1], text[at]))
    return next(apart, None) or next((at for at in outward if not is_one_character(text[at - 1], text[at])), ideal)


def _outward(middle: int, start: int, end: int) -> Iterator[int]:
    """Yield the positions strictly between `start` and `end`, those closest to `middle` first."""
    for distance in range(end - start):
        if start < middle - distance:
            yield middle - distance
        if distance and middle + distance < end:
            yield middle + distance


def is_one_character(before: str, after: str) -> bool:
    """Return whether two code points are displayed as one character: a conservative subset of grapheme clusters."""
    return (
        unicodedata.category(after).startswith("M")  # accents, vowel signs, variation selectors
        or "\u200d" in (before, after)  # joined emoji
        or "\U0001f3fb" <= after <= "\U0001f3ff"  # skin tones
        or ("\U0001f1e6" <= before <= "\U0001f1ff" and "\U0001f1e6" <= after <= "\U0001f1ff")  # flags
        or unicodedata.combining(before) == 9  # viramas, which join consonants
        or ("\u1100" <= before <= "\u11ff" and "\u1160" <= after <= "\u11ff")  # syllables of Hangul letters
        or (before == "\r" and after == "\n")
    )
