"""What must hold for any result: of error messages, and of spans, which are positions from start to before end."""

from collections.abc import Iterable
from itertools import pairwise

_MAX_PROBLEM = 2000  # characters of a message


def check_message(problem: Exception | str, most: int = _MAX_PROBLEM) -> None:
    """Check that a message is one line, not too long, that can be written to a log."""
    message = str(problem)
    assert message and len(message) <= most, len(message)
    assert len(message.splitlines()) == 1, message
    message.encode()


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
