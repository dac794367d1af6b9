"""Parts of texts by position."""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import NamedTuple


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
