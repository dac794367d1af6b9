"""Where tokens stand in texts."""

import itertools
from collections.abc import Callable, Iterable, Sequence

TokenSpan = tuple[int, int]  # code points, from start to before end


def consecutive(lengths: Iterable[int]) -> list[TokenSpan]:
    """TokenSpans of the given lengths, one right after the other from 0 on."""
    ends = list(itertools.accumulate(lengths))
    return list(zip([0, *ends], ends, strict=False))


def spread(spans: Iterable[TokenSpan], has_span: Iterable[bool]) -> list[TokenSpan]:
    """The spans in order where there is one, and empty ones in between: each where the one before it ends."""
    left, end, result = iter(spans), 0, []
    for is_there in has_span:
        span = next(left) if is_there else (end, end)
        end = span[1]
        result.append(span)
    return result


def disjoint(spans: Sequence[TokenSpan]) -> list[TokenSpan]:
    """TokenSpans in order that share nothing: what several claim (bytes of one character) is the last one's."""
    result: list[TokenSpan] = []
    for start, end in reversed(spans):
        following = result[-1][0] if result else end
        result.append((min(start, following), min(end, following)))
    return result[::-1]


def stripped(spans: Iterable[TokenSpan], text: str) -> list[TokenSpan]:
    """TokenSpans in a text as they are in `text.strip()`."""
    before, length = len(text) - len(text.lstrip()), len(text.strip())
    return [(_clamped(start - before, length), _clamped(end - before, length)) for start, end in spans]


def by_prefixes(decode: Callable[[Sequence[int]], str], token_ids: Sequence[int]) -> list[TokenSpan]:
    """Each token's span in `decode(token_ids)`: what it adds to what the tokens before it say.

    For decoders that tell no spans. What changes with a later token (bytes of one character) is that later one's.
    """
    text, ends, end = decode(token_ids), [0], 0
    for count in range(1, len(token_ids) + 1):
        said = decode(token_ids[:count]) if count < len(token_ids) else text
        end = max(end, _num_common(said, text))
        ends.append(end)
    return list(itertools.pairwise(ends))


def without_spaces(spans: Iterable[TokenSpan], text: str, kept: str) -> list[TokenSpan]:
    """TokenSpans in a text as they are in `kept`, which is the same text with some spaces taken out."""
    places, place = [], 0
    for character in text:
        places.append(place)
        place += kept[place : place + 1] == character
    places.append(place)
    return [(places[start], places[end]) for start, end in spans]


def _num_common(text: str, other: str) -> int:
    """How many characters two texts begin with that are the same."""
    if other.startswith(text):
        return len(text)
    return next((i for i, (a, b) in enumerate(zip(text, other, strict=False)) if a != b), min(len(text), len(other)))


def _clamped(place: int, length: int) -> int:
    return min(max(place, 0), length)
