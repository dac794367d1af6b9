"""Correction of numbers that a model changed: those of the source are written where the wrong ones are."""

import functools
from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

from service.bundle.manifest_parts import LanguagePair
from service.domain.translation import AlignedSpan
from service.text.languages import language_of
from service.text.number_comparison import Comparison, compare
from service.text.numbers import DIGITS, MASK, Languages, Number, in_place_of
from service.text.protected import bounds
from service.text.spans import Offsets, Span, masked, replaced
from service.translation.segments import PlannedSegment

_MOST_APART = 2  # characters between digits that a model tore apart
_LEAST_LIKENESS = 0.4  # of a number and of the digits that stand for it
_MOST_PAIRED = 8
_LONGEST_LIKE = 64  # digits; longer numbers are not compared digit by digit


class Corrected(NamedTuple):
    """A translation with its numbers corrected as far as possible, and its protected parts and alignment there."""

    text: str
    places: Sequence[Span]
    alignment: tuple[AlignedSpan, ...]
    is_right: bool


@functools.lru_cache(maxsize=256)
def languages_of(pair: LanguagePair) -> Languages:
    """Return the languages of a model's pair, whatever codes the model has."""
    return Languages(language_of(pair.source_language_code), language_of(pair.target_language_code))


def correct(
    segment: PlannedSegment, text: str, places: Sequence[Span], alignment: tuple[AlignedSpan, ...], languages: Languages
) -> Corrected:
    """Write the source's numbers in place of what obviously stands for them; `places` are those of protected parts."""
    found = differences(segment, text, places, languages)
    if found == Comparison():
        return Corrected(text, places, alignment, is_right=True)
    own_text = masked(text, sorted(places), MASK)
    parts = (
        (place, in_place_of(number, text[slice(*place)], languages)) for number, place in substitutes(found, own_text)
    )
    corrected, edits = replaced(text, parts)
    moved = Offsets(edits)
    new_places = [moved.span(*place) for place in places]
    if not edits or differences(segment, corrected, new_places, languages) != Comparison():
        return Corrected(text, places, alignment, is_right=False)
    links = (
        AlignedSpan(link.source_start, link.source_end, *moved.span(link.target_start, link.target_end))
        for link in alignment
    )
    return Corrected(corrected, new_places, tuple(links), is_right=True)


def differences(segment: PlannedSegment, text: str, places: Sequence[Span], languages: Languages) -> Comparison:
    """Compare the numbers of a segment and its translation outside of protected parts and their `places`."""
    found = compare(masked(segment.text, bounds(segment.spans), MASK), masked(text, sorted(places), MASK), languages)
    return found._replace(extra=()) if segment.output_prefix_ids else found  # the caller's prefix may have any


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
