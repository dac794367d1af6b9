"""Conversion of decoded hypotheses into text: symbols and terms in place, and alignments."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from service.bundle.manifest_parts import LanguagePair
from service.domain.checkpoint import paced
from service.domain.translation import AlignedSpan, Flag, Hypothesis, KeptPart
from service.engine.runtime.aligner import Aligner, Pair
from service.engine.sequence import DecodedHypothesis
from service.text.alignment import align_words
from service.text.formatting import preserve_formatting, with_no_breaks
from service.text.protected import bounds, has_letters_outside
from service.text.protection import replace_aligned
from service.text.spans import Span, TokenSpan, replaced
from service.text.tokenizers import Tokenizer
from service.translation.checks import AnswerSize
from service.translation.number_correction import correct, languages_of
from service.translation.segments import PlannedSegment

Alignment = tuple[AlignedSpan, ...]


class Restorer(NamedTuple):
    """Restores segments for one request and language pair.

    Where the decoder has not recorded its attention and there is no `aligner`, ambiguous positions are guessed.
    """

    tokenizer: Tokenizer
    aligner: Aligner | None
    pair: LanguagePair
    preserves_formatting: bool
    returns_scores: bool
    is_prose: bool = True

    def restore(
        self,
        segments: Mapping[int, PlannedSegment],
        decoded: Mapping[int, Sequence[DecodedHypothesis]],
        size: AnswerSize,
    ) -> dict[int, tuple[Hypothesis, ...]]:
        """Return the candidates of decoded segments by number, best first, counting them in `size`.

        A segment that the model did not read has one candidate, built from its spans' targets.
        """
        texts: dict[int, list[str]] = {}
        may_align: list[int] = []
        for number, hypotheses in paced(decoded.items(), every=16):
            texts[number] = [self.tokenizer.decode(each.token_ids) for each in hypotheses]
            if segments[number].is_aligned or segments[number].spans:
                may_align.append(number)
        alignments = self._align(may_align, segments, decoded, texts) if may_align else {}
        candidates: dict[int, tuple[Hypothesis, ...]] = {}
        for number, hypotheses in paced(decoded.items(), every=8):
            segment, restored = segments[number], list[Hypothesis]()
            for rank, hypothesis in enumerate(hypotheses):
                alignment = alignments.get((number, rank), ())
                restored.append(self._hypothesis(segment, hypothesis, texts[number][rank], alignment, size))
            candidates[number] = tuple(restored) or (_of_spans(segment, size),)
        return candidates

    def _align(
        self,
        numbers: Sequence[int],
        segments: Mapping[int, PlannedSegment],
        decoded: Mapping[int, Sequence[DecodedHypothesis]],
        texts: Mapping[int, Sequence[str]],
    ) -> dict[tuple[int, int], Alignment]:
        """Return the alignments of input with output by segment and rank, where they are wanted or needed."""
        wanted = [
            (number, rank)
            for number in paced(numbers)
            for rank, text in enumerate(texts[number])
            if segments[number].is_aligned or _is_unclear(segments[number], text)
        ]
        if self.aligner is None:
            attention = {at: recorded for at in wanted if (recorded := decoded[at[0]][at[1]].attention) is not None}
        else:
            prefix = self.pair.target_prefix_ids
            pairs: list[Pair] = [
                (segments[number].source_ids, (*prefix, *decoded[number][rank].token_ids)) for number, rank in wanted
            ]
            computed = self.aligner.align(pairs)
            attention = {at: each[len(prefix) :] for at, each in zip(wanted, computed, strict=True)}
        return {
            (number, rank): align_words(
                own,
                segments[number].fed,
                self._source_spans(segments[number]),
                texts[number][rank],
                self.tokenizer.target_spans(decoded[number][rank].token_ids),
            )
            for (number, rank), own in paced(attention.items(), every=4)
        }

    def _source_spans(self, segment: PlannedSegment) -> list[TokenSpan]:
        """Return a span for each of the segment's source ids; special ones have an empty span."""
        spans = [(0, 0)] * len(self.pair.source_prefix_ids) + self.tokenizer.source_spans(segment.fed)
        return spans + [(0, 0)] * (len(segment.source_ids) - len(spans))

    def _hypothesis(
        self, segment: PlannedSegment, decoded: DecodedHypothesis, text: str, alignment: Alignment, size: AnswerSize
    ) -> Hypothesis:
        flags: tuple[Flag, ...] = ()
        places: Sequence[Span] = ()
        if segment.spans:
            if segment.protected is not None:
                restored = segment.protected.restore(text, alignment)
            else:
                restored = replace_aligned(segment.text, segment.spans, text, alignment)
            text, flags, alignment = restored.text, restored.flags, restored.alignment(alignment)
            places = restored.places
        if segment.has_numbers:
            text, places, alignment, is_right = correct(segment, text, places, alignment, languages_of(self.pair))
            if not is_right and Flag.NUMBERS not in flags:
                flags = (*flags, Flag.NUMBERS)
        if self.preserves_formatting:
            text = preserve_formatting(segment.text, text, bounds(segment.spans), places)
            alignment = tuple(span for span in alignment if span.target_end <= len(text))
        if self.is_prose and ("\u00a0" in segment.text or "\u202f" in segment.text):
            text = with_no_breaks(segment.text, text)
        size.add(len(text), len(alignment))
        if segment.spans and not _are_as_often(segment, text) and Flag.PLACEHOLDER not in flags:
            flags = (Flag.PLACEHOLDER, *flags)
        if self.is_prose and _is_empty(text, places) and has_letters_outside(segment.text, segment.spans):
            flags = (*flags, Flag.EMPTY)
        score = decoded.score if self.returns_scores else None
        kept = _kept(segment, text, places) if places else ()
        return Hypothesis(text, score, len(decoded.token_ids), decoded.finish_reason, flags, alignment, kept)


