"""What divides a line into texts by its form: columns, rulers, fill-ins, brackets, arrows, the prefixes of subjects.

A translation has them as the source does; the texts between them are translated by themselves. Every repetition is
bounded or possessive, so that any text takes linear time.
"""

import re
from collections import Counter
from collections.abc import Iterator

from service.domain.checkpoint import paced
from service.text.spans import Span

LINE_ENDS = "\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"
_WIDE = "\u00a0\u2000-\u200a\u3000"  # spaces of other widths, and no-break ones
_RULING = "_=*#~+^<>–—―·•‧∙⋅…\u2500-\u27bf.-"  # three of these in a row divide a line
_ARROWS = "«»‹›"
# Of mails that answer or hand on another: in English, German, French, Spanish and the Nordic languages.
_PREFIX = r"(?:R[Ee]|FW|F[Ww][Dd]|Fw|A[Ww]|WG|TR|RV|S[Vv]|VS|VB)(?:\[\d{1,3}\])?:[ ]{1,3}"

_IN_BRACKETS = rf"[^\[\]{LINE_ENDS}]"

# What every text with two plain spaces or one of these may have; most have neither.
_HINT = re.compile(
    rf"([\t\[:{_ARROWS}{_WIDE}{_RULING}])(?:(?<=[\t\[{_ARROWS}])|(?<=:)[ ]|(?<=[{_WIDE}])\1|(?:[ ]?\1){{2}})"
)
_SEPARATOR = re.compile(
    rf"""
    (?<![\t{LINE_ENDS}])\t+  # but not those that indent a line
    | (?<!\s)([ {_WIDE}])\1[ {_WIDE}]*+(?!\s)
    | (?P<run>([{_RULING}])(?:\3{{2,}}+|(?:[ ]\3){{2,}}+))
    | (?P<arrow>[{_ARROWS}])
    | (?:(?<![^{LINE_ENDS}])|(?<=[:>][ ]))(?:{_PREFIX}){{1,9}}(?:\[[^\s\[\]]{{1,60}}\][ ]){{0,3}}+  # with a list's name
    | (?<![^{LINE_ENDS}])[A-ZÀ-Þ][A-ZÀ-Þ0-9.' -]{{0,40}}[ ](?=\[{_IN_BRACKETS}{{1,60}}\]:)  # a speaker's name
    | (?<!\w)\\?!?\[(?:\[(?:{_IN_BRACKETS}{{1,200}}\|)?)?(?P<words>{_IN_BRACKETS}{{1,300}}?)\\?\]{{1,2}}
      (?:\([^()\s]{{1,2000}}\)|(?![\w(]))[:;,.!?]{{0,3}}  # [words], ![words](x.png), [[page|words]], \[words\]
    """,
    re.VERBOSE,
)
_NUMBER = re.compile(r"\s{0,9}[$€£]?\d")
_ARROW = re.compile(f"[{_ARROWS}]")
_SENTENCE_END = re.compile("[.!?]")


def separators(text: str, language_code: str) -> Iterator[Span]:
    """Yield what divides a text's lines, from left to right."""
    if "  " in text or _HINT.search(text):
        yield from _separators(text, 0, len(text), _Arrows(text, language_code))


def _separators(text: str, start: int, end: int, arrows: "_Arrows") -> Iterator[Span]:
    for found in paced(_SEPARATOR.finditer(text, start, end)):
        match found.lastgroup:
            case "words":
                if any(map(str.isalpha, found["words"])):
                    yield Span(found.start(), found.start("words"))
                    yield from _separators(text, *found.span("words"), arrows)
                    yield Span(found.end("words"), found.end())
            case "run" if _is_written(text, found):
                pass
            case "arrow" if not arrows.has(found):
                pass
            case _:
                yield Span(*found.span())


def _is_written(text: str, run: re.Match[str]) -> bool:
    """Return whether a run of a sign is part of a sentence: an ellipsis, a dash without spaces, a grade (`A+++`).

    Five full stops divide; fewer only if they lead to a number or follow a label: `House ... 12`, `Name: ...`.
    """
    sign, before, after = run[0][0], text[max(0, run.start() - 2) : run.start()], text[run.end() : run.end() + 1]
    if sign == ".":
        num_stops = run[0].count(".")
        is_leader = num_stops == 4 or before == ": " or _NUMBER.match(text, run.end()) is not None
        return num_stops < 5 and not (is_leader and not before[-1:].strip())
    return before[-1:].isalnum() and (sign == "+" or (len(run[0]) == 3 and after.isalnum()))


class _Arrows:
    """Tells arrows from quotation marks: `« Back`, `Home » News`; in French only where the marks are no pairs."""

    def __init__(self, text: str, language_code: str) -> None:
        signs = Counter() if text.isascii() else Counter(_ARROW.findall(text))
        is_paired = signs["«"] == signs["»"] and signs["‹"] == signs["›"]
        self._text = text
        self._may_be_quotation = is_paired and language_code[:2] == "fr"
        self._is_label = signs.total() == 1 and not _SENTENCE_END.search(text)

    def has(self, found: re.Match[str]) -> bool:
        around = self._text[max(0, found.start() - 1) : found.start()] + self._text[found.end() : found.end() + 1]
        return self._is_label or (not around.strip() and not self._may_be_quotation)
