"""The one path from text to text: resolve, check, tokenize, decode, detokenize, in order; used by every API."""

import asyncio
import secrets
import time
from collections.abc import Callable, Collection, Mapping
from collections.abc import Sequence as Sequence_
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TypeVar

from service.bundle.manifest import LanguagePair
from service.engine.search.sampling import stream_seed
from service.engine.sequence import Sequence, SequenceProgress, SequenceUpdate
from service.errors import DeadlineExceeded, InvalidRequest, TooLong, TooMany, Unavailable
from service.metrics import Metrics
from service.models.catalogue import Catalogue
from service.models.loaded_model import LoadedModel
from service.pending import PendingCalls
from service.source_languages import Part, parts_by_language
from service.text.detection import UNDETERMINED, LanguageDetector
from service.translation import (
    MAX_TEXTS,
    DecodingOptions,
    DetectedLanguage,
    FinishReason,
    Hypothesis,
    Translation,
    TranslationRequest,
)
from service.translation_cache import CacheKey, TranslationCache

# Up to here the event loop tokenizes by itself: about half a millisecond, less than a trip to another thread costs
# under load. Measured with 8k pieces: 15 microseconds for 280 characters.
_MAX_INLINE_CHARACTERS = 8_192
_MAX_INLINE_TOKENS = 4_096

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class TranslationResult:
    """The answer to one call: the model and version that were used and one translation per text, in order.

    Where detected languages led to several models, it is the first text's.
    """

    model: str
    model_version: str
    translations: tuple[Translation, ...]


