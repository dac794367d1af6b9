"""The search for placeholders."""

import functools
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from service.domain.checkpoint import checkpoint, paced
from service.domain.errors import TooMany
from service.text.placeholders.custom import OwnPlaceholders
from service.text.placeholders.kinds import KINDS, LINE_ENDS, LONGEST, WORD_KINDS, WORD_SIGNS, Kind, compiled
from service.text.placeholders.messages import find_messages
from service.text.spans import Span

MAX_PLACEHOLDERS = 65_536  # in a text: each takes a few hundred bytes during translation

_WINDOW = 8_192  # characters searched at once, which holds the interpreter for that time

_SIGNS = "".join(sorted({sign for kind in KINDS for sign in kind.signs} - {"'"}))
_SIGN = re.compile(rf"[{re.escape(_SIGNS)}]|'(?=[{{}}'])")
_WORD_SIGN = re.compile("|".join(map(re.escape, WORD_SIGNS)))
_ANY = re.compile(f"{_SIGN.pattern}|{_WORD_SIGN.pattern}")
_BRANCHES = re.compile(r",\s*(?:plural|select|selectordinal|choice)\s*,|:(?:plural|choose|cond|list)[:(]")
_NOT_NAME = re.compile(r"[^a-z*].*", re.DOTALL)
_UNPAIRED_TAGS = frozenset(("*", "br", "hr", "li", "ul", "ol", "tr", "td", "th"))
_ENDS = re.compile(r"\[/([a-z]{1,20})\]")
_NUMBERED = re.compile(r"[%$]\d(?!\d)")
_LINE_END = re.compile(f"[{LINE_ENDS}]")
# A run of backquotes; in a group, if it may begin code of several lines.
_FENCE = re.compile(r"((?<![^\n\r])`{3,}+|`{3,}+(?=[^\s`.,;:!?)]|[ \t]{0,9}[\n\r]))|`{3,}+")


class Placeholder(NamedTuple):
    """A placeholder's position; one that `is_apart` is between texts that are translated by themselves."""

    start: int
    end: int
    is_apart: bool = False


def find_placeholders(text: str) -> list[Span]:
    return [Span(start, end) for start, end, _ in paced(search_placeholders(text))]


def search_placeholders(text: str, own: OwnPlaceholders | None = None) -> list[Placeholder]:
    """Find placeholders of the kinds in `kinds.py`, and a caller's `own`, in a plain text; sorted and disjoint.

    The outer one counts, as in an address, and the caller's own come first. Only fenced code spans several lines, and
    is then apart. `$1` and most percentages are none: they are prices, and Turkish writes "%50". Branches of ICU's
    messages are texts, the rest is apart from them.
    """
    taken = [Placeholder(*part) for part in find_messages(text)] if _BRANCHES.search(text) else []
    if "```" in text:
        taken = _disjoint([*_fenced(text)], taken)
    if own is not None:
        taken = _disjoint([Placeholder(*span) for span in own.find(text)], taken)
    if not taken and _ANY.search(text) is None:
        return []
    reading = _Reading(text)
    for each in paced(taken):
        reading.keep(each)
    reading.read(len(text))
    return reading.found


def _fenced(text: str) -> Iterator[Placeholder]:
    """Yield code between runs of three or more backquotes, the second no shorter, as in chats.

    It has several lines only if the first run is at the beginning of the code, or at an end of a line.
    """
    opening: re.Match[str] | None = None
    for found in paced(_FENCE.finditer(text)):
        if opening is None or (opening[1] is None and _LINE_END.search(text, opening.end(), found.start())):
            opening = found
        elif len(found[0]) >= len(opening[0]):
            start, end = opening.start(), found.end()
            yield Placeholder(start, end, is_apart=_LINE_END.search(text, start, end) is not None)
            opening = None


def _disjoint(first: Sequence[Placeholder], others: Iterable[Placeholder]) -> list[Placeholder]:
    """Return all of `first`, and those of the others that overlap none of them."""
    if not first:
        return list(others)
    taken = list(first)
    index = 0
    for part in others:
        while index < len(first) and first[index].end <= part.start:
            index += 1
        if index == len(first) or first[index].start >= part.end:
            taken.append(part)
    return sorted(taken)


# These are compiled when a text first has such a sign, which takes a millisecond each.
@functools.cache
def _of_sign(sign: str) -> tuple[re.Pattern[str], tuple[Kind, ...]]:
    kinds = tuple(kind for kind in KINDS if sign in kind.signs)
    return compiled(kinds), kinds


@functools.cache
def _words() -> re.Pattern[str]:
    return compiled(WORD_KINDS)


class _Reading:
    """The search through a text: what was `found` before the position `at`."""

    def __init__(self, text: str) -> None:
        self.at = 0
        self.found: list[Placeholder] = []
        self._text = text
        self._has_words = _WORD_SIGN.search(text) is not None
        self._names: frozenset[str] | None = None
        self._numbered: frozenset[str] | None = None

    def read(self, end: int) -> None:
        """Find those before `end`, which none crosses."""
        while self.at < end:
            checkpoint()
            self._read(min(end, self.at + _WINDOW), end)
            self._check()

    def keep(self, found: Placeholder) -> None:
        """Add one that is known, which begins at `at` or later."""
        self.read(found.start)
        self.found.append(found)
        self.at = found.end
        self._check()

    def _check(self) -> None:
        if len(self.found) > MAX_PLACEHOLDERS:
            raise TooMany(
                "a text has more than {most} placeholders, tags or addresses",
                "texts",
                most=MAX_PLACEHOLDERS,
                advice="send several calls",
            )

    def _read(self, stop: int, end: int) -> None:
        """Find those that begin before `stop`; they may extend to `end`."""
        text, at, found = self._text, self.at, self.found
        word_start, word_end = (-1 if self._has_words else stop), stop
        while at < stop:
            if word_start < at:
                word = _words().search(text, at, min(end, stop + LONGEST))
                word_start, word_end = word.span() if word else (stop, stop)
            sign = _SIGN.search(text, at, stop)
            place = sign.start() if sign else stop
            if word_start <= place:
                at = stop
                if word_start < stop:
                    found.append(Placeholder(word_start, word_end))
                    at = word_end
            elif sign is None:
                at = stop
            else:
                pattern, kinds = _of_sign(sign[0])
                match = pattern.match(text, place, min(end, place + LONGEST))
                at = place + 1
                if match is not None:
                    kind = kinds[(match.lastindex or 0) - 1]
                    if not kind.is_paired or self._is_paired(match[0]):
                        at = match.end()
                        found.append(Placeholder(place, at, kind.is_apart))
        self.at = at

    def _is_paired(self, found: str) -> bool:
        if found[0] in "%$":
            if self._numbered is None:
                self._numbered = frozenset(_NUMBERED.findall(self._text))
            return "%1" in self._numbered if found[0] == "%" else {"$1", "$2"} <= self._numbered
        name = _NOT_NAME.sub("", found.strip("[]/"))
        if name in _UNPAIRED_TAGS or found[1] == "/" or "=" in found:
            return True
        if self._names is None:
            self._names = frozenset(_ENDS.findall(self._text))
        return name in self._names
