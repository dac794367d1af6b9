"""Parts of texts by position, and where they are after the text was edited."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from service.domain.checkpoint import paced


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