def _of_spans(segment: PlannedSegment, size: AnswerSize) -> Hypothesis:
    """Build a candidate of the spans' targets and the text between them; there may be thousands of spans."""
    size.add(0, len(segment.spans))  # planning has already counted their targets
    parts = (((span.start, span.end), span.target) for span in paced(segment.spans))
    text, edits = replaced(segment.text, parts)
    links = (AlignedSpan(each.old_start, each.old_end, each.new_start, each.new_end) for each in paced(edits))
    kept = _kept(segment, text, [Span(each.new_start, each.new_end) for each in edits])
    return Hypothesis(text, alignment=tuple(links), kept=kept)


def _is_unclear(segment: PlannedSegment, text: str) -> bool:
    """Return whether a protected span does not occur exactly once in the output."""
    if segment.protected is not None:
        used = segment.protected.symbols[: len(segment.spans)]
        return any(text.count(symbol) != 1 for symbol in used)
    return any(text.count(span.target) != 1 for span in segment.spans)


def _kept(segment: PlannedSegment, text: str, places: Sequence[Span]) -> tuple[KeptPart, ...]:
    """Return the placeholders and terms in a translation, of which `places` are those of the segment's spans."""
    return tuple(
        sorted(
            KeptPart(*place, span.flag)
            for span, place in zip(segment.spans, places, strict=True)
            if span.flag in (Flag.PLACEHOLDER, Flag.TERM) and span.target and text[slice(*place)] == span.target
        )
    )


def _are_as_often(segment: PlannedSegment, text: str) -> bool:
    """Return whether a translation has each placeholder as often as the source."""
    targets = {span.target for span in segment.spans if span.flag is Flag.PLACEHOLDER}
    return all(text.count(target) == segment.text.count(target) for target in targets)


def _is_empty(text: str, places: Sequence[Span]) -> bool:
    """Return whether a translation has no letter or number outside protected spans."""
    if not places:
        return not any(map(str.isalnum, text))
    done = 0
    for start, end in (*sorted(places), (len(text), len(text))):
        if any(map(str.isalnum, text[done:start])):
            return False
        done = end
    return True
