"""The one path from text to text: resolve, check, plan, decode, restore, in order; used by every API."""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import TypeVar

from service.bundle.manifest import LanguagePair
from service.domain.call import Phase, current_call
from service.domain.checkpoint import done_within, paced
from service.domain.errors import DeadlineExceeded, InvalidRequest, NotFound, Overloaded, Unavailable, listed, quoted
from service.domain.origin import Origin
from service.domain.translation import (
    CallLimits,
    DetectedLanguage,
    FinishReason,
    Hypothesis,
    MimeType,
    Priority,
    Translation,
    TranslationRequest,
)
from service.engine.sequence import SequenceProgress, SequenceUpdate
from service.models.catalogue import Catalogue
from service.models.loaded_model import LoadedModel
from service.observe.metrics import Metrics
from service.text.detection import UNDETERMINED, LanguageDetector
from service.text.glossary import Glossaries
from service.text.languages import canonical
from service.text.terms import TermIndex
from service.translation.assembling import Candidates
from service.translation.cache import Decoded, TranslationCache
from service.translation.call import TranslationCall
from service.translation.checks import check_request, check_texts
from service.translation.compute_pool import ComputePool
from service.translation.decoding import SegmentDecoder, SegmentProgress
from service.translation.source_languages import Part, parts_by_language, plain_texts

# Up to here the event loop plans and restores by itself: about half a millisecond, less than a trip to another thread
# costs under load. What is short and takes longer is begun anew on another thread.
_MAX_INLINE_CHARACTERS = 4_096
_MAX_INLINE_SECONDS = 0.002
_TERMS_FACTOR = 16  # measured: a character takes so much longer where a term is found, or nearly found, at each
_MAX_INLINE_TOKENS = 2_048
_MAX_INLINE_ENTRIES = 1_024  # segments and links of alignments that the event loop puts into messages by itself

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class TranslationResult:
    """The answer to one call: the model and version that were used and one translation per text, in order.

    Where detected languages led to several models, it is the first text's.
    """

    model: str
    model_version: str
    translations: tuple[Translation, ...]


@dataclass(frozen=True, slots=True)
class StreamUpdate:
    """What a stream tells next: of which text, what comes after all before, and, at its end, the whole translation."""

    index: int
    delta: str
    model: str
    model_version: str
    translation: Translation | None = None


