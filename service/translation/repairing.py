"""Segments whose translations have other numbers than their sources are decoded once more, these numbers protected."""

import asyncio
from collections.abc import AsyncGenerator, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing

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
from service.translation.computations import Computations
from service.translation.correcting import languages_of
from service.translation.decoding import SegmentDecoder, SegmentProgress
from service.translation.streaming import TextStream


class Repairer:
    """Restores segments, and decodes those with wrong numbers once more. For the event loop's thread."""

    def __init__(self, decoder: SegmentDecoder, computations: Computations) -> None:
        self._decoder = decoder
        self._computations = computations

    async def translate(self, call: TranslationCall) -> dict[int, Candidates]:
        """Decode and restore a call's segments; return the candidates of each, by number.

        Those with numbers go first and by themselves: what is decoded again is decoded beside the others.
        """
        checked = [number for number, segment in enumerate(call.segments) if segment.has_numbers]
        others = [number for number, segment in enumerate(call.segments) if not segment.has_numbers]
        if not (checked and others):
            return await self._translated(call, checked or others)
        try:
            async with asyncio.TaskGroup() as group:
                first = group.create_task(self._translated(call, checked))
                decoded = group.create_task(self._decoder.decode(call, others))
        except BaseExceptionGroup as errors:  # the first failure cancelled the other
            raise errors.exceptions[0] from None
        return first.result() | await self._computations.restore(call, decoded.result())

    async def _translated(self, call: TranslationCall, numbers: Collection[int]) -> dict[int, Candidates]:
        return await self.restore(call, await self._decoder.decode(call, numbers))

    async def grow(
        self, call: TranslationCall, streams: Sequence[TextStream]
    ) -> AsyncGenerator[tuple[int, str | Candidates]]:
        """Yield what is new of a call's segments: what is added to the text of a stream, or in the end candidates.

        Closing this generator aborts the call's sequences; callers that may stop early must close it.
        """
        async with aclosing(self._decoder.grow(call)) as all_news:
            async for news in all_news:
                if isinstance(news, SegmentProgress):
                    index, number = call.places[news.segment]
                    if delta := streams[index].feed(number, news.token_ids):
                        yield news.segment, delta
                else:
                    for segment, restored in (await self.restore(call, news)).items():
                        yield segment, restored

    async def restore(self, call: TranslationCall, decoded: Mapping[int, Decoded]) -> dict[int, Candidates]:
        """Return the candidates of some of a call's segments from what was decoded, or from what is decoded now.

        Only the best candidate decides whether a segment is decoded again. If the engine has no time for that, the
        first result stays, with its flag.
        """
        candidates = await self._computations.restore(call, decoded)
        if not any(Flag.NUMBERS in each[0].flags for each in candidates.values()):
            return candidates
        again, numbers = await self._computations.assemble(
            lambda: call.protecting(dict(_wrong(call, candidates))), call
        )
        if not numbers:
            return candidates
        same = {  # for a model without reserved symbols: its input is the same, only the places are new
            at: decoded[number]
            for at, number in enumerate(numbers)
            if again.segments[at].fed == call.segments[number].fed
        }
        try:
            fresh = await self._decoder.decode(again, range(len(numbers)), same)
        except (Overloaded, TooLate):
            return candidates
        for at, new in (await self._computations.restore(again, fresh)).items():
            if _shortcomings(new[0]) <= _shortcomings(candidates[numbers[at]][0]):
                candidates[numbers[at]] = new
        return candidates


def _wrong(call: TranslationCall, candidates: Mapping[int, Candidates]) -> list[tuple[int, Sequence[Protected]]]:
    """Return the segments whose best candidate has other numbers, and what to protect: those that are lost, or all."""
    languages = languages_of(call.pair)
    found: list[tuple[int, Sequence[Protected]]] = []
    for number, (best, *_) in paced(candidates.items(), every=16):
        segment = call.segments[number]
        if segment.has_numbers and Flag.NUMBERS in best.flags:
            lost = compare(segment.text, best.text, languages).lost or find_numbers(segment.text)
            spans = beside(segment.spans, _protected(segment.text, lost, languages))
            found.append((number, spans))
    return found


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
