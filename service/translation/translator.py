"""The translation path of every API: resolve, check, plan, decode, restore, mend, assemble, in this order."""

import asyncio
import functools
import time
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import TypeVar

from service.domain.call import Call, current_call
from service.domain.errors import DeadlineExceeded, InvalidRequest, Overloaded, Unavailable
from service.domain.grants import EVERYTHING, Grants
from service.domain.translation import (
    CallLimits,
    DetectedLanguage,
    MimeType,
    OwnPlaceholder,
    Priority,
    StreamEvent,
    Translation,
    TranslationRequest,
    TranslationResult,
)
from service.models.catalogue import Catalogue, Route, RouteUse
from service.models.loaded_model import LoadedModel
from service.observe.metrics import Metrics
from service.process.event_loop import all_of
from service.text.detection import UNDETERMINED
from service.text.glossary import Glossaries, Glossary
from service.text.languages import canonical
from service.text.terms import TermIndex
from service.translation.assembling import Candidates
from service.translation.cache import TranslationCache
from service.translation.call import TranslationCall
from service.translation.checks import check_request, check_texts
from service.translation.decoding import SegmentDecoder, SegmentProgress
from service.translation.mending import mend
from service.translation.pivoting import Pivoter, SecondLeg
from service.translation.segments import PlannedSegment
from service.translation.source_languages import (
    Part,
    detect_languages,
    joined,
    parts_by_detection,
    unchanged,
    undetermined,
)
from service.translation.steps import MAX_INLINE_ENTRIES, Steps
from service.translation.streaming import SegmentNews, TextStream

T = TypeVar("T")


