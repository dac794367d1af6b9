"""Segmentation of documents; segments are translated independently."""

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from service.domain.checkpoint import paced
from service.domain.translation import SplitSentences
from service.text.sentence_ends import sentence_ends
from service.text.separators import LINE_ENDS, separators
from service.text.spans import Span, inside

AS_SPACES = str.maketrans(dict.fromkeys(LINE_ENDS, " "))  # line ends within a segment become spaces
_LINE_END = re.compile(f"\r\n|[{LINE_ENDS}]")
_EMPTY_LINES = re.compile(rf"[{LINE_ENDS}]+(?:[^\S{LINE_ENDS}]{{1,200}}[{LINE_ENDS}]+)*+")
_PARAGRAPH_ENDS = ("\f", "\u2029")

# Markers of list items, headings and quotations. "A. " is not a bullet, as it also begins names.
_BULLET = re.compile(
    r"""\s*+
    (?:(?:
        [-*+•‣⁃◦▪▫●○■□►▶➤✓✔∙·–—] | >++ | \#{1,6} | \[[ xX]\]  # signs, Markdown's among them
        | [(（]?\d{1,3}[.)）] | \d{1,3}(?:\.\d{1,3}){1,4}\.?  # 1.  1)  (1)  1.2.3
        | [(（]?(?:[^\W\d_]|[ivxIVX]{2,5})[)）]  # a)  (a)  iv)
        )\s+
    | \d{1,3}、\s* | [①-⓿❶-➓㉈-㉟㊱-㊿]\s* | >++(?=[^\W\d_]))+""",
    re.VERBOSE,
)

# What is surely one sentence with nothing to protect: words of letters and digits, with what may be between them
# without ending a sentence or being part of a placeholder, an address, a list item or a quotation. Most sentences are.
# The others must be cut, and searched for placeholders, which takes several times as long.
_SIMPLE = re.compile(r"\w(?:[\w ,'’-]*[\w.!?])?")
_DIVIDED = re.compile(r"([ _-])[ ]?\1")  # though it may have a separator or a constant's name
# What is one with nothing exact, either, at first sight: words with one capital, and single spaces or commas between.
_WORDS = re.compile(r"(?:[A-Za-zÀ-ÖØ-öø-ɏ][a-zß-öø-ɏ]*+(?:[ '’]|,[ ]))*+[A-Za-zÀ-ÖØ-öø-ɏ][a-zß-öø-ɏ]*+[.!?]?")


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a text: a segment, or the text between segments, which is copied unchanged."""

    text: str
    is_segment: bool


def is_only_words(text: str) -> bool:
    """Return whether a text is surely a simple sentence without digits and names of machines; most sentences are."""
    return _WORDS.fullmatch(text) is not None


def is_simple_sentence(text: str) -> bool:
    """Return whether a text is surely one segment as a whole, on one line, without placeholders; others may be, too."""
    return _SIMPLE.fullmatch(text) is not None and _DIVIDED.search(text) is None and _has_letter(text)


def line_ends(text: str) -> list[Span]:
    """Return the positions of the line ends within a text, those with only white space between them as one."""
    first, last = len(text) - len(text.lstrip()), len(text.rstrip())
    return [Span(*found.span()) for found in paced(_EMPTY_LINES.finditer(text, first, last))]


def pieces(
    text: str,
    language_code: str,
    mode: SplitSentences,
    whole: Sequence[tuple[int, int]] = (),
    apart: Sequence[tuple[int, int]] = (),
) -> Iterator[Piece]:
    """Yield a text's segments and the text between them; joined, the pieces are the text.

    A segment contains a letter, and no white space at its ends. White space, line ends, bullets and numbers of list
    items, and sentences without letters are between segments. In mode `NO_NEWLINES` segments may contain line ends, but
    lists and empty lines end them; in mode `OFF` there is at most one segment. Separators are between segments in any
    mode.

    `language_code` determines which abbreviations do not end a sentence; English ones by default. No cut is within the
    spans `whole`, from start to before end, sorted and disjoint. Those `apart`, which are among them, are between
    segments.
    """
    end = 0
    for start, stop in _segments(text, language_code, mode, whole, apart):
        if start > end:
            yield Piece(text[end:start], is_segment=False)
        yield Piece(text[start:stop], is_segment=True)
        end = stop
    if end < len(text):
        yield Piece(text[end:], is_segment=False)


def _segments(
    text: str,
    language_code: str,
    mode: SplitSentences,
    whole: Sequence[tuple[int, int]],
    apart: Sequence[tuple[int, int]],
) -> Iterator[tuple[int, int]]:
    is_inside = inside(whole)
    dividing = _between_segments(text, language_code, is_inside, apart)
    starts = [start for start, _ in dividing]
    block_start = 0
    for block_end in paced(_block_ends(text, mode), every=16):
        if is_inside(block_end):
            continue
        if mode is not SplitSentences.OFF:
            bullet = _BULLET.match(text, block_start, block_end)
            block_start = bullet.end() if bullet and not is_inside(bullet.end()) else block_start
        between = dividing[bisect_left(starts, block_start) : bisect_left(starts, block_end)]
        edges = [block_start, *(edge for separator in between for edge in separator), block_end]
        for start, stop in paced(zip(edges[::2], edges[1::2], strict=True)):
            bounds = [start]
            if mode is not SplitSentences.OFF:
                block = text[start:stop]
                lengths = sentence_ends(block, language_code) if _has_letter(block) else ()
                bounds += [end for length in lengths if not is_inside(end := start + length)]
            for begun, done in pairwise((*bounds, stop)):
                segment = text[begun:done]
                if _has_letter(segment):
                    yield done - len(segment.lstrip()), begun + len(segment.rstrip())
        block_start = block_end


def _between_segments(
    text: str, language_code: str, is_inside: Callable[[int], bool], apart: Sequence[tuple[int, int]]
) -> Sequence[tuple[int, int]]:
    """Return what is between segments within lines: separators, and the spans `apart`."""
    found = [
        (start, end)
        for start, end in separators(text, language_code)
        if not (is_inside(start) or is_inside(start + 1) or is_inside(end))
    ]
    return sorted([*found, *apart]) if found else apart


def _has_letter(text: str) -> bool:
    return any(map(str.isalpha, text))


def _block_ends(text: str, mode: SplitSentences) -> Iterator[int]:
    """Yield the ends of lines or paragraphs, which segments never cross; the last one is the end of the text."""
    end = 0
    if mode is not SplitSentences.OFF:
        is_joined = mode is SplitSentences.NO_NEWLINES
        for line, following in pairwise(_lines(text)):
            end += len(line)
            if not (is_joined and _continues_paragraph(line, following)):
                yield end
    yield len(text)


def _lines(text: str) -> Iterator[str]:
    """Yield `text.splitlines(keepends=True)` lazily."""
    start = 0
    for found in _LINE_END.finditer(text):
        yield text[start : found.end()]
        start = found.end()
    if start < len(text):
        yield text[start:]


def _continues_paragraph(line: str, following: str) -> bool:
    is_apart = not line.strip() or not following.strip() or line.endswith(_PARAGRAPH_ENDS)
    return not is_apart and _BULLET.match(following) is None
