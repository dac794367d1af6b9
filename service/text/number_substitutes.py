"""What stands in a translation for the numbers that it lacks."""

from collections.abc import Sequence
from difflib import SequenceMatcher

from service.text.number_comparison import Comparison
from service.text.numbers import DIGITS, MASK, Number
from service.text.spans import Span

_MOST_APART = 2  # characters between digits that a model tore apart
_LEAST_LIKENESS = 0.4  # of a number and of the digits that stand for it
_MOST_PAIRED = 8
_LONGEST_LIKE = 64  # digits; longer numbers are not compared digit by digit


def substitutes(comparison: Comparison, translation: str) -> list[tuple[Number, Span]]:
    """Return for each lost number the digits that obviously stand for it, in order; empty unless all are found."""
    if len(comparison.lost) > _MOST_PAIRED:
        return []
    for extra in (comparison.extra, _joined(comparison.extra, translation)):
        if len(extra) == len(comparison.lost) and (found := _paired(comparison.lost, extra, translation)):
            return found
    return []


def _joined(places: Sequence[Span], text: str) -> list[Span]:
    """Join digits that are next to each other: parts of a number that the model tore apart."""
    joined: list[Span] = []
    for place in places:
        between = text[joined[-1].end : place.start] if joined else ""
        if joined and len(between) <= _MOST_APART and not any(map(str.isalnum, between)) and MASK not in between:
            joined[-1] = Span(joined[-1].start, place.end)
        else:
            joined.append(place)
    return joined


def _paired(lost: Sequence[Number], extra: Sequence[Span], translation: str) -> list[tuple[Number, Span]]:
    waiting, found = list(lost), []
    for place in extra:
        digits = "".join(DIGITS.findall(translation[place.start : place.end]))
        likeness, best = max(((_likeness(each, digits), each) for each in waiting), key=lambda pair: pair[0])
        if likeness < _LEAST_LIKENESS:
            return []
        waiting.remove(best)
        found.append((best, place))
    return found


def _likeness(number: Number, digits: str) -> float:
    wanted = "".join(number.parts)
    if max(len(wanted), len(digits)) > _LONGEST_LIKE:
        return 0.0
    return SequenceMatcher(None, wanted, digits, autojunk=False).ratio()
