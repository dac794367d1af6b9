"""Positions of tokens in texts."""

import itertools
from collections.abc import Callable, Iterable, Sequence

TokenSpan = tuple[int, int]  # code points, from start to before end


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
