"""Segments whose translations have other numbers than their sources are decoded once more, these numbers protected."""

from collections.abc import Iterable, Iterator, Mapping

from service.domain.checkpoint import paced
from service.domain.errors import Overloaded, TooLate
from service.domain.translation import Flag, Hypothesis
from service.text.number_comparison import compare
from service.text.numbers import Languages, Number, find_numbers, localized
from service.text.protected import Protected, beside
from service.text.words import is_unspaced
from service.translation.assembling import Candidates
from service.translation.cache import Decoded
from service.translation.call import TranslationCall
from service.translation.decoding import SegmentDecoder
from service.translation.number_correction import languages_of
from service.translation.segments import PlannedSegment
from service.translation.steps import Steps


async def mend(
    call: TranslationCall,
    decoded: Mapping[int, Decoded],
    candidates: dict[int, Candidates],
    decoder: SegmentDecoder,
    steps: Steps,
) -> dict[int, Candidates]:
    """Return the candidates of some of a call's segments, by number, with better ones for those with wrong numbers.

    Only the best candidate decides. If the engine has no time for it, the first result stays, with its flag.
    """
    for each in candidates.values():
        if Flag.NUMBERS in each[0].flags:
            break
    else:
        return candidates
    segments = await steps.assemble(call, lambda: _with_numbers_protected(call, candidates))
    if not segments:
        return candidates
    known = {  # for a model without reserved symbols: its input is the same, only the places are new
        number: decoded[number] for number, segment in segments.items() if segment.fed == call.segments[number].fed
    }
    try:
        decoded_again = await decoder.decode(call, segments, known)
    except (Overloaded, TooLate):
        return candidates
    mended = await steps.restore(call, segments, decoded_again, is_mended=True)
    return candidates | {
        number: new for number, new in mended.items() if _shortcomings(new[0]) <= _shortcomings(candidates[number][0])
    }


def _with_numbers_protected(call: TranslationCall, candidates: Mapping[int, Candidates]) -> dict[int, PlannedSegment]:
    """Return the segments whose best candidate has other numbers, with those protected that are lost, or else all.

    Segments that the model can't read in that way are left out.
    """
    languages = languages_of(call.pair)
    segments: dict[int, PlannedSegment] = {}
    for number, (best, *_) in paced(candidates.items(), every=8):
        segment = call.segments[number]
        if segment.has_numbers and Flag.NUMBERS in best.flags:
            lost = compare(segment.text, best.text, languages).lost or find_numbers(segment.text)
            spans = beside(segment.spans, _protected(segment.text, lost, languages))
            if (changed := call.planner.protecting(segment, spans)) is not None:
                segments[number] = changed
    return segments


def _protected(text: str, numbers: Iterable[Number], languages: Languages) -> Iterator[Protected]:
    """Yield numbers that are to be kept, those after a letter with their words, as in F3."""
    done = 0
    for number in numbers:
        start, end = number.start, number.end
        if start < done:
            continue
        target = localized(number.text, languages)
        before = text[start - 1 : start]
        if before.isalpha() and not is_unspaced(before):
            while start > done and text[start - 1].isalnum() and not is_unspaced(text[start - 1]):
                start -= 1
            while text[end : end + 1].isalnum() and not is_unspaced(text[end]):
                end += 1
            target = text[start:end]
        yield Protected(start, end, target, Flag.NUMBERS)
        done = end


def _shortcomings(hypothesis: Hypothesis) -> tuple[bool, int]:
    return Flag.NUMBERS in hypothesis.flags, len(hypothesis.flags)
