"""Parts of a document: stretches of HTML by their role in the translation of its text."""

import enum
import html as html_standard
import re
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple

from service.domain.checkpoint import paced
from service.text.markup.lexer import Token, TokenKind, tokens
from service.text.markup.templates import TemplateKind

_LONG_NUMBER = re.compile(r"&#0*[0-9]{8,}")
_EDGE = 40  # characters at the ends of a text that are looked at
_NAME = re.compile(r"<([^\t\n\f\r />]+)")


class Role(enum.Enum):
    """The role of a part of a document in the translation of its text."""

    TEXT = "text"
    OPEN = "open"  # an inline element's start tag whose end tag is in the same paragraph
    CLOSE = "close"  # that end tag
    KEPT = "kept"  # an inline element that is copied unchanged, with its tags
    MARK = "mark"  # something without text within a sentence: an image, a comment
    LINE_BREAK = "line break"  # <br>, a template's condition: texts end here, inline elements continue
    BOUNDARY = "boundary"  # never moves: texts and inline elements end here


class Part(NamedTuple):
    """A stretch of HTML, from `start` to before `end`."""

    role: Role
    start: int
    end: int


def partners(parts: Sequence[Part]) -> dict[int, int]:
    """Map the index of each start tag of inline elements to that of its end tag, and back, as far as both are there."""
    found: dict[int, int] = {}
    path: list[int] = []
    for index, part in paced(enumerate(parts)):
        if part.role is Role.BOUNDARY:
            path.clear()
        elif part.role is Role.OPEN:
            path.append(index)
        elif part.role is Role.CLOSE and path:
            start = path.pop()
            found[start], found[index] = index, start
    return found


class Texts:
    """The visible text of parts, outside of tags."""

    def __init__(self, html: str, parts: Sequence[Part]) -> None:
        each = [shown(html[part.start : part.end], part.role) for part in paced(parts)]
        self._ends = [0, *accumulate(map(len, each))]
        self._num_with_words = [0, *accumulate(any(map(str.isalnum, text)) for text in paced(each))]
        self._text = "".join(each)

    def of(self, first: int, end: int) -> str:
        """Return the text of the parts from `first` to before `end`, without the middle of a long one."""
        start, stop = self._ends[first], self._ends[end]
        if stop - start > 2 * _EDGE:
            return self._text[start : start + _EDGE] + self._text[stop - _EDGE : stop]
        return self._text[start:stop]

    def have_words(self, first: int, end: int) -> bool:
        return self._num_with_words[end] > self._num_with_words[first]


def element_name(html: str, part: Part) -> str:
    """Return the name of the element whose start tag a part is, or begins with, in lower case; else an empty text."""
    match = _NAME.match(html, part.start, part.end)
    return match[1].lower() if match else ""


def shown(html: str, role: Role) -> str:
    """Return what a reader sees of a part, given as HTML: of text and of an element that is copied, the text."""
    if role is Role.TEXT:
        return decoded(html)
    if role is not Role.KEPT:
        return ""
    return "".join(_shown(token, html[token.start : token.end]) for token in tokens(html))


def _shown(token: Token, raw: str) -> str:
    match token.kind:
        case TokenKind.TEXT:
            return decoded(raw)
        case TokenKind.TEMPLATE if token.name != TemplateKind.COMMENT.value:
            return raw
    return " " * (token.name == "br")


def decoded(raw: str) -> str:
    if "&" in raw:
        raw = _LONG_NUMBER.sub("&#1114112", raw)  # int() refuses thousands of digits
        raw = "".join(map(html_standard.unescape, paced(_cut(raw), every=1)))
    return raw.replace("\0", "")


def _cut(raw: str) -> Iterator[str]:
    """Cut a text at ampersands, which no character reference goes beyond, into pieces of 4,096 characters or more."""
    start = 0
    while start < len(raw):
        end = raw.find("&", start + 4_096)
        end = len(raw) if end < 0 else end
        yield raw[start:end]
        start = end
