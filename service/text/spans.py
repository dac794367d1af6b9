"""Parts of texts and tokens by position, and where they are after the text was edited."""

import itertools
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from service.domain.checkpoint import paced

TokenSpan = tuple[int, int]  # code points, from start to before end


class Span(NamedTuple):
    """A part of a text; code points, from `start` to before `end`."""

    start: int
    end: int


def inside(spans: Sequence[tuple[int, int]]) -> Callable[[int], bool]:
    """Return a function that tests whether a cut at a position splits one of the spans (sorted and disjoint)."""
    starts, ends = [start for start, _ in spans], [end for _, end in spans]

    def is_inside(position: int) -> bool:
        index = bisect_right(ends, position)
        return index < len(starts) and starts[index] < position

    return is_inside


@dataclass(frozen=True, slots=True)
class Edit:
    """A part of an old text that was replaced, and the position of its replacement in the new text."""

    old_start: int
    old_end: int
    new_start: int
    new_end: int


class Offsets:
    """Maps positions in a text to positions after parts of it were replaced."""

    def __init__(self, edits: Sequence[Edit]) -> None:
        """Take `edits`, which are sorted and disjoint; between them the texts are the same."""
        self.edits = tuple(edits)
        self._starts = [edit.old_start for edit in edits]

    def span(self, start: int, end: int) -> Span:
        """Return the position in the new text of a part of the old one; partly replaced edits count as a whole."""
        edit = self._before(bisect_right(self._starts, start))
        new_start = edit.new_start if start < edit.old_end else start + edit.new_end - edit.old_end
        edit = self._before(bisect_left(self._starts, end))
        new_end = edit.new_end if end <= edit.old_end else end + edit.new_end - edit.old_end
        return Span(new_start, max(new_start, new_end))

    @classmethod
    def back(cls, edits: Iterable[Edit]) -> "Offsets":
        """Return the map in the opposite direction: from the new text to the old one."""
        return cls([Edit(each.new_start, each.new_end, each.old_start, each.old_end) for each in paced(edits)])

    def is_replaced(self, start: int, end: int) -> bool:
        return end <= self._before(bisect_right(self._starts, start)).old_end

    def _before(self, index: int) -> Edit:
        return self.edits[index - 1] if index else Edit(0, 0, 0, 0)


def replaced(text: str, parts: Iterable[tuple[tuple[int, int], str]]) -> tuple[str, list[Edit]]:
    """Return a text with some parts of it, which are in order and disjoint, replaced, and the edits."""
    edits: list[Edit] = []
    pieces: list[str] = []
    done = length = 0
    for (start, end), new in paced(parts):
        pieces += (text[done:start], new)
        length += start - done
        edits.append(Edit(start, end, length, length + len(new)))
        length += len(new)
        done = end
    pieces.append(text[done:])
    return "".join(pieces), edits


def masked(text: str, spans: Iterable[tuple[int, int]], sign: str) -> str:
    """Return a text of the same length with a sign in place of each character of the spans, sorted and disjoint."""
    return replaced(text, (((start, end), sign * (end - start)) for start, end in spans))[0]


def consecutive(lengths: Iterable[int]) -> list[TokenSpan]:
    """Return adjacent spans of the given lengths, starting at 0."""
    ends = list(itertools.accumulate(lengths))
    return list(zip([0, *ends], ends, strict=False))


def spread(spans: Iterable[TokenSpan], has_span: Iterable[bool]) -> list[TokenSpan]:
    """Return the spans in order where `has_span` is true, and elsewhere empty ones at the end of the previous one."""
    left, end, result = iter(spans), 0, []
    for is_there in has_span:
        span = next(left) if is_there else (end, end)
        end = span[1]
        result.append(span)
    return result


def disjoint(spans: Sequence[TokenSpan]) -> list[TokenSpan]:
    """Return sorted spans without overlaps: what several claim (bytes of one character) belongs to the last one."""
    result: list[TokenSpan] = []
    for start, end in reversed(spans):
        following = result[-1][0] if result else end
        result.append((min(start, following), min(end, following)))
    return result[::-1]


def stripped(spans: Iterable[TokenSpan], text: str) -> list[TokenSpan]:
    """Convert spans in a text to spans in `text.strip()`."""
    before, length = len(text) - len(text.lstrip()), len(text.strip())
    return [(min(max(start - before, 0), length), min(max(end - before, 0), length)) for start, end in spans]


def by_prefixes(decode: Callable[[Sequence[int]], str], token_ids: Sequence[int]) -> list[TokenSpan]:
    """Return each token's span in `decode(token_ids)`: what it adds to the text of the tokens before it.

    For decoders that return no spans. Text that changes with a later token (bytes of one character) belongs to that
    token.
    """
    text, ends, end = decode(token_ids), [0], 0
    for count in range(1, len(token_ids) + 1):
        said = decode(token_ids[:count]) if count < len(token_ids) else text
        end = max(end, _num_common(said, text))
        ends.append(end)
    return list(itertools.pairwise(ends))


def without_spaces(spans: Iterable[TokenSpan], text: str, kept: str) -> list[TokenSpan]:
    """Convert spans in a text to spans in `kept`, which is the same text with some spaces removed."""
    places, place = [], 0
    for character in text:
        places.append(place)
        place += kept[place : place + 1] == character
    places.append(place)
    return [(places[start], places[end]) for start, end in spans]


def _num_common(text: str, other: str) -> int:
    if other.startswith(text):
        return len(text)
    return next((i for i, (a, b) in enumerate(zip(text, other, strict=False)) if a != b), min(len(text), len(other)))