class Translator:
    """Translates with the models of a catalogue. All methods belong to the event loop's thread."""

    def __init__(self, metrics: Metrics, cache: TranslationCache) -> None:
        self._metrics = metrics
        self._cache = cache
        self._catalogue = Catalogue()
        self._is_loading = True
        self._pending = PendingCalls()
        self._executor = ThreadPoolExecutor(max_workers=2, thread_name_prefix="tokenizer")

    def serve(self, catalogue: Catalogue) -> None:
        """From now on translate with these models."""
        self._catalogue = catalogue
        self._is_loading = False

    def close(self) -> None:
        """Give the tokenizer's threads back."""
        self._executor.shutdown(wait=False, cancel_futures=True)

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

    def deliver(self, updates: Sequence_[SequenceUpdate], progress: Sequence_[SequenceProgress] = ()) -> None:
        """Take in the terminal updates of one turn of an engine, and the progress of sequences that go on."""
        self._pending.deliver(updates, progress)

    async def translate(self, request: TranslationRequest) -> TranslationResult:
        """Translate every text of the request, or fail as a whole.

        Cancelling this coroutine takes the request's sequences out of the engine.

        Raises:
            ServiceError: see `service.errors`; what can't be taken is refused before anything is decoded.
        """
        self.models()
        _check_count(request.texts)
        if not request.source_language_code:
            return await self._translate_detected(request)
        model, pair = self._catalogue.resolve(
            request.model, request.model_version, request.source_language_code, request.target_language_code
        )
        # Its engine runs until this is over, though another version be served by then.
        with model.leases.hold(), model.statistics.call(len(request.texts)):
            return await self._translate(request, model, pair)

    async def detect(self, texts: Collection[str]) -> list[tuple[DetectedLanguage, ...]]:
        """The languages that each text may be in, best first: `LanguageDetector.detect` among all that it knows.

        Raises:
            ServiceError: the server is loading, or there are no or too many texts.
        """
        self.models()
        _check_count(texts)
        return await self._detect(texts, LanguageDetector())

    async def _detect(self, texts: Collection[str], detector: LanguageDetector) -> list[tuple[DetectedLanguage, ...]]:
        return await self._run(lambda: [detector.detect(text) for text in texts], inline=False)

    async def _translate_detected(self, request: TranslationRequest) -> TranslationResult:
        """Translate each text from the language that it is in, of those from which the target can be reached."""
        asked = (request.model, request.model_version)
        sources = self._catalogue.sources(*asked, request.target_language_code)
        detected = await self._detect(request.texts, LanguageDetector(sources))
        parts = parts_by_language(request, [languages[0].language_code for languages in detected])
        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(self._translate_part(part)) for part in parts]
        except BaseExceptionGroup as errors:  # the first ended the others
            raise errors.exceptions[0] from None
        results = [task.result() for task in tasks]
        translations = [replace(_unchanged(text), detected_language_code=UNDETERMINED) for text in request.texts]
        for part, result in zip(parts, results, strict=True):
            for index, translation in zip(part.indices, result.translations, strict=True):
                translations[index] = replace(translation, detected_language_code=part.request.source_language_code)
        if results:
            return replace(results[0], translations=tuple(translations))
        model, _ = self._catalogue.resolve(*asked, sources[0], request.target_language_code)
        return TranslationResult(model.name, model.version, tuple(translations))

    async def _translate_part(self, part: Part) -> TranslationResult:
        try:
            return await self.translate(part.request)
        except InvalidRequest as error:
            part.name_in_whole(error)
            raise

    async def _translate(
        self, request: TranslationRequest, model: LoadedModel, pair: LanguagePair
    ) -> TranslationResult:
        options = request.options.resolve(model.default_options)
        known = self._known(request, model, pair, options)
        unknown = [index for index, translation in enumerate(known) if translation is None]
        source_ids = await self._tokenize(request, model, pair, unknown)
        _check_deadline(request)
        sequences = {index: _sequences(request, ids, pair, options) for index, ids in source_ids.items() if ids}
        updates = iter(await self._decode(model, [sequence for group in sequences.values() for sequence in group]))
        grouped = [[next(updates) for _ in group] for group in sequences.values()]
        decoded = dict(zip(sequences, await self._detokenize(model, grouped), strict=True))
        self._keep(request, model, pair, options, decoded)
        translations = tuple(
            translation or decoded.get(index) or _unchanged(request.texts[index])
            for index, translation in enumerate(known)
        )
        self._metrics.model(model.name).texts_translated(
            text for text, translation in zip(request.texts, translations, strict=True) if translation.num_source_tokens
        )
        return TranslationResult(model.name, model.version, translations)

    def _known(
        self, request: TranslationRequest, model: LoadedModel, pair: LanguagePair, options: DecodingOptions
    ) -> list[Translation | None]:
        """Per text, the translation that is kept from an earlier call."""
        if not self._cache.max_bytes or _is_chance(options):
            return [None] * len(request.texts)
        known = [self._cache.get(CacheKey(model.fingerprint, pair, options, text)) for text in request.texts]
        looked_up = [found is not None for found, text in zip(known, request.texts, strict=True) if text.strip()]
        self._metrics.model(model.name).looked_up(num_hits=sum(looked_up), num_misses=len(looked_up) - sum(looked_up))
        return known

    def _keep(
        self,
        request: TranslationRequest,
        model: LoadedModel,
        pair: LanguagePair,
        options: DecodingOptions,
        decoded: Mapping[int, Translation],
    ) -> None:
        if not self._cache.max_bytes or _is_chance(options):
            return
        for index, translation in decoded.items():
            self._cache.put(CacheKey(model.fingerprint, pair, options, request.texts[index]), translation)

    async def _tokenize(
        self, request: TranslationRequest, model: LoadedModel, pair: LanguagePair, indices: list[int]
    ) -> dict[int, tuple[int, ...]]:
        """Source ids of some of the texts; empty for a text in which there is nothing to translate."""
        limit = model.manifest.limits.max_source_tokens

        def tokenize() -> dict[int, tuple[int, ...]]:
            rows = {}
            for index in indices:
                text = request.texts[index]
                pieces = [] if not text or text.isspace() else model.tokenizer.encode(text)
                ids = model.manifest.source_ids(pieces, pair) if pieces else ()
                if len(ids) > limit:
                    field = f"texts[{index}]"
                    raise TooLong(
                        f"{field} has {len(ids)} tokens; {model.name} takes up to {limit}. Split it into sentences.",
                        field,
                    )
                rows[index] = ids
            return rows

        started = time.monotonic()
        num_characters = sum(len(request.texts[index]) for index in indices)
        rows = await self._run(tokenize, num_characters <= _MAX_INLINE_CHARACTERS)
        seconds = time.monotonic() - started
        self._metrics.model(model.name).tokenized(seconds)
        model.statistics.tokenize.add(seconds)
        return rows

    async def _decode(self, model: LoadedModel, sequences: list[Sequence]) -> list[SequenceUpdate]:
        if not sequences:
            return []
        call = self._pending.open(sequences)
        try:
            model.engine.submit(sequences)
            try:
                updates = await call.wait()
            except BaseException:
                model.engine.abort(call.unfinished())
                raise
        finally:
            self._pending.close(call)
        model.statistics.decoded(updates)
        return updates

    async def _detokenize(self, model: LoadedModel, grouped: list[list[SequenceUpdate]]) -> list[Translation]:
        """One translation per group of updates: those of one text."""

        def detokenize() -> list[Translation]:
            return [_translation(model, updates) for updates in grouped]

        num_tokens = sum(
            len(hypothesis.token_ids) for updates in grouped for update in updates for hypothesis in update.hypotheses
        )
        started = time.monotonic()
        translations = await self._run(detokenize, num_tokens <= _MAX_INLINE_TOKENS)
        seconds = time.monotonic() - started
        self._metrics.model(model.name).detokenized(seconds)
        model.statistics.detokenize.add(seconds)
        return translations

    async def _run(self, work: Callable[[], T], inline: bool) -> T:
        if inline:
            return work()
        return await asyncio.get_running_loop().run_in_executor(self._executor, work)


