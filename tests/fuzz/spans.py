"""Properties of spans: positions from start to before end."""

from collections.abc import Iterable
from itertools import pairwise


def covers(spans: Iterable[tuple[int, int]], length: int) -> bool:
    """Return whether they follow each other without gaps from 0 to `length`."""
    ends = [0]
    for start, end in spans:
        if start != ends[-1] or end < start:
            return False
        ends.append(end)
    return ends[-1] == length


def are_apart(spans: Iterable[tuple[int, int]], length: int) -> bool:
    """Return whether they are in order, do not overlap, and lie within 0 to `length`."""
    bounded = [(0, 0), *spans, (length, length)]
    return all(s <= e for s, e in bounded) and all(left[1] <= right[0] for left, right in pairwise(bounded))
