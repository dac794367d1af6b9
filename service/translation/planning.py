"""Planning of a request's texts: the segments that the model translates."""

import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

from service.bundle.manifest import Manifest
from service.bundle.manifest_parts import LanguagePair
from service.domain.checkpoint import checkpoint, paced
from service.domain.errors import InvalidRequest, Path, Public, TooLong, TooMany
from service.domain.translation import MimeType, SplitSentences, TranslationRequest
from service.text.exact import may_have_exact
from service.text.long_segments import chunks, split_long
from service.text.markup import Block, HtmlDocument, blocks
from service.text.normalization import visible
from service.text.numbers import DIGITS, Languages
from service.text.placeholders import OwnPlaceholders
from service.text.protected import (
    Protected,
    beside,
    bounds,
    find_exact,
    find_protected,
    has_letters_outside,
    spans_within,
    verbatim,
    with_unknown,
)
from service.text.protection import ProtectedText, protect
from service.text.sentences import AS_SPACES, is_only_words, is_simple_sentence, line_ends, pieces
from service.text.terms import TermIndex
from service.text.tokenizers import Tokenizer
from service.text.unknown import UnknownCharacters
from service.translation.checks import AnswerSize
from service.translation.number_correction import languages_of
from service.translation.segments import PlannedPassage, PlannedSegment, PlannedText

# A longer text, by as many as the model takes tokens, is divided before it is tokenized.
_CHARACTERS_PER_TOKEN = 16


