"""One request for one model and language pair, from its texts to its translations. Nothing here blocks."""

import secrets
import time
from collections.abc import Container, Iterator, Mapping
from collections.abc import Sequence as Sequence_
from dataclasses import replace

from service.bundle.manifest_parts import LanguagePair
from service.domain.call import current_call
from service.domain.options import DecodingOptions
from service.domain.translation import CallLimits, Translation, TranslationRequest
from service.engine.sequence import Sequence, stream_seed
from service.models.loaded_model import LoadedModel
from service.text.markup import HtmlDocument
from service.text.protected import Protected
from service.text.terms import TermIndex
from service.translation.assembling import Candidates, assemble, joined
from service.translation.cache import CacheKey, Decoded
from service.translation.checks import AnswerSize
from service.translation.planning import Planner
from service.translation.restoring import Restorer
from service.translation.segments import PlannedSegment, PlannedText
from service.translation.streaming import TextStream

_SMALL_CHARACTERS = 1_024
_TERMS_FACTOR = 16  # how much longer a character takes if a term matches, or nearly matches, at each


class TranslationCall:
    """A request in progress.

    Its computations may run on any thread, one at a time: `plan` first. Planning and assembling a call that `is_small`
    takes less time than handing it to another thread.
    """

    def __init__(
        self,
        request: TranslationRequest,
        model: LoadedModel,
        pair: LanguagePair,
        terms: Sequence_[TermIndex],
        limits: CallLimits,
        documents: Sequence_[HtmlDocument] = (),
        kept: Sequence_[Sequence_[Protected]] = (),
        *,
        pivot_language_code: str = "",
        is_continued: bool = False,
    ) -> None:
        """Resolve the options.

        `terms` are the glossary's; `documents` and `kept` as for `Planner`. With a `pivot_language_code` it is the
        first leg of two; if it `is_continued`, a further part of an accepted call.
        """
        self.request = request
        self.num_characters = sum(map(len, request.texts))
        self.is_small = _is_small(request, self.num_characters)
        self.model = model
        self.is_continued = is_continued
        self.reserved_seconds = 0.0  # that its caller needs after it
        self.options = options = model.options(request.options)
        self._is_sampled = options.is_sampled
        self._unsampled = (options if options.seed is None else replace(options, seed=None),)
        self.texts: list[PlannedText] = []
        self.segments: dict[int, PlannedSegment] = {}  # by number, from 0
        self.places: list[tuple[int, int]] = []  # for each segment: its text's index, and its number in that text
        self.record = current_call()
        self.pair = pair
        self._terms = terms
        self._planner: Planner | None = None
        self._starts: list[int] = []  # number of each text's first segment, and that of all segments
        self._limits = limits
        self._documents = documents
        self._pivot_language_code = pivot_language_code
        self._kept = kept
        self._restored_size = AnswerSize(limits.max_answer_characters)
        self._assembled_size = AnswerSize(limits.max_answer_characters)
        self._tokenizer, self._unknown = model.tokenizer_of(pair)
        self._preserves_formatting = request.preserve_formatting and model.manifest.is_prose
        self._restorer = Restorer(
            self._tokenizer,
            model.aligner,
            pair,
            preserves_formatting=self._preserves_formatting,
            returns_scores=self.options.return_scores,
            is_prose=model.manifest.is_prose,
        )

    @property
    def is_chance(self) -> bool:
        return self._is_sampled and self.options.seed is None

    @property
    def planner(self) -> Planner:
        assert self._planner is not None, "the call has been planned"
        return self._planner

    def plan(self) -> None:
        """Cut the texts into segments. If it was interrupted, call it again: it continues with the text it was at."""
        request = self.request
        if self._planner is None:
            self._planner = self._new_planner()
        for index in range(len(self.texts), len(request.texts)):
            self.texts.append(self._planner.plan(index))
        for index, text in enumerate(self.texts):
            self._starts.append(len(self.segments))
            for passage in text.passages:
                self.segments.update(enumerate(passage.segments, len(self.segments)))
            self.places += [(index, number) for number in range(len(self.segments) - self._starts[index])]
        self._starts.append(len(self.segments))

    def _new_planner(self) -> Planner:
        request, model, limits = self.request, self.model, self._limits
        terms = [TermIndex(request.terms), *self._terms] if request.terms else self._terms
        num_hypotheses = self.options.num_hypotheses
        max_segments = limits.max_segments // (num_hypotheses if self._is_sampled else 1)
        size = AnswerSize(limits.max_answer_characters, num_hypotheses)
        return Planner(
            request,
            model.manifest,
            self.pair,
            self._tokenizer,
            max_segments,
            size,
            terms,
            self._unknown,
            self._documents,
            self._kept,
            checks_numbers=self.options.check_numbers,
        )

    def key(self, segment: PlannedSegment) -> CacheKey:
        return CacheKey(self.model.fingerprint, self.pair, self.options, segment.fed, segment.output_prefix_ids)

    def sequences(
        self, segments: Mapping[int, PlannedSegment], known: Container[int], *, wants_progress: bool = False
    ) -> dict[int, list[Sequence]]:
        """Return the sequences of each segment that is not `known`: none, one, or one per sample, with its own seed."""
        request, model_prefix = self.request, self.pair.target_prefix_ids
        arrived_seconds = time.monotonic()
        groups: dict[int, list[Sequence]] = {}
        for number, segment in segments.items():
            if number in known:
                continue
            group: list[Sequence] = []
            groups[number] = group
            if not segment.source_ids:
                continue
            attends = self.wants_attention(segment)
            for options in self._options_of_samples() if self._is_sampled else self._unsampled:
                sequence = Sequence(
                    segment.source_ids,
                    options,
                    arrived_seconds,
                    target_prefix_ids=model_prefix,
                    deadline_seconds=request.deadline_seconds,
                    reserved_seconds=self.reserved_seconds,
                    is_continued=self.is_continued,
                    priority=request.priority,
                    output_prefix_ids=segment.output_prefix_ids,
                    wants_progress=wants_progress and not group,
                    wants_attention=attends,
                    call=self.record,
                )
                group.append(sequence)
        return groups

    def wants_attention(self, segment: PlannedSegment) -> bool:
        """Return whether a segment's attention has to be recorded, as it may be needed to restore it."""
        may_need = segment.is_aligned or bool(segment.spans) or segment.has_numbers
        return may_need and self.model.manifest.records_attention

    def restore(
        self, segments: Mapping[int, PlannedSegment], decoded: Mapping[int, Decoded], *, is_mended: bool = False
    ) -> dict[int, Candidates]:
        """Return the candidates of decoded segments, by number; mended ones count in the answer instead of others."""
        size = AnswerSize(self._limits.max_answer_characters) if is_mended else self._restored_size
        return self._restorer.restore(segments, decoded, size)

    def translation(self, index: int, candidates: Mapping[int, Candidates]) -> Translation:
        chosen = [candidates[number] for number in range(self._starts[index], self._starts[index + 1])]
        with_alignment = self.request.return_alignments
        translation = assemble(self.texts[index], chosen, self._assembled_size, with_alignment=with_alignment)
        if not self._pivot_language_code:
            return translation
        return translation._replace(pivot_language_code=self._pivot_language_code)

    def translations(self, candidates: Mapping[int, Candidates]) -> tuple[Translation, ...]:
        return tuple([self.translation(index, candidates) for index in range(len(self.texts))])

    def joined(self, index: int, candidates: Mapping[int, Candidates]) -> Candidates:
        chosen = [candidates[number] for number in range(self._starts[index], self._starts[index + 1])]
        return joined(self.texts[index], chosen)

    def begins(self, number: int) -> bool:
        """Return whether a segment is the first of its text that the model reads."""
        own = range(self._starts[self.places[number][0]], number + 1)
        return next((each for each in own if self.segments[each].source_ids), None) == number

    def streams(self) -> list[TextStream]:
        formats = self._preserves_formatting
        return [TextStream(text, self._tokenizer, preserves_formatting=formats) for text in self.texts]

    def _options_of_samples(self) -> Iterator[DecodingOptions]:
        options = self.options
        seed = secrets.randbits(64) if options.seed is None else options.seed
        for sample in range(options.num_hypotheses):
            yield replace(options, num_hypotheses=1, seed=stream_seed(seed, sample))


def _is_small(request: TranslationRequest, num_characters: int) -> bool:
    if request.terms or request.glossary:
        num_characters = num_characters * _TERMS_FACTOR + sum(len(term.source) for term in request.terms)
    return num_characters <= _SMALL_CHARACTERS
