"""A caller's own placeholders, in RE2's syntax (https://github.com/google/re2/wiki/Syntax). The only importer of re2.

RE2 takes linear time, but where a pattern's states do not fit into its memory, up to 20 ns for each byte and each part
of the pattern, repeated ones counted, and that for each match. So patterns, the text that is searched at once, and the
time for all texts of a call have a limit.
"""

import functools
import heapq
import re
import time
from collections.abc import Callable, Iterator, Sequence
from operator import itemgetter
from typing import Any, NamedTuple

import re2

from service.domain.checkpoint import checkpoint
from service.domain.errors import InvalidRequest, Path
from service.domain.translation import OwnPlaceholder
from service.text.spans import Span

MAX_PATTERN = 200  # characters
MAX_MARK = 20
MAX_PARTS = 1_000  # of a pattern: characters, classes, groups and signs, each as often as repetitions may have it
MAX_SECONDS = 1.0  # of CPU time, for all placeholders and texts of a call
_BETWEEN_MARKS = 500
# Characters searched at once: a match that begins in the window may extend by as many as the longest placeholder has.
_WINDOW = 1_024
_LONGEST = 512
_FEWEST = 256  # window and longest placeholder together, of the largest patterns
_MAX_WORK = 1_000_000  # parts of a pattern times bytes searched at once: 20 ms

# What counts as one part, and repetitions. What RE2 reads in another way than this counts more, not less.
_TOKEN = re.compile(
    r"\\[pP](?:\{\^?\w+\}|.)|\\x\{\w+\}|\\.|\((?:\?(?:P?<\w*>|[\w-]*:))?"
    r"|\[\^?\]?(?:\\.|\[:\^?\w+:\]|[^\]\\])*+\]"
    r"|\{(?P<least>\d+)(?:,(?P<most>\d*))?\}|.",
    re.DOTALL,
)

_CONTINUATION = bytes(range(0x80, 0xC0))  # bytes of a character that are not its first one


class _Part(NamedTuple):
    """A part of a text to search in, from `begin` to before `end`, with what is beside that; also in UTF-8."""

    text: str
    begin: int
    end: int
    data: bytes
    begin_byte: int
    end_byte: int


_Search = Callable[[_Part], Iterator[tuple[int, int]]]