class Translator:
    """Translates with the models of a catalogue. All methods belong to the event loop's thread."""

    def __init__(self, metrics: Metrics, cache: TranslationCache, glossaries: Glossaries, limits: CallLimits) -> None:
        """`limits` are those of every call."""
        self.glossaries = glossaries
        self._limits = limits
        self._metrics = metrics
        self._decoder = SegmentDecoder(metrics, cache)
        self._catalogue = Catalogue()
        self._is_loading = True
        self._pool = ComputePool()

    def serve(self, catalogue: Catalogue) -> None:
        """From now on translate with these models."""
        self._catalogue = catalogue
        self._is_loading = False

    def close(self) -> None:
        """End what is being computed, and wait for nothing."""
        self._pool.close()

    def models(self) -> list[LoadedModel]:
        """The models that are served, in order of names, and of each the highest version first.

        Raises:
            Unavailable: they are still being loaded.
        """
        if self._is_loading:
            raise Unavailable("the server is still loading its models; try again in a few seconds.")
        return self._catalogue.models()

    def model(self, name: str, version: str) -> LoadedModel:
        """The model of this name; its highest version if `version` is empty.

        Raises:
            NotFound: there is no such model or version.
            Unavailable: as for `models`.
        """
        self.models()
        return self._catalogue.find(name, version)

    def deliver(self, updates: Sequence[SequenceUpdate], progress: Sequence[SequenceProgress] = ()) -> None:
        """Take in the terminal updates of one turn of an engine, and the progress of sequences that go on."""
        self._decoder.deliver(updates, progress)

    def overload(self, priority: Priority) -> Overloaded | None:
        """Why the call at hand, of this priority, would be refused, whatever it asks for; `None` if it may not be.

        Calls that ask for what is kept from earlier ones are answered always.
        """
        overload = None
        if not self._decoder.keeps:
            for model in self._catalogue.models():
                try:
                    model.engine.check_queue(priority, current_call().origin)
                except Overloaded as error:
                    overload = error
                except Unavailable:
                    continue
                else:
                    return None
        return overload

    async def translate(self, request: TranslationRequest) -> TranslationResult:
        """Translate every text of the request, or fail as a whole.

        Cancelling this coroutine takes the request's sequences out of the engine.

        Raises:
            ServiceError: see `service.domain.errors`; what can't be taken is refused before anything is decoded.
        """
        self.models()
        check_request(request, self._limits.max_characters)
        if not request.source_language_code:
            return await self._translate_detected(request)
        model, pair = self._resolve(request)
        # Its engine runs until this is over, though another version be served by then.
        with model.leases.hold(), model.statistics.call(len(request.texts)):
            call = await self._planned(request, model, pair)
            candidates = await self._restored(call, await self._decoder.decode(call))
            translations = await self._run(
                lambda: tuple(call.translation(index, candidates) for index in range(len(request.texts))),
                request,
                inline=_is_small(request),
            )
            self._count(call, translations)
            return TranslationResult(model.name, model.version, translations)

    async def stream(self, request: TranslationRequest) -> AsyncGenerator[StreamUpdate]:
        """Translate the request's texts and yield them as they grow; each ends with its whole translation.

        Closing this generator takes the request's sequences out of the engine; who may leave early must close it.

        Raises:
            ServiceError: as for `translate`; what was yielded before stays true.
        """
        self.models()
        check_request(request, self._limits.max_characters)
        if request.source_language_code:
            async with aclosing(self._stream(request)) as news:
                async for each in news:
                    yield each
            return
        parts = await self._parts(request)
        in_parts = {index for part in parts for index in part.indices}
        for index, text in enumerate(request.texts):
            if index not in in_parts:
                model = self._model_into(request)
                yield StreamUpdate(index, text, model.name, model.version, _undetermined(text))
        for part in parts:
            async with aclosing(self._stream(part.request)) as news:
                try:
                    async for each in news:
                        whole = each.translation and _detected(each.translation, part)
                        yield replace(each, index=part.indices[each.index], translation=whole)
                except InvalidRequest as error:
                    part.name_in_whole(error)
                    raise

    def check_texts(self, texts: Sequence[str]) -> None:
        """Check the texts of a call that asks for several translations of them together.

        Raises:
            InvalidRequest: none, or too long ones.
        """
        check_texts(texts, self._limits.max_characters)

    async def detect(
        self, texts: Sequence[str], deadline_seconds: float, mime_type: MimeType = MimeType.PLAIN
    ) -> list[tuple[DetectedLanguage, ...]]:
        """The languages that each text may be in, best first: `LanguageDetector.detect` among all that it knows.

        Raises:
            ServiceError: the server is loading, there are no texts, or too long ones, or the deadline passed.
        """
        self.models()
        check_texts(texts, self._limits.max_characters)

        def detected() -> list[tuple[DetectedLanguage, ...]]:
            detector = LanguageDetector()
            return [detector.detect(text) for text in paced(plain_texts(texts, mime_type), every=4)]

        return await self._pool.run(detected, sum(map(len, texts)), deadline_seconds, _caller())

    async def convert(self, build: Callable[[], T], num_entries: int) -> T:
        """What `build` makes of so many segments and links of alignments of an answer: beside the event loop, if they
        are many. It passes checkpoints.

        Raises:
            Unavailable: the server is stopping.
        """
        if num_entries <= _MAX_INLINE_ENTRIES:
            return build()
        return await self._pool.run(build, num_entries, caller=_caller())

    async def _translate_detected(self, request: TranslationRequest) -> TranslationResult:
        """Translate each text from the language that it is in, of those from which the target can be reached."""
        parts = await self._parts(request)
        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(self._translate_part(part)) for part in parts]
        except BaseExceptionGroup as errors:  # the first ended the others
            raise errors.exceptions[0] from None
        results = [task.result() for task in tasks]
        translations = list(map(_undetermined, request.texts))
        for part, result in zip(parts, results, strict=True):
            for index, translation in zip(part.indices, result.translations, strict=True):
                translations[index] = _detected(translation, part)
        if results:
            return replace(results[0], translations=tuple(translations))
        model = self._model_into(request)
        return TranslationResult(model.name, model.version, tuple(translations))

    async def _translate_part(self, part: Part) -> TranslationResult:
        try:
            return await self.translate(part.request)
        except InvalidRequest as error:
            part.name_in_whole(error)
            raise

    async def _parts(self, request: TranslationRequest) -> list[Part]:
        """The request's texts by the languages that they are in, of those from which the target can be reached."""
        sources = self._catalogue.sources(request.model, request.model_version, request.target_language_code)

        def parts() -> list[Part]:
            detector = LanguageDetector(sources)
            plain = plain_texts(request.texts, request.mime_type)
            return parts_by_language(
                request, [detector.detect(text)[0].language_code for text in paced(plain, every=4)]
            )

        return await self._run(parts, request, inline=False)

    async def _stream(self, request: TranslationRequest) -> AsyncGenerator[StreamUpdate]:
        model, pair = self._resolve(request)
        with model.leases.hold(), model.statistics.call(len(request.texts)):
            call = await self._planned(request, model, pair)
            streams = call.streams()
            candidates: dict[int, Candidates] = {}
            translations: dict[int, Translation] = {}
            is_small = _is_small(call.request)
            num_left = Counter(index for index, _ in call.places)

            async def assembled(index: int) -> Translation:
                return await self._run(lambda: call.translation(index, candidates), request, inline=is_small)

            def part(index: int, delta: str, translation: Translation | None = None) -> StreamUpdate:
                return StreamUpdate(index, delta, model.name, model.version, translation)

            for index in range(len(request.texts)):
                if not num_left[index]:
                    translations[index] = await assembled(index)
                    yield part(index, translations[index].text, translations[index])
            async with aclosing(self._decoder.grow(call)) as all_news:
                async for news in all_news:
                    if isinstance(news, SegmentProgress):
                        index, number = call.places[news.segment]
                        if delta := streams[index].feed(number, news.token_ids):
                            yield part(index, delta)
                        continue
                    restored = await self._restored(call, news)
                    candidates.update(restored)
                    for segment, best in restored.items():
                        index, number = call.places[segment]
                        delta = streams[index].settle(number, best[0].text)
                        num_left[index] -= 1
                        if not num_left[index]:
                            translations[index] = await assembled(index)
                            yield part(index, delta + streams[index].finish(translations[index]), translations[index])
                        elif delta:
                            yield part(index, delta)
            self._count(call, [translations[index] for index in range(len(request.texts))])

    def _model_into(self, request: TranslationRequest) -> LoadedModel:
        """One that can translate into the request's target."""
        asked = (request.model, request.model_version)
        sources = self._catalogue.sources(*asked, request.target_language_code)
        return self._catalogue.resolve(*asked, sources[0], request.target_language_code)[0]

    def _resolve(self, request: TranslationRequest) -> tuple[LoadedModel, LanguagePair]:
        return self._catalogue.resolve(
            request.model, request.model_version, request.source_language_code, request.target_language_code
        )

    async def _planned(self, request: TranslationRequest, model: LoadedModel, pair: LanguagePair) -> TranslationCall:
        current = current_call()
        current.uses(model.name, model.version)
        if not self._decoder.keeps:  # else what is kept is given out whatever the queue is like
            model.engine.check_queue(request.priority, current.origin)
        call = TranslationCall(request, model, pair, self._terms(request, pair), self._limits)
        began = time.monotonic()
        if not (_is_small(request) and done_within(_MAX_INLINE_SECONDS, call.plan)):
            await self._run(call.plan, request, inline=False)
        ended = time.monotonic()
        current.took(Phase.TOKENIZE, began, ended)
        seconds = ended - began
        self._metrics.model(model.name).tokenized(seconds)
        model.statistics.tokenize.add(seconds)
        if request.deadline_seconds is not None and request.deadline_seconds <= time.monotonic():
            raise DeadlineExceeded("the deadline passed before decoding began.")
        return call

    def _terms(self, request: TranslationRequest, pair: LanguagePair) -> list[TermIndex]:
        """Those of the glossary that the request names."""
        if not request.glossary:
            return []
        codes = canonical(pair.source_language_code), canonical(pair.target_language_code)
        found = self.glossaries.find(request.glossary, *codes)
        if found is None:
            held = self.glossaries.glossaries
            there = (f"{each.name} from {each.source_language_code} into {each.target_language_code}" for each in held)
            raise NotFound(
                f"glossary {quoted(request.glossary)} from {codes[0]} into {codes[1]} is not here; there are "
                f"{listed(there)}.",
                "glossary",
                request.glossary,
            )
        return [found.index]

    async def _restored(self, call: TranslationCall, decoded: Mapping[int, Decoded]) -> dict[int, Candidates]:
        num_tokens = sum(len(hypothesis.token_ids) for each in decoded.values() for hypothesis in each)
        began = time.monotonic()
        inline = num_tokens <= _MAX_INLINE_TOKENS and not call.aligns
        candidates = await self._run(lambda: call.restore(decoded), call.request, inline=inline)
        ended = time.monotonic()
        current_call().took(Phase.DETOKENIZE, began, ended)
        seconds = ended - began
        self._metrics.model(call.model.name).detokenized(seconds)
        call.model.statistics.detokenize.add(seconds)
        return candidates

    def _count(self, call: TranslationCall, translations: Sequence[Translation]) -> None:
        current_call().translated(translations)
        texts = zip(call.request.texts, translations, strict=True)
        metrics = self._metrics.model(call.model.name)
        metrics.texts_translated(text for text, each in texts if each.num_source_tokens)
        metrics.flagged(flag for each in translations for segment in each.segments for flag in segment.flags)

    async def _run(self, work: Callable[[], T], request: TranslationRequest, *, inline: bool) -> T:
        if inline:
            return work()
        return await self._pool.run(work, sum(map(len, request.texts)), request.deadline_seconds, _caller())


def _caller() -> Origin:
    """Who shares the threads with others: a key, or a host, whatever its connections."""
    return current_call().origin[:1]


def _is_small(request: TranslationRequest) -> bool:
    """Whether its texts are planned, and put together, in about half a millisecond."""
    num_characters = sum(map(len, request.texts))
    if request.terms or request.glossary:
        num_characters = num_characters * _TERMS_FACTOR + sum(len(term.source) for term in request.terms)
    return num_characters <= _MAX_INLINE_CHARACTERS


def _detected(translation: Translation, part: Part) -> Translation:
    return replace(translation, detected_language_code=part.request.source_language_code)


def _undetermined(text: str) -> Translation:
    """The answer to a text without letters, which never reaches a model."""
    unchanged = Hypothesis(text, score=None, num_tokens=0)
    return Translation(text, (unchanged,), FinishReason.STOP, 0, detected_language_code=UNDETERMINED)