class Translator:
    """Translation with the models of a catalogue. All methods belong to the event loop's thread."""

    def __init__(
        self,
        metrics: Metrics,
        cache: TranslationCache,
        glossaries: Glossaries,
        limits: CallLimits,
        placeholders: tuple[OwnPlaceholder, ...] = (),
    ) -> None:
        self._placeholders = placeholders
        self._glossaries = glossaries
        self.limits = limits  # of every call
        self._metrics = metrics
        self._decoder = SegmentDecoder(metrics, cache)
        self.deliver = self._decoder.deliver
        self._catalogue = Catalogue()
        self._is_loading = True
        self._steps = Steps(metrics)
        self._pivoter = Pivoter(self._decoder, self._steps, self._translate_leg, self._stream_leg)

    def serve(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue
        self._is_loading = False

    def close(self) -> None:
        self._steps.close()

    @property
    def num_pending(self) -> int:
        return self._decoder.num_pending

    def models(self) -> list[LoadedModel]:
        """Return the models that the current call may use, sorted by name, the highest version of each first."""
        return list(self.catalogue().models)

    def catalogue(self) -> Catalogue:
        self.check_loaded()
        return self._catalogue.part(current_call().grants)

    def check_loaded(self) -> None:
        if self._is_loading:
            raise Unavailable("the server is still loading its models", advice="try again in a few seconds")

    def glossaries(self) -> tuple[Glossary, ...]:
        return self._glossaries.all(current_call().grants)

    def model(self, name: str, version: str) -> LoadedModel:
        return self.catalogue().find(name, version)

    def overload(self, priority: Priority) -> Overloaded | None:
        """Return why the current call, of this priority, would be rejected regardless of its contents; else `None`.

        Cached translations are returned even under overload, so with a cache this is always `None`.
        """
        overload = None
        if not self._decoder.keeps:
            origin = current_call().origin
            for model in self._catalogue.models:
                try:
                    model.engine.check_queue(priority, origin)
                except Overloaded as error:
                    overload = error
                except Unavailable:
                    continue
                else:
                    return None
        return overload

    async def translate(self, request: TranslationRequest) -> TranslationResult:
        """Translate every text, or fail as a whole. Cancelling this aborts the request's sequences in the engine."""
        request = self._checked(request)
        if request.source_language_code:
            return await self._translate(Part(request))
        parts = await self._parts(request)
        if len(parts) == 1:
            results = [await self._translate(parts[0])]
        else:
            results = await all_of(map(self._translate, parts))
        translations = joined(request, parts, [result.translations for result in results])
        if results:
            return results[0]._replace(translations=translations)
        model = self._model_into(request)
        return TranslationResult(model.name, model.version, translations)

    async def stream(self, request: TranslationRequest) -> AsyncGenerator[StreamEvent]:
        """Translate the request's texts and yield them as they grow; each ends with its whole translation.

        Closing this generator aborts the request's sequences in the engine; callers that may stop early must close it.
        """
        request, current = self._checked(request), current_call()
        parts = await self._parts(request)
        if not request.source_language_code:
            in_parts = {index for part in parts for index in part.indices}
            for index, text in enumerate(request.texts):
                if index not in in_parts:
                    model = self._model_into(request)
                    current.has_begun = True
                    yield StreamEvent(index, text, undetermined(text), model.name, model.version)
        for part in parts:
            try:
                async with aclosing(self._stream(part)) as events:
                    async for event in events:
                        current.has_begun = True
                        yield event
            except InvalidRequest as error:
                part.name_in_whole(error)
                raise

    def check_texts(self, texts: Sequence[str]) -> None:
        check_texts(texts, self.limits.max_characters)

    async def detect(
        self, texts: Sequence[str], deadline_seconds: float, mime_type: MimeType = MimeType.PLAIN
    ) -> list[tuple[DetectedLanguage, ...]]:
        """Return the languages that each text may be in, best first, of all that are known."""
        served = self.catalogue().languages()
        check_texts(texts, self.limits.max_characters)

        detected = functools.partial(detect_languages, texts, mime_type, served)
        return await self._steps.run(detected, sum(map(len, texts)), deadline_seconds)

    async def source_of(self, request: TranslationRequest) -> str:
        """Return the language of a request's only text: its target's, or one translated into it; empty if none."""
        parts = await self._parts(self._checked(request))
        return parts[0].detected_language_code if parts else ""

    async def convert(self, build: Callable[[], T], num_entries: int) -> T:
        """Return the result of `build`, which passes checkpoints; on another thread for many segments and links."""
        if num_entries <= MAX_INLINE_ENTRIES:
            return build()
        return await self._steps.run(build, num_entries)

    def _checked(self, request: TranslationRequest) -> TranslationRequest:
        self.check_loaded()
        if request.source_language_code == UNDETERMINED:  # as `detect` answers
            request = replace(request, source_language_code="")
        if self._placeholders:
            request = replace(request, placeholders=(*request.placeholders, *self._placeholders))
        check_request(request, self.limits.max_characters)
        return request

    async def _parts(self, request: TranslationRequest) -> list[Part]:
        """Split a request by source language: the one that is given, or each text's, detected."""
        if request.source_language_code:
            return [Part(request)]
        requested, catalogue = (request.model, request.model_version), self.catalogue()
        sources = catalogue.sources(*requested, request.target_language_code)
        if len(sources) == 1:
            route = catalogue.resolve(*requested, sources[0], request.target_language_code)
            if route.legs and not route.legs[0].model.manifest.is_prose:
                whole = replace(request, source_language_code=sources[0])
                return [Part(whole, tuple(range(len(request.texts))), detected_language_code=sources[0])]

        find_parts = functools.partial(parts_by_detection, request, sources)
        return await self._steps.run(find_parts, sum(map(len, request.texts)), request.deadline_seconds)

    def _use(self, part: Part, grants: Grants) -> RouteUse:
        request = part.request
        if part.is_kept:
            route = Route(self._model_into(request), ())
        else:
            codes = request.source_language_code, request.target_language_code
            catalogue = self._catalogue if grants is EVERYTHING else self._catalogue.part(grants)
            route = catalogue.resolve(request.model, request.model_version, *codes)
        return RouteUse(route, len(request.texts))

    async def _unchanged(self, part: Part) -> tuple[Translation, ...]:
        request = part.request
        if part.documents or request.mime_type is MimeType.PLAIN:
            return unchanged(part)
        work = functools.partial(unchanged, part)
        return await self._steps.run(work, sum(map(len, request.texts)), request.deadline_seconds)

    async def _translate(self, part: Part) -> TranslationResult:
        current = current_call()
        try:
            with self._use(part, current.grants) as route:
                model = route.writer
                if not route.legs:
                    return TranslationResult(model.name, model.version, await self._unchanged(part))
                call, second_leg = await self._plan(part, route, current)
                if second_leg is None:
                    candidates = await self._translate_leg(call)
                else:
                    candidates = await self._pivoter.translate(call, second_leg)
                translations = await self._steps.assemble(call, functools.partial(call.translations, candidates))
                call.record.translated(translations)
                self._count(model, part.request.texts, translations)
                return TranslationResult(model.name, model.version, translations)
        except InvalidRequest as error:
            part.name_in_whole(error)
            raise

    async def _plan(self, part: Part, route: Route, current: Call) -> tuple[TranslationCall, SecondLeg | None]:
        request, limits = part.request, self.limits
        current.uses(route.writer.name, route.writer.version)
        # Cached translations are returned regardless of the queue.
        if not self._decoder.keeps:
            for model, _ in route.legs:
                model.engine.check_queue(request.priority, current.origin)
        terms: list[TermIndex] = []
        model, pair = route.legs[0]
        if request.glossary:
            target = route.legs[-1].pair.target_language_code
            codes = canonical(pair.source_language_code), canonical(target)
            terms.append(self._glossaries.get(request.glossary, *codes, current.grants).index)
        second_leg = None
        if len(route.legs) > 1:
            second_leg = SecondLeg(request, route.legs[1], limits)
            limits = second_leg.first_limits()
            second_leg.check_prefixes()
            request = second_leg.first_request()
        pivot = route.pivot_language_code
        call = TranslationCall(request, model, pair, terms, limits, part.documents, pivot_language_code=pivot)
        await self._steps.plan(call)
        if request.deadline_seconds is not None and request.deadline_seconds <= time.monotonic():
            raise DeadlineExceeded("the deadline passed before decoding began.")
        return call, second_leg

    async def _translate_leg(
        self, call: TranslationCall, segments: Mapping[int, PlannedSegment] | None = None
    ) -> dict[int, Candidates]:
        """Return the candidates of some segments of a planned call, by number; by default of all.

        Segments with numbers go first and by themselves, so that retries overlap with the rest.
        """
        segments = call.segments if segments is None else segments
        numbered = {number: each for number, each in segments.items() if each.has_numbers} if len(segments) > 1 else {}
        if 0 < len(numbered) < len(segments):
            others = {number: segment for number, segment in segments.items() if not segment.has_numbers}
            try:
                async with asyncio.TaskGroup() as group:
                    mended = group.create_task(self._translate_leg(call, numbered))
                    decoded_others = group.create_task(self._decoder.decode(call, others))
            except BaseExceptionGroup as errors:  # the first failure cancelled the other
                raise errors.exceptions[0] from None
            return mended.result() | await self._steps.restore(call, others, decoded_others.result())
        decoded = await self._decoder.decode(call, segments)
        restored = await self._steps.restore(call, segments, decoded)
        return await mend(call, decoded, restored, self._decoder, self._steps)

    async def _stream_leg(self, call: TranslationCall, streams: Sequence[TextStream]) -> AsyncGenerator[SegmentNews]:
        """Yield what is new of a planned call's segments.

        Closing this generator aborts the call's sequences; callers that may stop early must close it.
        """
        async with aclosing(self._decoder.grow(call)) as all_news:
            async for news in all_news:
                if isinstance(news, SegmentProgress):
                    index, number = call.places[news.segment]
                    if delta := streams[index].feed(number, news.token_ids):
                        yield news.segment, delta
                else:
                    restored = await self._steps.restore(call, call.segments, news)
                    for segment, mended in (await mend(call, news, restored, self._decoder, self._steps)).items():
                        yield segment, mended

    async def _stream(self, part: Part) -> AsyncGenerator[StreamEvent]:
        request, current = part.request, current_call()
        with self._use(part, current.grants) as route:
            model = route.writer
            if not route.legs:
                for index, each in enumerate(await self._unchanged(part)):
                    yield StreamEvent(part.place(index), each.text, each, model.name, model.version)
                return
            call, second_leg = await self._plan(part, route, current)
            streams = call.streams()
            candidates: dict[int, Candidates] = {}
            translations: dict[int, Translation] = {}
            num_left = Counter(index for index, _ in call.places)

            async def assembled(index: int) -> Translation:
                translation = await self._steps.assemble(call, lambda: call.translation(index, candidates))
                call.record.translated((translation,))
                return translation._replace(detected_language_code=part.detected_language_code)

            def event(index: int, delta: str, translation: Translation | None = None) -> StreamEvent:
                return StreamEvent(part.place(index), delta, translation, model.name, model.version)

            for index in range(len(request.texts)):
                if not num_left[index]:
                    translations[index] = await assembled(index)
                    yield event(index, translations[index].text, translations[index])
            if second_leg is None:
                growing = self._stream_leg(call, streams)
            else:
                growing = self._pivoter.stream(call, second_leg, streams)
            async with aclosing(growing) as all_news:
                async for segment, new in all_news:
                    index, number = call.places[segment]
                    if isinstance(new, str):
                        yield event(index, new)
                        continue
                    candidates[segment] = new
                    delta = streams[index].settle(number, new[0].text)
                    num_left[index] -= 1
                    if not num_left[index]:
                        translations[index] = await assembled(index)
                        yield event(index, delta + streams[index].finish(translations[index]), translations[index])
                    elif delta:
                        yield event(index, delta)
            in_order = [translations[index] for index in range(len(request.texts))]
            self._count(model, request.texts, in_order)

    def _model_into(self, request: TranslationRequest) -> LoadedModel:
        requested, catalogue = (request.model, request.model_version), self.catalogue()
        sources = catalogue.sources(*requested, request.target_language_code)
        return catalogue.resolve(*requested, sources[0], request.target_language_code).writer

    def _count(self, model: LoadedModel, texts: Sequence[str], translations: Sequence[Translation]) -> None:
        metrics = self._metrics.model(model.name)
        flags = metrics.version(model.version).flags
        num_texts = num_codepoints = 0
        for text, translation in zip(texts, translations, strict=True):
            if translation.num_source_tokens:
                num_texts += 1
                num_codepoints += len(text)
            for segment in translation.segments:
                for flag in segment.flags:
                    flags[flag].value += 1
        metrics.translated(num_texts, num_codepoints)
