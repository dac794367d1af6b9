"""Subtitles: SubRip (`.srt`) and WebVTT (https://www.w3.org/TR/webvtt1). A cue is a text, over all of its lines.

Times, numbers, settings and line ends stay as they are. A cue keeps its number of lines: a translation is broken at the
spaces that make its longest line shortest. Lines that start with a dash are said by different people and stay apart.
"""

import functools
import html
import itertools
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from service.documents.document import Document, DocumentOptions, DocumentText, Slot, Spliced
from service.documents.encodings import decoded
from service.documents.errors import DocumentError
from service.documents.inline import InlineText, Kind, Piece

_SRT_TIMES = re.compile(r"\s*\d{1,4}:\d\d?:\d\d?(?:[,.]\d{1,3})?\s*-->\s*\d{1,4}:\d\d?:\d\d?(?:[,.]\d{1,3})?(?:\s.*)?")
_VTT_TIMES = re.compile(r"[ \t]*(?:\d{2,}:)?\d\d:\d\d\.\d{3}[ \t]+-->[ \t]+(?:\d{2,}:)?\d\d:\d\d\.\d{3}(?:[ \t].*)?")
_SRT_TAG = re.compile(r"<(/?)([a-z]+)(?:\s[^<>]*)?>|(\{\\[^{}]{1,100}\})", re.IGNORECASE)
_VTT_TAG = re.compile(r"<(/?)([a-z]*+)[^<>]*+>()", re.IGNORECASE)
_DASH = re.compile(r"\s*[-–—‐]")
_VTT_ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})


@dataclass(frozen=True, slots=True)
class _Block:
    """Lines without an empty one between them: the number of the first, and each line's text and position."""

    number: int
    lines: Sequence[tuple[str, int]]


def read_srt(data: bytes, _: DocumentOptions) -> Document:
    """Read SubRip; `<i>` and the like, and `{\\an8}`, stay with their words.

    Raises:
        DocumentError: a cue has no times.
    """
    source, encode = decoded(data)
    return Spliced(source, _srt_slots(source), encode)


def read_vtt(data: bytes, _: DocumentOptions) -> Document:
    """Read WebVTT; notes, styles and regions stay as they are, tags stay with their words.

    Raises:
        DocumentError: there is no WEBVTT at the start, or a cue has no times.
    """
    source, encode = decoded(data)
    if not re.match(r"WEBVTT(?:[ \t\r\n]|\Z)", source):
        raise DocumentError("a WebVTT file starts with WEBVTT.", "line 1")
    return Spliced(source, _vtt_slots(source), encode)


def _srt_slots(source: str) -> Iterator[Slot]:
    for block in _blocks(source):
        lines = block.lines
        first = 1 if lines[0][0].strip().isdigit() and len(lines) > 1 else 0
        if not _SRT_TIMES.fullmatch(lines[first][0]):
            raise DocumentError(
                f"expected the times of a cue, such as 00:01:02,500 --> 00:01:04,000, not {lines[first][0][:40]!r}.",
                f"line {block.number + first}",
            )
        yield from _cue(source, lines[first + 1 :], block.number + first + 1, _SRT_TAG, str, _srt_written)


def _vtt_slots(source: str) -> Iterator[Slot]:
    for block in _blocks(source):
        lines = block.lines
        if block.number == 1 or re.match(r"(?:NOTE|STYLE|REGION)(?:[ \t]|\Z)", lines[0][0]):
            continue
        first = 0 if "-->" in lines[0][0] else 1
        if first == len(lines) or not _VTT_TIMES.fullmatch(lines[first][0]):
            found = lines[min(first, len(lines) - 1)][0]
            raise DocumentError(
                f"expected the times of a cue, such as 00:01:02.500 --> 00:01:04.000, not {found[:40]!r}.",
                f"line {block.number + min(first, len(lines) - 1)}",
            )
        yield from _cue(source, lines[first + 1 :], block.number + first + 1, _VTT_TAG, html.unescape, _vtt_written)


