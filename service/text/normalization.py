"""Forms of a text that look alike, and their positions in the text as written."""

import re
import unicodedata
from collections.abc import Sequence
from typing import NamedTuple

from service.domain.checkpoint import paced
from service.text.spans import Offsets, Span, inside, replaced
from service.text.words import MARKS, is_unspaced

# Line ends, \x1f and the sequences that colour a terminal's text are not among them.
_CONTROLS = r"\x00-\x08\x0e-\x1a\x7f-\x84\x86-\x9f"
_FORMATS = r"\xad\u034f\u061c\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufeff\ufff9-\ufffb"
_JOINERS = r"\u200b-\u200d"
_INVISIBLE = re.compile(rf"[{_CONTROLS}{_FORMATS}{_JOINERS}]|\x1b(?!\[)")
_ANY_INVISIBLE = re.compile(rf"[{_CONTROLS}\x1b{_FORMATS}{_JOINERS}]")  # a set alone, which `re` finds fast
_ZERO_WIDTH_SPACE = "\u200b"
_APOSTROPHES = str.maketrans(dict.fromkeys("’‘‛ʼ′´＇", "'"))
_LINE_ENDS = r"\n\r\v\f\x1c-\x1e\x85\u2028\u2029"
# White space within a line, and marks with what they belong to, in runs of bounded length: their order takes quadratic
# time.
_SPACES = rf"[^\S{_LINE_ENDS}]"
_VARIANT = re.compile(
    rf"{_SPACES}{{2,}}|[^\S {_LINE_ENDS}]|.[{MARKS}]{{1,30}}|[\u1100-\u11ff]{{2,3}}|[^\x00-\u02ff]", re.S
)
# A line that ends within a word; but the hyphen of "pre- and post-war" is none of a cut.
_CUT = re.compile(r"[-\u2010¬\xad](?<=\w[-\u2010¬\xad])(?:\r\n|[\n\r])[ \t]*(?=[^\W\d_])")
_LINKING = re.compile(r"(?:and|or|nor|to|und|oder|bis|bzw|sowie|et|ou|e|y|o|i|en|of|och|и|или)\b")
# A first word that English writes with a hyphen, before a word, no ending: "well-known", not "wellness".
_COMPOUND = re.compile(r"(?:half|self|well)[-\u2010]\s{1,40}(?!hood|less|ness)[a-z]{4}")
_WORD = re.compile(r"\w{1,40}")
_WORD_AT_END = re.compile(r"\w{1,40}\Z")
_HYPHENATED = re.compile(r"(\w{1,40})[-\u2010](?=(\w{1,40}))")


def has_invisible(text: str) -> bool:
    """Return whether `visible` may change a text."""
    return _ANY_INVISIBLE.search(text) is not None


class Visible(NamedTuple):
    """A text as a reader sees it; `kept` in it, and positions of it in the text, unless they are equal."""

    text: str
    kept: Sequence[tuple[int, int]]
    offsets: Offsets | None


def line_cuts(text: str) -> list[Span]:
    """Return the hyphens and line ends within words that were cut at the end of a line.

    The hyphen stays in a word that the text has elsewhere with it, such as "well-known", and before a capital or a
    number.
    """
    cuts = list(paced(_CUT.finditer(text)))
    hyphenated = {(first.lower(), last.lower()) for first, last in _HYPHENATED.findall(text)} if cuts else set()
    spans = []
    for start, end in (found.span() for found in cuts):
        first = _WORD_AT_END.search(text, max(0, start - 40), start)
        last = _WORD.match(text, end)
        if first and last and not _LINKING.match(text, end):
            is_one_word = first[0][-1].islower() and last[0][0].islower()
            keeps_hyphen = not is_one_word or _COMPOUND.match(text, first.start()) is not None
            keeps_hyphen |= (first[0].lower(), last[0].lower()) in hyphenated
            spans.append(Span(start + keeps_hyphen, end))
    return spans


def visible(text: str, kept: Sequence[tuple[int, int]] = (), *, joins_lines: bool = False) -> Visible:
    """Return a text without invisible characters that mean nothing to a reader.

    These are control characters, soft hyphens, word joiners, byte order marks and marks of direction; joiners, except
    in scripts that need them (Arabic's, India's) and emoji; and zero-width spaces, except in scripts without spaces. If
    it `joins_lines`, words cut at a line's end are joined. `kept` parts, sorted and disjoint, stay.
    """
    cuts = line_cuts(text) if joins_lines else ()
    if not cuts and not has_invisible(text):
        return Visible(text, kept, None)
    is_kept = inside([Span(start - 1, end) for start, end in kept])
    signs = (found.start() for found in paced(_INVISIBLE.finditer(text)))
    spans = {place: Span(place, place + 1) for place in signs if not _is_needed(text, place)}
    spans.update((span.start, span) for span in cuts)
    removed = sorted(span for place, span in spans.items() if not is_kept(place))
    if not removed:
        return Visible(text, kept, None)
    form, edits = replaced(text, ((span, "") for span in removed))
    moved = Offsets(edits)
    return Visible(form, [moved.span(*span) for span in kept], Offsets.back(edits))


def normalized(text: str) -> tuple[str, Offsets | None]:
    """Return a text in the form in which terms are compared, and positions of that in `text`, unless they are equal.

    It is in NFC, with a space for each run of white space within a line, and `'` for all apostrophes.
    """
    if text.isascii() and "  " not in text and "\t" not in text:
        return text, None
    text = text.translate(_APOSTROPHES)
    form, edits = replaced(
        text,
        (
            (found.span(), same)
            for found in paced(_VARIANT.finditer(text))
            if (same := " " if found[0].isspace() else unicodedata.normalize("NFC", found[0])) != found[0]
        ),
    )
    return form, Offsets.back(edits) if edits else None


def _is_needed(text: str, place: int) -> bool:
    """Return whether a joiner, or a zero-width space, means something between its neighbours."""
    sign = text[place]
    if not "\u200b" <= sign <= "\u200d" or not 0 < place < len(text) - 1:
        return False
    before, after = text[place - 1], text[place + 1]
    if sign == _ZERO_WIDTH_SPACE:
        return is_unspaced(before) and is_unspaced(after)
    return all(
        character >= "\u0600" and not "\u1e00" <= character <= "\u206f" and not character.isspace()
        for character in (before, after)
    )
