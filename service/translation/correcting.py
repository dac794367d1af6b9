"""Correction of numbers that a model changed: those of the source are written where the wrong ones are."""

import functools
from collections.abc import Sequence
from typing import NamedTuple

from service.bundle.manifest_parts import LanguagePair
from service.domain.translation import AlignedSpan
from service.text.languages import language_of
from service.text.number_comparison import Comparison, compare
from service.text.number_substitutes import substitutes
from service.text.numbers import MASK, Languages, in_place_of
from service.text.protected import bounds
from service.text.spans import Offsets, Span, masked, replaced
from service.translation.planned import PlannedSegment


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
    segment: PlannedSegment,
    text: str,
    places: Sequence[Span],
    alignment: tuple[AlignedSpan, ...],
    languages: Languages,
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