def _blocks(source: str) -> Iterator[_Block]:
    lines: list[tuple[str, int]] = []
    position = 0
    number = 0
    for number, line in enumerate(source.split("\n"), start=1):
        text = line.removesuffix("\r")
        if text.strip():
            lines.append((text, position))
        elif lines:
            yield _Block(number - len(lines), lines)
            lines = []
        position += len(line) + 1
    if lines:
        yield _Block(number - len(lines) + 1, lines)


def _cue(
    source: str,
    lines: Sequence[tuple[str, int]],
    number: int,
    tag: re.Pattern[str],
    read: Callable[[str], str],
    write: Callable[[str], str],
) -> Iterator[Slot]:
    if not lines:
        return
    has_speakers = sum(bool(_DASH.match(tag.sub("", text))) for text, _ in lines) > 1
    pieces: list[Piece] = []
    for index, (text, _) in enumerate(lines):
        if index:
            is_break = has_speakers and _DASH.match(tag.sub("", text))
            pieces.append(Piece(Kind.BREAK, "\n") if is_break else Piece(Kind.TEXT, text=" "))
        pieces += _pieces(text, tag, read)
    inline = InlineText(pieces)
    if not inline.has_words:
        return
    start, end = lines[0][1], lines[-1][1] + len(lines[-1][0])
    breaks = sum(piece.kind is Kind.BREAK for piece in pieces)
    ending = "\r\n" if source.startswith("\r\n", lines[0][1] + len(lines[0][0])) else "\n"
    written = functools.partial(_written, inline, write, len(lines) - breaks, ending)
    yield Slot(start, end, DocumentText(inline.text, inline.mime_type, f"line {number}"), written)


def _pieces(text: str, tag: re.Pattern[str], read: Callable[[str], str]) -> Iterator[Piece]:
    done = 0
    for match in tag.finditer(text):
        yield Piece(Kind.TEXT, text=read(text[done : match.start()]))
        done = match.end()
        if match[3] or not match[2]:
            yield Piece(Kind.ORDERED, match[0])
        else:
            yield Piece(Kind.CLOSE if match[1] else Kind.OPEN, match[0])
    yield Piece(Kind.TEXT, text=read(text[done:]))


def _srt_written(text: str) -> str:
    return text.replace("-->", "->")


def _vtt_written(text: str) -> str:
    return text.translate(_VTT_ESCAPES)


def _written(inline: InlineText, write: Callable[[str], str], num_lines: int, ending: str, translation: str) -> str:
    """Return the lines of a cue, with `ending` between them.

    `num_lines` is at most how many those have that no break of its own starts.
    """
    parts: list[list[Piece]] = [[]]
    for piece in inline.pieces(translation):
        if piece.kind is Kind.BREAK:
            parts.append([])
        else:
            parts[-1].append(piece)
    if len(parts) > 1:
        num_lines = 1 if num_lines <= 1 else -(-(num_lines + len(parts) - 1) // len(parts))
    return ending.join(line for part in parts for line in _lines(part, write, num_lines) if line)


def _lines(pieces: Sequence[Piece], write: Callable[[str], str], num_lines: int) -> list[str]:
    """Return at most `num_lines` lines, broken at spaces; tags have no width."""
    words: list[list[str]] = [[]]  # the parts of each, with the tags in it and after it
    widths = [0]
    for piece in pieces:
        if piece.kind is not Kind.TEXT:
            words[-1].append(piece.raw)
            continue
        for index, part in enumerate(re.split(r"\s+", piece.text)):
            if index:
                words.append([])
                widths.append(0)
            words[-1].append(write(part))
            widths[-1] += len(part)
    low, high = max(widths), sum(widths) + len(widths)
    while low < high:
        middle = (low + high) // 2
        if len(_broken(widths, middle)) <= num_lines:
            high = middle
        else:
            low = middle + 1
    starts = [*_broken(widths, low), len(words)]
    return [" ".join(map("".join, words[start:end])).strip() for start, end in itertools.pairwise(starts)]


def _broken(widths: Sequence[int], width: int) -> list[int]:
    """Return which words start lines, if each line takes as many words as it has room for."""
    starts = [0]
    used = widths[0]
    for index in range(1, len(widths)):
        if used + 1 + widths[index] > width:
            starts.append(index)
            used = widths[index]
        else:
            used += 1 + widths[index]
    return starts
