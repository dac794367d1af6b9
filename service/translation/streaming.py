"""Streaming of a text's translation from left to right, as its segments grow."""

from collections.abc import Sequence

from service.domain.translation import Translation
from service.text.incremental import IncrementalDecoder
from service.text.tokenizers import Tokenizer
from service.translation.assembling import Candidates
from service.translation.segments import PlannedSegment, PlannedText

# What is new of a segment, by its number: what is added to the text of a stream, or in the end its candidates.
SegmentNews = tuple[int, str | Candidates]


class TextStream:
    """One text of a stream.

    Its deltas, concatenated, are the text of the translation. Words of the current segment are returned as they arrive,
    later segments in turn; HTML as a whole, as tags depend on it.
    """

    def __init__(self, planned: PlannedText, tokenizer: Tokenizer, *, preserves_formatting: bool) -> None:
        self._planned = planned
        self._segments = () if planned.html is not None else tuple(planned.segments)
        self._tokenizer = tokenizer
        self._preserves_formatting = preserves_formatting
        self._settled: dict[int, str] = {}
        self._current = 0  # index of the current segment
        self._decoder = IncrementalDecoder(tokenizer)
        self._num_sent = 0
        self._num_sent_of_current = 0
        self._source_end = 0  # end of the source text covered so far

    def feed(self, number: int, token_ids: Sequence[int]) -> str:
        """Return the new text, given the final tokens so far of the text's segment of that number."""
        if not self._is_current(number) or not self._grows(self._segments[number]):
            return ""
        return self._extend(self._decoder.feed(token_ids))

    def grow(self, number: int, text: str) -> str:
        return self._extend(text[self._num_sent_of_current :]) if self._is_current(number) else ""

    def settle(self, number: int, text: str) -> str:
        """Return the new text, given the translation of the text's segment of that number."""
        self._settled[number] = text
        parts: list[str] = []
        while self._current < len(self._segments) and self._current in self._settled:
            segment = self._segments[self._current]
            if not self._num_sent_of_current:
                parts.append(self._before(segment))
            parts.append(self._settled.pop(self._current)[self._num_sent_of_current :])
            self._source_end = segment.end
            self._current += 1
            self._decoder, self._num_sent_of_current = IncrementalDecoder(self._tokenizer), 0
        return self._advance("".join(parts))

    def finish(self, translation: Translation) -> str:
        return translation.text[self._num_sent :]

    def _is_current(self, number: int) -> bool:
        return number == self._current and number < len(self._segments)

    def _extend(self, part: str) -> str:
        if not part:
            return ""
        before = self._before(self._segments[self._current]) if not self._num_sent_of_current else ""
        self._num_sent_of_current += len(part)
        return self._advance(before + part)

    def _grows(self, segment: PlannedSegment) -> bool:
        return not segment.spans and not segment.has_numbers and not self._preserves_formatting

    def _before(self, segment: PlannedSegment) -> str:
        return self._planned.passages[0].text[self._source_end : segment.start]

    def _advance(self, part: str) -> str:
        self._num_sent += len(part)
        return part
