"""Separators of texts within a line: columns, rulers, fill-ins, brackets, arrows, prefixes of subjects.

They stay; the texts between are translated separately. Repetitions are bounded or possessive, hence linear time.
"""

import re
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
    | (?<!\s)(?P<gap>([ {_WIDE}])\2[ {_WIDE}]*+)(?!\s)
    | (?P<run>([{_RULING}])(?:\4{{2,}}+|(?:[ ]\4){{2,}}+))
    | (?P<arrow>[{_ARROWS}])
    | \A,(?=[ ]) | ,(?=[ ]\Z)  # of a list that a program joins
    | (?:(?<![^{LINE_ENDS}])|(?<=[:>][ ]))(?:{_PREFIX}){{1,9}}(?:\[[^\s\[\]]{{1,60}}\][ ]){{0,3}}+  # with a list's name
    | (?<![^{LINE_ENDS}])[A-ZÀ-Þ][A-ZÀ-Þ0-9.' -]{{0,40}}[ ](?=\[{_IN_BRACKETS}{{1,60}}\]:)  # a speaker's name
    | (?<!\w)\\?!?\[(?:\[(?:{_IN_BRACKETS}{{1,200}}\|)?)?(?P<words>{_IN_BRACKETS}{{1,300}}?)\\?\]{{1,2}}
      (?:\([^()\s]{{1,2000}}\)|(?![\w(]))[:;,.!?]{{0,3}}  # [words], ![words](x.png), [[page|words]], \[words\]
    """,
    re.VERBOSE,
)
_NUMBER = re.compile(r"\s{0,9}[$€£]?\d")
_ANY_ARROW, _NO_ARROW = re.compile(f"[{_ARROWS}]"), re.compile(r"(?!)")
_ARROW_APART = re.compile(rf"(?<!\S)[{_ARROWS}](?!\S)")
_SENTENCE_END = re.compile("[.!?]")
_REACH = 200  # characters of a line on each side of a gap that are looked at


def separators(text: str, language_code: str) -> Iterator[Span]:
    if "  " in text or "," in (text[:1], text[-2:-1]) or _HINT.search(text):
        yield from _separators(text, 0, len(text), _arrows(text, language_code))


def _separators(text: str, start: int, end: int, arrows: re.Pattern[str]) -> Iterator[Span]:
    for found in paced(_SEPARATOR.finditer(text, start, end)):
        match found.lastgroup:
            case "words":
                if any(map(str.isalpha, found["words"])):
                    yield Span(found.start(), found.start("words"))
                    yield from _separators(text, *found.span("words"), arrows)
                    yield Span(found.end("words"), found.end())
            case "run" if _is_written(text, found):
                pass
            case "arrow" if not arrows.match(text, found.start()):
                pass
            case "gap" if _is_slip(text, found):
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


def _is_slip(text: str, gap: re.Match[str]) -> bool:
    """Return whether a gap is a space too many within a sentence: two spaces, the only ones in a line of words."""
    start, end = gap.span()
    before, after = text[max(0, start - _REACH) : start], text[end : end + _REACH]
    if gap[0] != "  " or not (before[-1:].isalpha() or before.endswith(",")) or not after[:1].isalpha():
        return False
    before, after = before.splitlines()[-1], after.splitlines()[0].rstrip()
    is_sentence = after[0].islower() or _SENTENCE_END.search(after) is not None
    return is_sentence and "  " not in before.lstrip() and "  " not in after


def _arrows(text: str, language_code: str) -> re.Pattern[str]:
    """Return a pattern of arrows, not quotation marks: `« Back`, `Home » News`; in French only unpaired ones."""
    left, right, single_left, single_right = (0, 0, 0, 0) if text.isascii() else map(text.count, _ARROWS)
    if left + right + single_left + single_right == 1 and not _SENTENCE_END.search(text):
        return _ANY_ARROW
    is_paired = left == right and single_left == single_right
    return _NO_ARROW if is_paired and language_code[:2] == "fr" else _ARROW_APART
