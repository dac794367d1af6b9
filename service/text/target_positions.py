"""Where in a translation a protected part's target belongs that the model left out."""

from collections.abc import Iterable, Sequence

from service.domain.translation import AlignedSpan
from service.text.spans import Span, inside
from service.text.words import is_word_boundary

_FINAL = ".!?…。！？।॥؟:;,，：；\"'”’»)]} "


class PositionGuesses:
    """Estimate the positions in a translation of targets that it lacks."""

    def __init__(self, text: str, translated: str, alignment: Sequence[AlignedSpan], taken: Iterable[Span]) -> None:
        self._text = text
        self._translated = translated
        self._alignment = sorted(alignment, key=lambda part: (part.source_start, part.source_end, part.target_start))
        self._taken = sorted(span for span in taken if span.start < span.end)

    def aligned(self, source_start: int, source_end: int, *, is_exclusive: bool = False) -> Span | None:
        """Return the whole words aligned to a part of the source: the longest run of them that is free.

        If the part `is_exclusive`, words that are also aligned to another part are excluded.
        """
        parts = sorted(
            Span(part.target_start, part.target_end)
            for part in self._alignment
            if part.source_start < source_end and source_start < part.source_end and part.target_start < part.target_end
        )
        runs: list[Span] = []
        for part in parts:
            if runs and not self._translated[runs[-1].end : part.start].strip():
                runs[-1] = Span(runs[-1].start, max(runs[-1].end, part.end))
            else:
                runs.append(part)
        for run in sorted(runs, key=lambda run: (run.start - run.end, run.start)):
            start, end = run
            while not is_word_boundary(self._translated, start):
                start -= 1
            while not is_word_boundary(self._translated, end):
                end += 1
            is_free = not any(start < taken.end and taken.start < end for taken in self._taken)
            if is_exclusive and any(
                part.target_start < end
                and start < part.target_end
                and not source_start <= part.source_start <= part.source_end <= source_end
                for part in self._alignment
            ):
                continue
            if is_free and any(map(str.isalnum, self._translated[start:end])):
                self._taken = sorted([*self._taken, Span(start, end)])
                return Span(start, end)
        return None

    def place(self, source_start: int, source_end: int) -> Span:
        """Return an empty span between two words."""
        position = self._near(source_start, source_end)
        is_taken = inside(self._taken)
        length = len(self._translated)
        outward = (at for distance in range(length + 1) for at in (position - distance, position + distance))
        return next(
            Span(at, at) for at in outward if 0 <= at <= length and not is_taken(at) and self._is_between_words(at)
        )

    def _near(self, source_start: int, source_end: int) -> int:
        if not any(map(str.isalnum, self._text[:source_start])):
            return 0
        if not any(map(str.isalnum, self._text[source_end:])):
            return len(self._translated.rstrip(_FINAL))
        before = [part for part in self._alignment if part.source_start < source_end]
        if before:
            last = max(before, key=lambda part: (part.source_end, part.target_end))
            return last.target_start if last.source_end > source_start else last.target_end
        return round(len(self._translated) * source_start / len(self._text))

    def _is_between_words(self, position: int) -> bool:
        if not 0 < position < len(self._translated):
            return True
        before, after = self._translated[position - 1], self._translated[position]
        return before.isspace() or after.isspace() or is_word_boundary(self._translated, position)
