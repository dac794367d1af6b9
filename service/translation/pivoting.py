"""Translation by two models: what the first makes of a text, in the pivot language, the second translates."""

import asyncio
from bisect import bisect_left, bisect_right
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from functools import partial
from operator import attrgetter

from service.domain.checkpoint import paced
from service.domain.errors import InvalidRequest, Path
from service.domain.options import DecodingOptions, RequestedOptions
from service.domain.translation import (
    AlignedSpan,
    CallLimits,
    FinishReason,
    Hypothesis,
    KeptPart,
    MimeType,
    TranslationRequest,
)
from service.engine.sequence import Sequence as EngineSequence
from service.models.catalogue import Leg
from service.text.protected import Protected
from service.translation.assembling import Candidates, mean_score
from service.translation.cache import Decoded
from service.translation.call import TranslationCall
from service.translation.decoding import SegmentDecoder, SegmentProgress
from service.translation.mending import mend
from service.translation.planning import target_prefix_ids
from service.translation.steps import Steps
from service.translation.streaming import SegmentNews, TextStream

Report = Callable[[int, str | Candidates], None]
TranslateLeg = Callable[[TranslationCall], Awaitable[dict[int, Candidates]]]
StreamLeg = Callable[[TranslationCall, Sequence[TextStream]], AsyncGenerator[SegmentNews]]


