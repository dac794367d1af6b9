"""ICU's messages: the branches are texts, the rest is not.

The syntax is that of MessageFormat (https://unicode-org.github.io/icu/userguide/format_parse/messages/), with Java's
`choice`: `{n, plural, one {# file} other {# files}}`. SmartFormat's are `{n:plural:one file|{} files}`.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from service.domain.checkpoint import paced

_MAX_DEPTH = 32
_SPACE = r"[ \t\r\n]{0,200}"
_HEAD = re.compile(
    rf"\{{{_SPACE}[\w.-]{{1,100}}{_SPACE},{_SPACE}(?:(plural|selectordinal)|select|(choice)){_SPACE},"
    rf"(?:{_SPACE}offset{_SPACE}:{_SPACE}\d{{1,9}})?"
)
_SMART = re.compile(r"\{[\w.]{0,100}:(?:plural|choose|cond|list)(?:\([^(){}]{0,100}\))?:")
_SELECTOR = re.compile(rf"{_SPACE}(?:=\d{{1,9}}|[\w-]{{1,100}}){_SPACE}\{{")
_LIMIT = re.compile(rf"{_SPACE}-?[\d.∞]{{1,20}}{_SPACE}[#<≤]")
_NO_MORE = re.compile(rf"{_SPACE}\}}")
# Quoted text is no syntax; an apostrophe that quotes nothing is one.
_TOKEN = re.compile(r"'[{}|#][^']{0,200}'|[{}|]")
_NUMBER = re.compile(r"(?<![\w\"'/=&#])#(?!#)")

Part = tuple[int, int, bool]


@dataclass(slots=True)
class _Open:
    """An argument that is not closed yet; its `texts` are the branches' positions. Without a type, braces like any."""

    start: int
    type: str = ""
    texts: list[tuple[int, int]] = field(default_factory=list)
    text_start: int = -1  # of the branch that is not closed yet
    end: int = -1

    def closed(self, end: int) -> "_Open":
        self.end = end
        return self


def find_messages(text: str) -> Iterator[Part]:
    """Yield the untranslated parts of ICU's messages with branches, as (start, end, is_apart), in order.

    All around the branches is apart; the `#` in a plural's branch stands for its number. Malformed or deep messages are
    text.
    """
    messages = sorted(_messages(text), key=lambda message: message.start)
    parts: list[Part] = []
    done = 0  # in plurals, the numbers up to here are found
    for message in paced(messages):
        start = message.start
        for branch_start, branch_end in message.texts:
            parts.append((start, branch_start, True))
            start = branch_end
            if message.type == "plural":
                numbers = _NUMBER.finditer(text, max(done, branch_start), branch_end)
                parts += [(*number.span(), False) for number in numbers]
                done = max(done, branch_end)
        parts.append((start, message.end, True))
    end = 0
    for part in sorted(parts):
        if part[0] >= end:
            yield part
            end = part[1]


def _messages(text: str) -> Iterator[_Open]:
    """Yield the messages that are complete, each after those within it."""
    opened: list[_Open] = []
    at = 0
    for found in paced(_TOKEN.finditer(text)):
        sign, at = found[0], found.start()
        top = opened[-1] if opened else None
        if sign == "{":
            if top is not None and top.type and top.text_start < 0:  # a branch begins
                top.text_start = found.end()
                continue
            if len(opened) == _MAX_DEPTH:
                opened.clear()
            message = _Open(at)
            if head := _HEAD.match(text, at):
                selector = (_LIMIT if head[2] else _SELECTOR).match(text, head.end())
                if selector is not None:
                    message.type = "choice" if head[2] else "plural" if head[1] else "select"
                    message.text_start = selector.end() if head[2] else -1
            elif head := _SMART.match(text, at):
                message.type, message.text_start = "smart", head.end()
            opened.append(message)
        elif top is None:
            continue
        elif sign == "}":
            if not top.type:
                opened.pop()
            elif top.type in ("choice", "smart"):
                top.texts.append((top.text_start, at))
                yield opened.pop().closed(found.end())
            elif top.text_start >= 0:
                top.texts.append((top.text_start, at))
                top.text_start = -1
                if not _SELECTOR.match(text, found.end()) and not _NO_MORE.match(text, found.end()):
                    top.type = ""
            elif top.texts:
                yield opened.pop().closed(found.end())
        elif sign == "|" and top.type == "choice" and (limit := _LIMIT.match(text, found.end())):
            top.texts.append((top.text_start, at))
            top.text_start = limit.end()
        elif sign == "|" and top.type == "smart":
            top.texts.append((top.text_start, at))
            top.text_start = found.end()
