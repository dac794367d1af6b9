"""A caller's own placeholders. The only module that imports re2, whose time is linear, whatever the pattern.

Syntax: https://github.com/google/re2/wiki/Syntax
"""

import functools
import heapq
from collections.abc import Callable, Iterator
from operator import itemgetter

import re2

from service.domain.checkpoint import checkpoint, paced
from service.domain.errors import InvalidRequest, Path
from service.domain.translation import OwnPlaceholder
from service.text.spans import Span

MAX_PATTERN = 200  # characters
MAX_MARK = 20
_BETWEEN_MARKS = 500
_MAX_BYTES = 1 << 18  # of a compiled pattern
# Characters searched at once: each match may take time linear in them. One that begins in them may extend beyond.
_WINDOW = 2_048
_LONGEST = 512

_Search = Callable[[str], Iterator[tuple[int, int]]]


class OwnPlaceholders:
    """The placeholders of one call, ready for the search."""

    def __init__(self, own: tuple[OwnPlaceholder, ...]) -> None:
        """Compile the patterns.

        Raises:
            InvalidRequest: one is no regular expression of RE2, or too long.
        """
        self._searches = [_search(each, Path("placeholders", index)) for index, each in enumerate(own)]

    def find(self, text: str) -> list[Span]:
        """Find the placeholders in a text: sorted, disjoint, not empty; of overlapping ones the first that begins."""
        text = text.encode("utf-8", "replace").decode()  # lone surrogates become question marks
        spans: list[Span] = []
        position = 0
        while position < len(text):
            checkpoint()
            stop = position + _WINDOW
            window = text[position : stop + _LONGEST]
            done = 0
            for start, end in paced(heapq.merge(*(search(window) for search in self._searches), key=itemgetter(0))):
                if start >= _WINDOW:
                    break
                if done <= start < end:
                    spans.append(Span(position + start, position + end))
                    done = end
            position += max(_WINDOW, done)
        return spans


@functools.lru_cache(maxsize=32)
def own_placeholders(own: tuple[OwnPlaceholder, ...]) -> OwnPlaceholders | None:
    """Return these placeholders, ready for the search, if there are any.

    Raises:
        InvalidRequest: as for `OwnPlaceholders`.
    """
    return OwnPlaceholders(own) if own else None


def _search(own: OwnPlaceholder, path: Path) -> _Search:
    """Return a function that yields a placeholder's positions in a text."""
    if bool(own.pattern) == bool(own.start and own.end) or bool(own.start) != bool(own.end):
        raise InvalidRequest("{path} needs a pattern, or a start and an end", path, advice="give either")
    if len(own.pattern) > MAX_PATTERN or max(len(own.start), len(own.end)) > MAX_MARK:
        raise InvalidRequest(
            "{path} is too long", path, allowed=f"{MAX_PATTERN} characters for a pattern, {MAX_MARK} for a mark"
        )
    return _by_pattern(own.pattern, path) if own.pattern else functools.partial(_marked, own.start, own.end)


def _by_pattern(pattern: str, path: Path) -> _Search:
    options = re2.Options()
    options.max_mem = _MAX_BYTES
    options.log_errors = False
    try:
        compiled = re2.compile(pattern, options)
    except (re2.error, UnicodeEncodeError) as error:
        reason = error.args[0].decode("utf-8", "replace") if isinstance(error, re2.error) else "it is not Unicode"
        raise InvalidRequest(
            "{path} is {pattern}, which RE2 can't read: {reason}",
            path,
            pattern=pattern,
            reason=reason,
            advice="see https://github.com/google/re2/wiki/Syntax",
        ) from error
    if compiled.match(""):
        raise InvalidRequest(
            "{path} is {pattern}, which matches the empty text", path, pattern=pattern, advice="use + for *"
        )
    return lambda text: (found.span() for found in compiled.finditer(text))


def _marked(start: str, end: str, text: str) -> Iterator[tuple[int, int]]:
    place = text.find(start)
    while place >= 0:
        inner = place + len(start)
        line_end = text.find("\n", inner, inner + _BETWEEN_MARKS + len(end))
        limit = line_end if line_end >= 0 else inner + _BETWEEN_MARKS + len(end)
        after = text.find(end, inner, limit)
        if after >= 0:
            yield place, after + len(end)
        place = text.find(start, after + len(end) if after >= 0 else place + 1)