@dataclass(frozen=True, slots=True)
class SecondLeg:
    """The second leg of a caller's `request`."""

    request: TranslationRequest
    leg: Leg
    limits: CallLimits

    @property
    def options(self) -> DecodingOptions:
        return self.leg.model.options(self.request.options)

    @property
    def num_samples(self) -> int:
        return self.options.num_hypotheses if self.options.is_sampled else 1

    def check_prefixes(self) -> None:
        """Check the request's target prefixes, which only this leg's translations begin with."""
        model, pair = self.leg
        tokenizer, _ = model.tokenizer_of(pair)
        for index, prefix in enumerate(self.request.target_prefixes):
            if prefix:
                target_prefix_ids(prefix, index, model.manifest.name, tokenizer)

    def first_request(self) -> TranslationRequest:
        """Return the request of the first leg: one candidate of each segment, without the prefixes."""
        options = RequestedOptions(**{**self.request.options.chosen, "num_hypotheses": 1})
        return replace(self.request, options=options, target_prefixes=())

    def first_limits(self) -> CallLimits:
        return replace(self.limits, max_segments=self.limits.max_segments // self.num_samples)

    def admit(self, first: TranslationCall, sequences: Sequence[EngineSequence]) -> None:
        """Check that the second engine would accept its leg of these sequences, and have the first reserve time for it.

        Its sources are about as long as the first leg's; each gets the requested samples, or beam.
        """
        options = replace(self.options, num_hypotheses=1) if self.options.is_sampled else self.options
        alike = [replace(sequence, options=options) for sequence in sequences for _ in range(self.num_samples)]
        first.reserved_seconds = self.leg.model.engine.check_alike(alike)
        for sequence in sequences:
            sequence.reserved_seconds = first.reserved_seconds

    def call(self, first: TranslationCall, translated: Mapping[int, Candidates]) -> TranslationCall:
        """Return the call for what the first leg made of some segments, by number; its texts are in the same order.

        What the first leg kept, it keeps; terms are already in the target language.
        """
        best = {number: candidates[0] for number, candidates in translated.items()}
        request = replace(
            self.request,
            texts=tuple(each.text for each in best.values()),
            mime_type=MimeType.PLAIN,
            target_prefixes=self._prefixes(first, best),
            glossary="",
            terms=(),
            return_alignments=any(first.segments[number].is_aligned for number in best),
            is_strict=False,
        )
        kept = [_protected(each.text, each.kept) for each in best.values()]
        model, pair = self.leg
        return TranslationCall(request, model, pair, (), self.limits, kept=kept, is_continued=True)

    def _prefixes(self, first: TranslationCall, numbers: Mapping[int, object]) -> tuple[str, ...]:
        prefixes = self.request.target_prefixes
        if not any(prefixes):
            return ()
        return tuple(prefixes[first.places[number][0]] if first.begins(number) else "" for number in numbers)


class Pivoter:
    """Translates calls of two legs. Sentences of both batch with everybody else's. For the event loop's thread."""

    def __init__(
        self, decoder: SegmentDecoder, steps: Steps, translate_leg: TranslateLeg, stream_leg: StreamLeg
    ) -> None:
        self._decoder = decoder
        self._steps = steps
        self._translate_leg = translate_leg
        self._stream_leg = stream_leg

    async def translate(
        self, first: TranslationCall, second_leg: SecondLeg, report: Report | None = None
    ) -> dict[int, Candidates]:
        """Translate the segments of a planned call of the first leg by both; return the candidates of each, by number.

        Each goes on as soon as the first model has it. `report` is called with the certain part of a segment's
        translation, whenever it grows, and with its candidates. Cancelling this coroutine aborts the sequences of both
        legs.
        """
        candidates: dict[int, Candidates] = {}
        waiting: dict[int, Decoded] = {}

        async def translate_waiting() -> None:
            decoded = waiting.copy()
            waiting.clear()
            restored = await self._steps.restore(first, first.segments, decoded)
            mended = await mend(first, decoded, restored, self._decoder, self._steps)
            candidates.update(await self._translate_second(first, second_leg, mended, report))

        admit = partial(second_leg.admit, first)
        try:
            async with (
                asyncio.TaskGroup() as group,
                aclosing(self._decoder.grow(first, wants_progress=False, admit=admit)) as all_news,
            ):
                async for news in all_news:
                    if isinstance(news, SegmentProgress):
                        continue
                    if not waiting:  # what ends in the same turn of the engine goes on together
                        group.create_task(translate_waiting())
                    waiting.update(news)
        except BaseExceptionGroup as errors:  # the first failure cancelled the others
            raise errors.exceptions[0] from None
        return candidates

    async def stream(
        self, first: TranslationCall, second_leg: SecondLeg, streams: Sequence[TextStream]
    ) -> AsyncGenerator[SegmentNews]:
        """Yield what is new of the segments of a planned call of the first leg.

        Closing this generator aborts the sequences of both legs; callers that may stop early must close it.
        """
        news: dict[int, str | Candidates] = {}  # not read yet, the latest of each segment
        has_news = asyncio.Event()

        def report(number: int, new: str | Candidates) -> None:
            news[number] = new
            has_news.set()

        task = asyncio.create_task(self.translate(first, second_leg, report))
        task.add_done_callback(lambda _: has_news.set())
        try:
            while news or not task.done():
                if not news:
                    has_news.clear()
                    await has_news.wait()
                    continue
                number = next(iter(news))
                new = news.pop(number)
                if isinstance(new, str):
                    index, segment = first.places[number]
                    if delta := streams[index].grow(segment, new):
                        yield number, delta
                else:
                    yield number, new
            task.result()
        finally:
            task.cancel()
            await asyncio.wait([task])
            if not task.cancelled():
                task.exception()  # which has been raised, or nobody waits for

    async def _translate_second(
        self,
        first: TranslationCall,
        second_leg: SecondLeg,
        restored: Mapping[int, Candidates],
        report: Report | None,
    ) -> dict[int, Candidates]:
        second = second_leg.call(first, restored)
        numbers = list(restored)
        try:
            await self._steps.plan(second)
        except InvalidRequest as error:
            raise _in_callers_terms(error, first, numbers) from error
        if report is None:
            translated = await self._translate_leg(second)
        else:
            translated = await self._stream_second(second, numbers, report)

        def composed() -> dict[int, Candidates]:
            return {
                number: _composed(restored[number][0], second.joined(index, translated))
                for index, number in paced(enumerate(numbers), every=8)
            }

        candidates = await self._steps.assemble(second, composed)
        if report is not None:
            for number, each in candidates.items():
                report(number, each)
        return candidates

    async def _stream_second(
        self, second: TranslationCall, numbers: Sequence[int], report: Report
    ) -> dict[int, Candidates]:
        """Translate a call of the second leg, and report what grows of its texts, the first leg's `numbers`."""
        streams = second.streams()
        sent = [""] * len(streams)
        candidates: dict[int, Candidates] = {}

        async with aclosing(self._stream_leg(second, streams)) as all_news:
            async for segment, new in all_news:
                index, place = second.places[segment]
                if isinstance(new, str):
                    delta = new
                else:
                    candidates[segment] = new
                    delta = streams[index].settle(place, new[0].text)
                if delta:
                    sent[index] += delta
                    report(numbers[index], sent[index])
        return candidates


def _protected(text: str, kept: Sequence[KeptPart]) -> list[Protected]:
    return [Protected(start, end, text[start:end], flag) for start, end, flag in kept]


def _in_callers_terms(error: InvalidRequest, first: TranslationCall, numbers: Sequence[int]) -> InvalidRequest:
    match error.path:
        case ("texts", int(index)):
            error.path = Path("texts", first.places[numbers[index]][0])
    return error


def _composed(first: Hypothesis, seconds: Candidates) -> Candidates:
    """Return the second leg's candidates for the translation `first` as candidates for its source."""
    return tuple(
        second._replace(
            score=None if second.score is None else mean_score((first, second)),
            finish_reason=second.finish_reason if first.finish_reason is FinishReason.STOP else first.finish_reason,
            flags=tuple(dict.fromkeys((*first.flags, *second.flags))),
            alignment=tuple(_composed_links(first.alignment, second.alignment)),
        )
        for second in seconds
    )


def _composed_links(first: Sequence[AlignedSpan], second: Sequence[AlignedSpan]) -> Iterator[AlignedSpan]:
    """Yield the links from source to translation of parts that share a part of the pivot language's text, sorted."""
    by_start = sorted(second, key=attrgetter("source_start"))
    starts = [link.source_start for link in by_start]
    longest = max((link.source_end - link.source_start for link in second), default=0)
    links = {
        (before.source_start, before.source_end, after.target_start, after.target_end)
        for before in paced(first, every=16)
        for after in by_start[
            bisect_right(starts, before.target_start - longest) : bisect_left(starts, before.target_end)
        ]
        if before.target_start < after.source_end
    }
    return (AlignedSpan(*link) for link in sorted(links))