class Planner:
    """Plans texts for one request, model and language pair, within the call's limits."""

    def __init__(
        self,
        request: TranslationRequest,
        manifest: Manifest,
        pair: LanguagePair,
        tokenizer: Tokenizer,
        max_segments: int,
        size: AnswerSize,
        terms: Sequence[TermIndex] = (),
        unknown: UnknownCharacters | None = None,
        documents: Sequence[HtmlDocument] = (),
        kept: Sequence[Sequence[Protected]] = (),
        *,
        checks_numbers: bool = False,
    ) -> None:
        """Allow at most `max_segments` in all texts; `size` counts the part of the answer that is already known.

        `terms` are those of the request and of its glossary; the first index that has a term wins. `unknown` finds
        characters unknown to the tokenizer; share one between planners. `documents` are the texts, if parsed already;
        `kept` is what must stay in each plain text. With `checks_numbers`, identifiers are protected and segments with
        numbers marked.
        """
        self._request = request
        self._manifest = manifest
        self._pair = pair
        self._tokenizer = tokenizer
        self._terms = terms
        self._max_segments = max_segments
        self._num_segments = 0
        self._size = size
        self._max_read_characters = _CHARACTERS_PER_TOKEN * manifest.limits.max_source_tokens
        self._documents = documents
        self._kept = kept
        self._checks_numbers = checks_numbers
        self._unknown = unknown or UnknownCharacters(tokenizer)
        self._own = OwnPlaceholders(request.placeholders) if request.placeholders else None
        if terms and not manifest.is_prose:
            raise InvalidRequest(
                "{path} can't be used with {model}, whose texts are not prose",
                Path("glossary" if request.glossary else "terms"),
                model=Public(manifest.name),
                advice="leave it out",
            )

    def plan(self, index: int) -> PlannedText:
        """Plan the request's text of that index. If it fails or is interrupted, nothing of that text is counted."""
        checkpoint()
        num_characters, num_segments = self._size.num_characters, self._num_segments
        try:
            return self._planned(index)
        except BaseException:
            self._size.num_characters, self._num_segments = num_characters, num_segments
            raise

    def _planned(self, index: int) -> PlannedText:
        request = self._request
        text = request.texts[index]
        if request.mime_type is MimeType.HTML:
            # Block by block, to stop as soon as a limit is reached.
            found = self._documents[index].blocks if self._documents else blocks(text)
            read = [(block, self._block(block, index)) for block in found]
            html = HtmlDocument(tuple(block for block, _ in read), text)
            return PlannedText(text, tuple(passage for _, passage in read), html)
        self._size.add(len(text))  # first: a text too long for an answer is not read
        kept = self._kept[index] if self._kept else ()
        is_prose = self._manifest.is_prose
        segment = None if kept or not is_prose else self._simple(text)
        if segment is not None:
            return PlannedText(text, (PlannedPassage(text, (self._count(segment),)),))
        if is_prose or kept:
            mode = request.split_sentences
            if mode is SplitSentences.OFF:
                kept = beside(kept, verbatim(text, line_ends(text)))
            passage = self._passage(text, kept, mode, index, is_aligned=request.return_alignments)
        else:
            passage = PlannedPassage(text, (self._count(self._as_it_is(text, index)),))
        if request.target_prefixes and request.target_prefixes[index]:
            passage = self._begun(passage, index)
        return PlannedText(text, (passage,))

    def protecting(self, segment: PlannedSegment, spans: Sequence[Protected]) -> PlannedSegment | None:
        """Return a planned segment with other protected spans; `None` if the model can't read it in that way."""
        if not has_letters_outside(segment.text, spans):
            return None
        changed = self._segment(segment.text, segment.start, spans)
        is_readable = 0 < len(changed.source_ids) <= self._manifest.limits.max_source_tokens
        if not is_readable or (changed.protected is None and segment.protected is not None):
            return None
        return changed._replace(
            output_prefix_ids=segment.output_prefix_ids,
            has_numbers=segment.has_numbers,
            is_aligned=segment.is_aligned,
        )

    def _as_it_is(self, text: str, index: int) -> PlannedSegment:
        """Return the only segment of a text that is no prose, which is neither cut nor searched."""
        is_read = len(text) <= self._max_read_characters
        source_ids = self._source_ids(self._tokenizer.encode(text)) if is_read else ()
        if not is_read or len(source_ids) > self._manifest.limits.max_source_tokens:
            size = f"{len(source_ids)} tokens" if is_read else f"{len(text)} characters"
            raise self._too_long(index, size, advice="shorten it")
        return PlannedSegment(0, text, text, source_ids, is_aligned=self._request.return_alignments)

    def _simple(self, text: str) -> PlannedSegment | None:
        """Return the only segment of a simple sentence; `None` if a text must be cut, or searched for what to keep."""
        request = self._request
        is_general = self._terms or request.target_prefixes or request.placeholders
        if len(text) > self._max_read_characters or is_general:
            return None
        if not (has_only_words := is_only_words(text)):
            if not is_simple_sentence(text):
                return None
            if (languages := self._languages_of(text)) is not None and find_exact(text, languages):
                return None
        ids = self._tokenizer.encode(text)
        if self._unknown.are_in(text, ids):
            return None
        source_ids = self._source_ids(ids)
        if len(source_ids) > self._manifest.limits.max_source_tokens:
            return None
        has_numbers, is_aligned = not has_only_words and self._has_numbers(text), request.return_alignments
        return PlannedSegment(0, text, text, source_ids, has_numbers=has_numbers, is_aligned=is_aligned)

    def _block(self, block: Block, index: int) -> PlannedPassage:
        """Return the passage of an HTML block, in which a line end counts as a space."""
        split = self._request.split_sentences
        mode = SplitSentences.OFF if split is SplitSentences.OFF else SplitSentences.NO_NEWLINES
        self._size.add(len(block.text))
        is_aligned = block.needs_alignment or self._request.return_alignments
        return self._passage(block.text, verbatim(block.text, block.protected), mode, index, is_aligned=is_aligned)

    def _passage(
        self, written: str, kept: Sequence[Protected], mode: SplitSentences, index: int, *, is_aligned: bool
    ) -> PlannedPassage:
        """Return the passage of a text as it was written, of which `kept` stays."""
        text, places, offsets = visible(written, bounds(kept), joins_lines=mode is SplitSentences.NO_NEWLINES)
        if offsets is not None:
            kept = [replace(span, start=start, end=end) for span, (start, end) in zip(kept, places, strict=True)]
        spans = find_protected(text, *self._terms, kept=kept, own=self._own, languages=self._languages_of(text))
        whole, apart = bounds(spans), bounds([span for span in paced(spans) if span.is_apart])
        segments: list[PlannedSegment] = []
        start = 0
        self._size.add(sum(len(span.target) - (span.end - span.start) for span in paced(spans)))
        for piece in paced(pieces(text, self._pair.source_language_code, mode, whole, apart), every=8):
            end = start + len(piece.text)
            inside = spans_within(spans, start, end)
            if piece.is_segment:
                segments += map(self._count, self._fitting(piece.text, start, inside, index))
            elif not all(span.target.isspace() for span in inside):  # without letters beside them, such as numbers
                segments.append(_unread(piece.text, start, inside))
            start = end
        if is_aligned:
            segments = [segment._replace(is_aligned=True) for segment in paced(segments)]
        return PlannedPassage(text, tuple(segments), offsets=offsets) if segments else PlannedPassage(written, ())

    def _count(self, segment: PlannedSegment) -> PlannedSegment:
        self._num_segments += bool(segment.source_ids)
        if self._num_segments > self._max_segments:
            raise TooMany(
                "{path} have more than {most} segments, such as sentences, counting each sample of one",
                Path("texts"),
                most=self._max_segments,
                allowed=f"{self._max_segments} per call",
                advice="send less text per call",
            )
        return segment

    def _fitting(self, text: str, start: int, spans: Sequence[Protected], index: int) -> Iterator[PlannedSegment]:
        """Yield a segment, or the parts it is split into if it has too many tokens for the model."""
        if spans and not has_letters_outside(text, spans):
            yield _unread(text, start, spans)
            return
        if self._num_read(text, spans) > self._max_read_characters:
            if self._request.is_strict:
                raise self._too_long(index, f"{len(text)} characters")
            yield from self._parts(chunks(text, self._max_read_characters, bounds(spans)), start, spans, index)
            return
        segment = self._segment(text, start, spans)
        limit = self._manifest.limits.max_source_tokens
        if len(segment.source_ids) <= limit:
            yield segment
            return
        if self._request.is_strict:
            raise self._too_long(index, f"{len(segment.source_ids)} tokens")
        spans = segment.spans
        try:
            parts = self._cut(segment)
        except ValueError as error:
            raise self._too_long(index, f"{len(segment.source_ids)} tokens") from error
        yield from self._parts(parts, start, spans, index)

    def _parts(
        self, parts: Iterable[str], start: int, spans: Sequence[Protected], index: int
    ) -> Iterator[PlannedSegment]:
        """Yield the segments of a text that begins at `start` and was split into these parts."""
        offset = 0
        for piece in parts:
            checkpoint()
            stripped = piece.strip()
            begin = offset + len(piece) - len(piece.lstrip())
            if stripped:
                yield from self._fitting(
                    stripped, start + begin, spans_within(spans, begin, begin + len(stripped)), index
                )
            offset += len(piece)

    def _num_read(self, text: str, spans: Sequence[Protected]) -> int:
        """Return about how many characters of a text the tokenizer reads, without the symbols in place of spans."""
        has_symbols = len(spans) <= len(self._manifest.tokenizer.reserved_symbols)
        return len(text) - has_symbols * sum(span.end - span.start for span in spans)

    def _cut(self, segment: PlannedSegment) -> list[str]:
        text, limit = segment.text, self._manifest.limits.max_source_tokens
        # Symbols may take more tokens than the text they replace; then the text's own count is too low.
        num_tokens = self._num_tokens(text)
        goal = limit if num_tokens > limit else num_tokens * limit // len(segment.source_ids)
        # A protected span that is itself too long becomes its own part, as it must not be split.
        too_long = [
            span
            for span in segment.spans
            if span.end - span.start > goal // 4 and self._num_tokens(text[span.start : span.end]) > goal
        ]
        if too_long:
            borders = [0, *(border for span in too_long for border in (span.start, span.end)), len(text)]
            return [text[start:end] for start, end in pairwise(borders)]
        return split_long(text, self._num_tokens, goal, bounds(segment.spans))

    def _segment(self, text: str, start: int, spans: Sequence[Protected]) -> PlannedSegment:
        protected, fed = self._fed(text, spans)
        pieces = self._tokenizer.encode(fed)
        if self._unknown.are_in(fed, pieces):
            fed = self._unknown.plain(fed)
            found = self._unknown.find(fed)
            if protected is not None:
                found = [protected.source.span(*run) for run in found]
            if (more := with_unknown(spans, found, text)) != spans:
                spans = more
                if not has_letters_outside(text, spans):
                    return _unread(text, start, spans)
                protected, fed = self._fed(text, spans)
                fed = self._unknown.plain(fed)
            pieces = self._tokenizer.encode(fed)
        source_ids, has_numbers = self._source_ids(pieces), self._has_numbers(fed)
        return PlannedSegment(start, text, fed, source_ids, tuple(spans), protected, has_numbers=has_numbers)

    def _fed(self, text: str, spans: Sequence[Protected]) -> tuple[ProtectedText | None, str]:
        """Return the text with symbols, if there are enough of them, and what the model reads."""
        protected = protect(text, spans, self._manifest.tokenizer.reserved_symbols) if spans else None
        return protected, (text if protected is None else protected.text).translate(AS_SPACES)

    def _languages_of(self, text: str) -> Languages | None:
        """Return the pair's languages if a text may carry what must be exact."""
        return languages_of(self._pair) if self._checks_numbers and may_have_exact(text) else None

    def _has_numbers(self, fed: str) -> bool:
        return self._checks_numbers and DIGITS.search(fed) is not None

    def _begun(self, passage: PlannedPassage, index: int) -> PlannedPassage:
        ids = target_prefix_ids(self._request.target_prefixes[index], index, self._manifest.name, self._tokenizer)
        for number, segment in enumerate(passage.segments):
            if segment.source_ids:
                begun = segment._replace(output_prefix_ids=ids)
                return passage._replace(segments=(*passage.segments[:number], begun, *passage.segments[number + 1 :]))
        return passage

    def _source_ids(self, pieces: Sequence[int]) -> tuple[int, ...]:
        return self._manifest.tokenizer.source_ids(pieces, self._pair) if pieces else ()

    def _num_tokens(self, text: str) -> int:
        return len(self._source_ids(self._tokenizer.encode(text)))

    def _too_long(self, index: int, size: str, advice: str = "shorten it, or leave `strict` out") -> TooLong:
        return TooLong(
            "{path} has a segment of {size}; {model} takes up to {limit} tokens",
            Path("texts", index),
            size=Public(size),
            model=Public(self._manifest.name),
            limit=self._manifest.limits.max_source_tokens,
            advice=advice,
        )


def target_prefix_ids(prefix: str, index: int, model: str, tokenizer: Tokenizer) -> tuple[int, ...]:
    """Return the token ids of the prefix of that index; reject one with characters that the model can't write."""
    ids = tuple(tokenizer.encode_target(prefix))
    written = tokenizer.decode(ids)
    if _normalized(written) != _normalized(prefix):
        raise InvalidRequest(
            "{path} has characters that {model} can't write: of {prefix} only {written} is left",
            Path("target_prefixes", index),
            model=Public(model),
            prefix=prefix,
            written=written,
            advice="leave them out",
        )
    return ids


def _unread(text: str, start: int, spans: Sequence[Protected]) -> PlannedSegment:
    return PlannedSegment(start, text, text, (), tuple(spans))


def _normalized(text: str) -> str:
    """Return a text without the differences that a tokenizer may introduce: white space and character forms."""
    return " ".join(unicodedata.normalize("NFKC", text).split())