class OwnPlaceholders:
    """The search for the placeholders of one call, which counts the CPU time that it takes in all texts."""

    def __init__(self, own: Sequence[OwnPlaceholder]) -> None:
        for index, each in enumerate(own):
            check_own(each, index)
        self._own = own
        self._seconds = [0.0] * len(own)
        self._seconds_of_all = 0.0
        self._searches: list[_Search] = []
        self._num_parts = 1  # of the largest pattern
        for index, each in enumerate(own):
            checkpoint()
            began = time.thread_time()
            if each.pattern:
                compiled, num_parts = _compiled(each.pattern, index)
                self._num_parts = max(self._num_parts, num_parts)
                self._searches.append(functools.partial(_matched, compiled))
            else:
                self._searches.append(functools.partial(_marked, each.start, each.end))
            self._count(index, began)

    def find(self, text: str) -> list[Span]:
        """Find the placeholders in a text: sorted, disjoint, not empty; of overlapping ones the first that begins."""
        text = text.encode("utf-8", "replace").decode()  # lone surrogates become question marks
        bytes_per_character = 1 if text.isascii() else 3
        most = _MAX_WORK // (self._num_parts * bytes_per_character)
        most = min(max(most, _FEWEST), _WINDOW + _LONGEST)
        longest = min(_LONGEST, most * 3 // 4)
        window = most - longest
        spans: list[Span] = []
        position = 0
        while position < len(text):
            stop = position + window
            origin = max(position - 1, 0)  # `\b` looks at the character before, and at the one behind
            part = _part(text[origin : stop + longest + 1], position - origin, min(stop + longest, len(text)) - origin)
            each = (self._found(index, part) for index in range(len(self._own)))
            done = position
            for start, end in heapq.merge(*each, key=itemgetter(0)):
                if origin + start >= stop:
                    break
                if done <= origin + start < origin + end:
                    done = origin + end
                    spans.append(Span(origin + start, done))
            position = max(stop, done)
        return spans

    def _found(self, index: int, part: _Part) -> Iterator[tuple[int, int]]:
        """Yield where a placeholder is, with a checkpoint before each."""
        found = self._searches[index](part)
        while True:
            checkpoint()
            began = time.thread_time()
            span = next(found, None)
            self._count(index, began)
            if span is None:
                return
            yield span

    def _count(self, index: int, began: float) -> None:
        seconds = time.thread_time() - began
        self._seconds[index] += seconds
        self._seconds_of_all += seconds
        if self._seconds_of_all > MAX_SECONDS:
            worst = self._seconds.index(max(self._seconds))
            own = self._own[worst]
            raise InvalidRequest(
                "{path} is {given}; the search for the call's placeholders, most of it for this one, takes longer",
                Path("placeholders", worst),
                given=own.pattern or f"{own.start}...{own.end}",
                allowed=f"{MAX_SECONDS:g} s of CPU time per call",
                advice="use fewer and smaller repetitions, such as [^>]{1,99}, or send less text per call",
            )


def check_own(own: OwnPlaceholder, index: int) -> None:
    """Check what takes no time; patterns are compiled where the event loop does not wait."""
    path = Path("placeholders", index)
    if bool(own.pattern) == bool(own.start and own.end) or bool(own.start) != bool(own.end):
        raise InvalidRequest("{path} needs a pattern, or a start and an end", path, advice="give either")
    if len(own.pattern) > MAX_PATTERN or max(len(own.start), len(own.end)) > MAX_MARK:
        raise InvalidRequest(
            "{path} is too long", path, allowed=f"{MAX_PATTERN} characters for a pattern, {MAX_MARK} for a mark"
        )


@functools.lru_cache(maxsize=128)  # 32 MiB
def _compiled(pattern: str, index: int) -> tuple[Any, int]:
    path = Path("placeholders", index)
    num_parts = _num_parts(pattern)
    if num_parts > MAX_PARTS:
        raise InvalidRequest(
            "{path} is {pattern}, with repetitions of too many characters",
            path,
            pattern=pattern,
            allowed=f"{MAX_PARTS} characters, classes, groups and signs, each counted as often as it may be repeated",
            advice="use + for large numbers",
        )
    options = re2.Options()
    options.max_mem = 1 << 18  # bytes of a compiled pattern
    options.log_errors = False
    options.never_capture = True  # groups would take further memory and time
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
    return compiled, num_parts


def _num_parts(pattern: str) -> int:
    """Return how many characters, classes, groups and signs a pattern has, each as often as its repetitions may have
    it: RE2 writes them out, which takes time that grows with the square of their number."""
    groups: list[int] = []  # the parts before each open group, in the one around it
    num_parts = last = 0  # in this group; of what a repetition that follows refers to
    for token in _TOKEN.finditer(pattern):
        sign = token[0]
        if token["least"]:
            times = max(int(token["most"] or token["least"]), 1)
            num_parts += last * (times - 1)
            last *= times
        elif sign[0] == "(":
            groups.append(num_parts)
            num_parts = last = 0
        elif sign == ")" and groups:
            last = num_parts + 1
            num_parts = groups.pop() + last
        else:
            last = last if sign in "*+?" else 1
            num_parts += 1
    return num_parts + sum(groups)


def _part(text: str, begin: int, end: int) -> _Part:
    if text.isascii():
        return _Part(text, begin, end, text.encode(), begin, end)
    data = text.encode()
    return _Part(text, begin, end, data, len(text[:begin].encode()), len(data) - len(text[end:].encode()))


def _matched(compiled: Any, part: _Part) -> Iterator[tuple[int, int]]:
    found = compiled.finditer(part.data, part.begin_byte, part.end_byte)
    spans = (match.span() for match in found)
    return spans if len(part.data) == len(part.text) else _in_characters(spans, part.data)


def _in_characters(spans: Iterator[tuple[int, int]], data: bytes) -> Iterator[tuple[int, int]]:
    """Convert positions in UTF-8, in order, to those of characters; `\\C` matches a byte, the first one counts."""
    done = num_characters = 0
    for start, end in spans:
        first = num_characters + len(data[done:start].translate(None, _CONTINUATION))
        num_characters = first + len(data[start:end].translate(None, _CONTINUATION))
        done = end
        yield first, num_characters


def _marked(start: str, end: str, part: _Part) -> Iterator[tuple[int, int]]:
    text, stop = part.text, part.end
    place = text.find(start, part.begin, stop)
    while place >= 0:
        inner = place + len(start)
        limit = min(inner + _BETWEEN_MARKS + len(end), stop)
        line_end = text.find("\n", inner, limit)
        after = text.find(end, inner, line_end if line_end >= 0 else limit)
        if after >= 0:
            yield place, after + len(end)
        place = text.find(start, after + len(end) if after >= 0 else place + 1, stop)
