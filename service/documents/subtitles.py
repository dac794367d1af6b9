"""Subtitles: SubRip (`.srt`) and WebVTT (https://www.w3.org/TR/webvtt1), as they are found. Times begin a cue.

Times, numbers, settings and line ends stay as they are, and so does what is no cue. What a cue says is read and written
by cues.py.
"""

import html
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby

from service.documents.cues import has_ended, parts, slots
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
    return _document(source, encode, every, _SRT_TAG, str, lambda text: text.replace("-->", "->"), is_vtt=False)


def read_vtt(data: bytes, _: DocumentOptions) -> Document:
    """Read WebVTT; notes, styles and regions stay as they are, tags stay with their words."""
    source, encode = decoded(data)
    if not re.match(r"WEBVTT(?:[ \t\r\n]|\Z)", source):
        raise DocumentError("a WebVTT file starts with WEBVTT.", "line 1")
    every = list(lines(source))
    return _document(
        source, encode, every, _VTT_TAG, html.unescape, lambda text: text.translate(_VTT_ESCAPES), is_vtt=True
    )


def _document(
    source: str,
    encode: Callable[[str], bytes],
    every: Sequence[Line],
    tag: re.Pattern[str],
    read: Callable[[str], str],
    write: Callable[[str], str],
    *,
    is_vtt: bool,
) -> Document:
    cues, others = _cues(every, is_vtt=is_vtt)
    spoken = list(parts(cues, tag, read))
    notes = []
    if others:
        more = " and others" if len(others) > _MAX_PLACES else ""
        places = ", ".join(str(group[0].number) for group in others[:_MAX_PLACES])
        notes = [f"what is no cue is as it was, such as a cue without times, at line {places}{more}."]
    return Spliced(source, slots(source, spoken, write), encode, notes)


def _cues(every: Sequence[Line], *, is_vtt: bool) -> tuple[list[_Group], list[_Group]]:
    """Return the lines of text of each cue, and what else there is, both in groups without empty lines."""
    times = [index for index, line in enumerate(every) if _TIMES.fullmatch(line.text)]
    heads = [_head(every, index) for index in times]
    cues: list[_Group] = []
    others = [*_groups(every[: heads[0] if heads else len(every)])]
    if is_vtt:
        others = [group for group in others[1:] if not _VTT_BLOCK.match(group[0].text)]
    for index, end in zip(times, [*heads[1:], len(every)], strict=False):
        spoken = ""
        done, is_next = index + 1, True
        for group in _groups(every[index + 1 : end]):
            gap = every[done : group[0].number - 1]
            is_next &= all(line.text for line in gap) if is_vtt else not gap  # there a line of spaces is one of the cue
            done = group[-1].number
            is_credit = end == len(every) and has_ended(spoken)
            if is_next or not (is_vtt or is_credit or _is_malformed(group, is_first=not spoken)):
                cues.append(group)
                spoken = group[-1].text
            elif not (is_vtt and _VTT_BLOCK.match(group[0].text)):
                others.append(group)
    return cues, others


def _head(every: Sequence[Line], index: int) -> int:
    """Return where the cue begins whose times are at `index`: at its number or name, if it has one."""
    if index and (before := every[index - 1].text.strip()):
        is_first = index == 1 or not every[index - 2].text.strip()
        return index - 1 if before.isdigit() or (is_first and "-->" not in before) else index
    return index


def _is_malformed(group: _Group, *, is_first: bool) -> bool:
    """Return whether lines after an empty one are a cue with strange times or none, and not more of the one before."""
    return any("-->" in line.text for line in group) or (not is_first and group[0].text.strip().isdigit())


def _groups(every: Sequence[Line]) -> Iterator[_Group]:
    for has_text, group in groupby(every, key=lambda line: bool(line.text.strip())):
        if has_text:
            yield list(group)
