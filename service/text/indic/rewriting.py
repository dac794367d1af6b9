"""Rewrites texts by lists of rules, and traces the origin of each character."""

import functools
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from service.text.spans import TokenSpan

Writing = str | Callable[[re.Match[str]], str]


@dataclass(frozen=True)
class Rule:
    """Replaces all that a regular expression matches, as `re.sub` does."""

    expression: str
    writing: Writing

    @functools.cached_property
    def pattern(self) -> re.Pattern[str]:
        """Return the pattern, compiled when it is first used: most servers have no model that reads by these rules."""
        return re.compile(self.expression)

    def written(self, found: re.Match[str]) -> str:
        return found.expand(self.writing) if isinstance(self.writing, str) else self.writing(found)


def letters(replacements: Mapping[str, str]) -> Rule:
    """Return one rule for letters, or sequences of them, none of which begins another one."""
    return Rule("|".join(map(re.escape, replacements)), lambda found: replacements[found[0]])


def rewritten(text: str, rules: Iterable[Rule]) -> str:
    for each in rules:
        text = each.pattern.sub(each.writing, text)
    return text


def traced(text: str, rules: Iterable[Rule]) -> tuple[str, list[TokenSpan]]:
    """Return the result of `rewritten`, and the part of `text` for each of its characters, empty for added spaces."""
    spans = [(at, at + 1) for at in range(len(text))]
    for each in rules:
        parts: list[str] = []
        kept: list[TokenSpan] = []
        done = 0
        for found in each.pattern.finditer(text):
            written = each.written(found)
            parts += [text[done : found.start()], written]
            kept += spans[done : found.start()]
            at = kept[-1][1] if kept else 0
            kept += _spans_of(found[0], written, spans[found.start() : found.end()], at)
            done = found.end()
        text, spans = "".join([*parts, text[done:]]), [*kept, *spans[done:]]
    return text, spans


def spans_in(origins: Sequence[TokenSpan], spans: Iterable[TokenSpan], length: int) -> list[TokenSpan]:
    """Convert spans in a traced text to spans in its origin, which has this length."""
    starts, ends = [*(start for start, _ in origins), length], [0, *(end for _, end in origins)]
    converted = ((starts[start], ends[end]) for start, end in spans)
    return [(min(start, end), end) for start, end in converted]


def _spans_of(old: str, new: str, spans: Sequence[TokenSpan], at: int) -> list[TokenSpan]:
    """Return the origins of the characters of `new`, which was written for `old` with these spans, or at a position."""
    if len(old) == len(new):
        return list(spans)
    result: list[TokenSpan] = []
    following = 0  # the first character of `old` that nothing stands for yet
    for character in new:
        is_added = following == len(old) or (character.isspace() and not old[following].isspace())
        place = old.find(character, following)
        if is_added:
            span = (at, at)
        elif place >= 0:
            span, following = spans[place], place + 1
        else:
            span, following = (spans[following][0], spans[-1][1]), len(old)
        result.append(span)
        at = span[1]
    return result
