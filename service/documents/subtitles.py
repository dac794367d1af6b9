"""Subtitles: SubRip (`.srt`) and WebVTT (https://www.w3.org/TR/webvtt1), as they are found.

Times begin a cue. Times, numbers, settings, line ends, and all that is not a cue stay. The texts of cues are left to
cues.py.
"""

import html
import re
from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise

from service.documents.cues import VOICE, Cue, Notation, has_ended, slots
from service.documents.document import Document, DocumentOptions, Spliced
from service.documents.encodings import decoded
from service.documents.errors import DocumentError
from service.documents.lines import Line, lines

# Looser than both formats: players show cues whose times have one digit, no hours, a comma or a minus.
_TIME = r"-?\d{1,4}(?:[:.,] ?\d{1,4}){1,4}"
_TIMES = re.compile(rf"\s{{0,9}}{_TIME}[ \t]{{0,9}}(?:--? ?>|[–—]>|→)[ \t]{{0,9}}{_TIME}(?:\s.*)?")
_VTT_BLOCK = re.compile(r"(?:NOTE|STYLE|REGION)(?:[ \t]|\Z)")
_SRT_TAG = re.compile(
    r"<(?P<close>/?)(?P<name>[a-z]+)(?:\s[^<>]*)?>|\{\\[^{}]{1,100}\}|\{[a-z]:[^{}]{1,40}\}|(?P<br>\\[Nn])|[♪♫♬]+",
    re.IGNORECASE,
)
_VTT_TAG = re.compile(
    r"(?P<mark><rt(?:\.[^<>]*)?>[^<>]*(?:</rt>)?)|<(?P<close>/?)(?P<name>[a-z]*+)[^<>]*+>|[♪♫♬]+", re.IGNORECASE
)
_VTT_ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})
_SRT = Notation(_SRT_TAG, str, lambda text: text.replace("-->", "->"))
_VTT = Notation(_VTT_TAG, html.unescape, lambda text: text.translate(_VTT_ESCAPES))
_MAX_PLACES = 5  # named in a note

_Group = Sequence[Line]


def read_srt(data: bytes, _: DocumentOptions) -> Document:
    """Read SubRip; `<i>` and the like, and `{\\an8}`, stay with their words."""
    source, encode = decoded(data)
    every = list(lines(source))
    first = next((line for line in every if line.text.strip()), None)
    if first and not any(_TIMES.fullmatch(line.text) for line in every):
        raise DocumentError(
            f"expected the times of a cue, such as 00:01:02,500 --> 00:01:04,000, not {first.text[:40]!r}; no line has "
            "any.",
            f"line {first.number}",
        )
    groups, others = _groups(every, is_vtt=False)
    return Spliced(source, slots(source, [Cue(group) for group in groups], _SRT), encode, _notes(others))


def read_vtt(data: bytes, _: DocumentOptions) -> Document:
    """Read WebVTT; notes, styles and regions stay as they are, tags stay with their words."""
    source, encode = decoded(data)
    if not re.match(r"WEBVTT(?:[ \t\r\n]|\Z)", source):
        raise DocumentError("a WebVTT file starts with WEBVTT.", "line 1")
    groups, others = _groups(list(lines(source)), is_vtt=True)
    cues = [Cue([each for line in group for each in _by_voice(line)]) for group in groups]
    others = [group for group in others[1:] if not _VTT_BLOCK.match(group[0].text)]
    return Spliced(source, slots(source, cues, _VTT), encode, _notes(others))


def _notes(others: Sequence[_Group]) -> list[str]:
    more = " and others" if len(others) > _MAX_PLACES else ""
    places = ", ".join(str(group[0].number) for group in others[:_MAX_PLACES])
    left = f"lines outside cues, such as a cue without times, were left as they are: line {places}{more}."
    return [left] if others else []


def _groups(every: Sequence[Line], *, is_vtt: bool) -> tuple[list[_Group], list[_Group]]:
    """Return the lines of text of each cue, and what else there is, both in groups without empty lines."""
    times = [index for index, line in enumerate(every) if _TIMES.fullmatch(line.text)]
    heads = [_head(every, index) for index in times]
    cues: list[_Group] = []
    others = [*_between_empty(every[: heads[0] if heads else len(every)], is_vtt=is_vtt)]
    for index, end in zip(times, [*heads[1:], len(every)], strict=False):
        spoken = ""
        for group in _between_empty(every[index + 1 : end], is_vtt=is_vtt):
            is_credit = end == len(every) and has_ended(spoken)
            is_more = not (is_vtt or is_credit or _is_malformed(group, is_first=not spoken))
            if is_more or group[0] is every[index + 1]:
                cues.append(group)
                spoken = group[-1].text
            else:
                others.append(group)
    return cues, others


def _between_empty(every: Sequence[Line], *, is_vtt: bool) -> Iterator[_Group]:
    """Yield lines with text in groups between empty ones; in WebVTT, a line of spaces is none."""
    for has_text, group in groupby(every, key=lambda line: bool(line.text if is_vtt else line.text.strip())):
        found = list(group) if has_text else []
        if any(line.text.strip() for line in found):
            yield found


def _by_voice(line: Line) -> Iterator[Line]:
    starts = sorted({0, *(match.start() for match in VOICE.finditer(line.text))})
    for start, end in pairwise([*starts, len(line.text)]):
        yield Line(line.number, line.text[start:end].rstrip(), line.start + start, line.ending)


def _head(every: Sequence[Line], index: int) -> int:
    """Return where the cue begins whose times are at `index`: at its number or name, if it has one."""
    if index and (before := every[index - 1].text.strip()):
        is_first = index == 1 or not every[index - 2].text.strip()
        return index - 1 if before.isdigit() or (is_first and "-->" not in before) else index
    return index


def _is_malformed(group: _Group, *, is_first: bool) -> bool:
    """Return whether lines after an empty one are a cue with strange times or none, and not more of the one before."""
    return any("-->" in line.text for line in group) or (not is_first and group[0].text.strip().isdigit())