def _sequences(
    request: TranslationRequest, source_ids: tuple[int, ...], pair: LanguagePair, options: DecodingOptions
) -> list[Sequence]:
    """The sequences of one text: one, or as many as samples were asked for, each with a seed of its own."""
    if options.is_sampled:
        seed = secrets.randbits(64) if options.seed is None else options.seed
        seeds: list[int | None] = [stream_seed(seed, sample) for sample in range(options.num_hypotheses)]
        options = replace(options, num_hypotheses=1)
    else:
        seeds = [None]
    now = time.monotonic()
    return [
        Sequence(
            request_id=request.request_id,
            source_ids=source_ids,
            options=replace(options, seed=seed),
            arrived_seconds=now,
            target_prefix_ids=pair.target_prefix_ids,
            deadline_seconds=request.deadline_seconds,
            priority=request.priority,
        )
        for seed in seeds
    ]


def _is_chance(options: DecodingOptions) -> bool:
    """Whether the same call may be answered otherwise the next time."""
    return options.is_sampled and options.seed is None


def _translation(model: LoadedModel, updates: list[SequenceUpdate]) -> Translation:
    hypotheses = tuple(
        Hypothesis(
            text=model.tokenizer.decode(hypothesis.token_ids),
            score=hypothesis.score if update.sequence.options.return_scores else None,
            num_tokens=len(hypothesis.token_ids),
        )
        for update in updates
        for hypothesis in update.hypotheses
    )
    return Translation(
        text=hypotheses[0].text,
        hypotheses=hypotheses,
        finish_reason=updates[0].hypotheses[0].finish_reason,
        num_source_tokens=len(updates[0].sequence.source_ids),
    )


def _unchanged(text: str) -> Translation:
    """The answer to a text that never reaches the model."""
    return Translation(text, (Hypothesis(text, score=None, num_tokens=0),), FinishReason.STOP, num_source_tokens=0)


def _check_count(texts: Collection[str]) -> None:
    if not texts:
        raise InvalidRequest("texts is empty; give 1 to 1024 texts.", "texts")
    if len(texts) > MAX_TEXTS:
        raise TooMany(f"texts has {len(texts)} entries; allowed is {MAX_TEXTS} per call. Send several calls.", "texts")


def _check_deadline(request: TranslationRequest) -> None:
    if request.deadline_seconds is not None and request.deadline_seconds <= time.monotonic():
        raise DeadlineExceeded("the deadline passed before decoding began.")
