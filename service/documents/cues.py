"""The texts of subtitles: one for each speaker of a cue, and one for a sentence over several cues.

A cue keeps its number of lines, of about equal lengths, preferably broken after a sentence. The translation of a
sentence over several cues is divided in proportion to the lengths of their texts. Words with times of their own stay in
their cue. A line that two cues show, as in automatic or live captions that roll up, is one text.
"""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from service.documents.document import Slot, has_words
from service.documents.inline import InlineText, Kind, Piece, framed
from service.documents.line_breaks import broken_lines, shares
from service.documents.lines import Line
from service.text.abbreviations import open_words

_DASH = re.compile(r"\s*(?:[-–—‐]|(?:>|&gt;){2,3})(?=\s|[^\W\d])\s*")  # also >> of American captions
# Anna Smith: Hello. Or ANNA [WHISPERS]: Hello. Or [Anna Smith]: Hello.
_SPEAKER = re.compile(
    r"(?=.{1,40}:)(?P<name>(?P<is_in_brackets>\[)?[^\W\da-z_][\w.'’-]*+"
    r"(?:,? (?:[a-z]{2,3} )?+(?:[^\W\da-z_][\w.'’-]*+|\d++)){0,3}+(?(is_in_brackets)\]))"
    r"(?::(?=\s|\Z)\s*+|\s(?P<manner>(?=[\[(][^\[\]()]{1,30}[\])]:(?:\s|\Z))))"
)
VOICE = re.compile(r"<v(?:[\s.][^<>]*+)?>", re.IGNORECASE)  # of WebVTT
# A time within the text of a cue: of WebVTT, SubStation Alpha, timed text.
_TIMED = re.compile(r"<\d|\{[^{}]*\\k|<[^<>]*\sbegin\s*=", re.IGNORECASE)
_SPACE = " \t\r\n"
_MUSIC = "♪♫♬#"
_ENDED = re.compile(r"[.!?…‽:。！？؟।॥۔។։♪♫♬#)\]）】—–][\"'“”’»›」』]*$")
_COMMA = (",", "،", "、", "，", "-")
_MAX_CUES = 8  # of a sentence
_MAX_CHARACTERS = 500
# Shares of texts with a mark at their end: in files in which a missing one tells something, and, in longer ones, tells
# even before a capital letter that a sentence goes on.
_LEAST_ENDED, _MOSTLY_ENDED, _LONG_FILE = 0.3, 0.5, 5


@dataclass(frozen=True, slots=True)
class Notation:
    """A format's notation of cues: `tag` finds markup, `read` decodes the text between, and `write` encodes it.

    Tags of pairs have a group `name`, and the closing ones `close`; `br` is a line break, `mark` belongs to a word.
    """

    tag: re.Pattern[str]
    read: Callable[[str], str]
    write: Callable[[str], str]


@dataclass(frozen=True, slots=True)
class Cue:
    """The lines of a cue. A sentence goes on only in cues of the same `voice`."""

    lines: Sequence[Line]
    voice: str = ""


@dataclass(slots=True)
class Part:
    """One speaker's part of a cue: pieces over lines, from `start` to before `end` of the source."""

    line: int
    start: int
    ending: str
    voice: str
    speaker: str  # whose name is before the text
    is_reply: bool
    is_alone: bool  # no part of a sentence over several cues
    end: int = 0
    num_lines: int = 0
    pieces: list[Piece] = field(default_factory=list)

    @property
    def text(self) -> str:
        return "".join(piece.text for piece in self.pieces).strip()

    @property
    def is_sung(self) -> bool:
        return any(sign in piece.raw or piece.text.startswith("#") for sign in _MUSIC for piece in self.pieces)


def has_ended(text: str) -> bool:
    return _ENDED.search(text) is not None


def lines_between(source: str, start: int, end: int, number: int, ending: re.Pattern[str]) -> list[Line]:
    """Return the lines of a stretch that is at a line of this number; they end with what the group `ending` finds."""
    endings = [match.span() for match in ending.finditer(source, start, end) if match["ending"]]
    kept = min((source[begin:stop] for begin, stop in endings), default="")  # of SubStation's, \N if there is one
    starts, ends = [start, *(stop for _, stop in endings)], [*(begin for begin, _ in endings), end]
    found = []
    for begin, stop in zip(starts, ends, strict=True):
        text = source[begin:stop]
        found.append(Line(number, text.strip(_SPACE), begin + len(text) - len(text.lstrip(_SPACE)), kept))
    return found


def slots(source: str, cues: Sequence[Cue], notation: Notation) -> Iterator[Slot]:
    parts = list(_parts(cues, notation))
    texts = [part.text for part in parts]
    num_ended = sum(map(has_ended, texts))
    has_marks = num_ended >= _LEAST_ENDED * len(texts)
    is_punctuated = len(texts) >= _LONG_FILE and num_ended >= _MOSTLY_ENDED * len(texts)
    chain: list[Part] = []
    for part, text in zip(parts, texts, strict=True):
        if chain and not (
            has_words(text) and _is_continued(chain, part, has_marks=has_marks, is_punctuated=is_punctuated)
        ):
            yield _slot(source, chain, notation)
            chain = []
        if has_words(text):
            chain.append(part)
    if chain:
        yield _slot(source, chain, notation)


def _parts(cues: Sequence[Cue], notation: Notation) -> Iterator[Part]:
    shown = [[notation.read(notation.tag.sub("", line.text)).strip() for line in cue.lines] for cue in cues]
    speakers = _speakers(shown)
    rolled: list[set[str]] = [set() for _ in cues]  # lines that a neighbour shows, too
    for index, (before, after) in enumerate(pairwise(shown)):
        common = {*filter(has_words, {*before} & {*after})} if before != after else set()
        rolled[index] |= common
        rolled[index + 1] |= common
    before = []
    for cue, texts, of_neighbours in zip(cues, shown, rolled, strict=True):
        yield from _parts_of(cue, texts, notation, speakers, of_neighbours, is_again=texts == before)
        before = texts


def _speakers(shown: Sequence[Sequence[str]]) -> Collection[str]:
    """Return the names that begin several cues; in a transcript, in which most cues begin so, all names that begin one.

    One in capitals is a name if others are, or if a word in brackets follows, as in `ANNA [WHISPERS]:`.
    """
    found = [match for texts in shown for text in texts if (match := _speaker(text))]
    counts = Counter(match["name"] for match in found)
    is_transcript = 2 * sum(number for number in counts.values() if number > 1) >= len(shown)
    capitals = [match for match in found if match["name"].isupper()]
    sure = {match["name"] for match in capitals if match["manner"] is not None or len(capitals) > 1}
    return sure | {name for name, number in counts.items() if number > 1 or is_transcript}


def _speaker(text: str) -> re.Match[str] | None:
    dash = _DASH.match(text)
    return _SPEAKER.match(text, dash.end() if dash else 0)


def _is_name(name: re.Match[str] | None) -> bool:
    """Return whether it is a name even by itself: it has no small letters."""
    return name is not None and name["name"] == name["name"].upper()


def _parts_of(
    cue: Cue,
    shown: Sequence[str],
    notation: Notation,
    speakers: Collection[str],
    rolled: Collection[str],
    *,
    is_again: bool,
) -> Iterator[Part]:
    """Yield the parts of a cue whose lines show these texts; those that show nothing stay as they are."""
    has_replies = sum(bool(_DASH.match(text)) for text in shown) > 1
    found: list[Part] = []
    for line, text, before in zip(cue.lines, shown, ("", *shown), strict=False):
        if not text:
            continue
        is_reply = _DASH.match(text) is not None and (has_replies or not before or has_ended(before))
        name = _speaker(text)
        speaker = name["name"] if name and name["name"] in speakers else ""
        marks = [_DASH] * is_reply + [_SPEAKER] * bool(speaker)
        is_said_by = bool(found and found[-1].speaker and not has_words(found[-1].text))  # the line before is a name
        voice = VOICE.match(line.text)
        is_apart = bool(not before or is_reply or is_said_by or speaker or voice or _is_name(name))
        is_apart |= before in rolled or text in rolled or any(sign in line.text[:12] for sign in "♪♫♬")
        if is_apart:
            part = Part(
                line.number,
                line.start,
                cue.lines[0].ending or "\n",
                voice=(voice[0] if voice else "") + cue.voice,
                speaker=speaker or (found[-1].speaker if is_said_by else ""),
                is_reply=is_reply,
                is_alone=is_again or text in rolled,
            )
            found.append(part)
        else:
            part.pieces.append(Piece(Kind.TEXT, text=" "))
        pieces = list(_pieces(line.text, notation, marks))
        part.pieces += pieces
        part.num_lines += 1
        part.is_alone |= any(_TIMED.match(piece.raw) for piece in pieces)
        part.end = line.start + len(line.text)
    yield from found


def _pieces(text: str, notation: Notation, marks: list[re.Pattern[str]]) -> Iterator[Piece]:
    done = 0
    for match in [*notation.tag.finditer(text), None]:
        start = match.start() if match else len(text)
        while done < start and marks and (mark := marks[0].match(text, done, start)):
            yield Piece(Kind.ORDERED, mark[0])
            done = mark.end()
            marks = marks[1:]
        if done < start:
            if text[done:start].strip():
                marks = []
            yield Piece(Kind.TEXT, text=notation.read(text[done:start]))
        if match:
            yield Piece(_kind(match.groupdict()), match[0])
            done = match.end()


def _kind(groups: dict[str, str | None]) -> Kind:
    if groups.get("br"):
        return Kind.BREAK
    if groups.get("mark"):
        return Kind.MARK
    if not groups["name"]:
        return Kind.ORDERED
    return Kind.CLOSE if groups["close"] else Kind.OPEN


def _is_continued(chain: Sequence[Part], part: Part, *, has_marks: bool, is_punctuated: bool) -> bool:
    before, text, after = chain[-1], chain[-1].text, part.text
    if len(chain) == _MAX_CUES or sum(len(each.text) for each in chain) + len(after) > _MAX_CHARACTERS:
        return False
    if part.is_reply or part.is_alone or before.is_alone or part.is_sung or before.is_sung:
        return False
    if part.voice != before.voice or part.speaker not in ("", chain[0].speaker):
        return False
    if has_ended(text) or after[0] in "([（【-–—" or _is_name(_SPEAKER.match(after)):
        return False
    first = next(filter(str.isalnum, after))
    if text.endswith(_COMMA) or first.islower():
        return True
    if first.lower() == first.upper():
        return has_marks  # a number, or a script without capital letters
    last = re.split(r"\W+", text.lower())[-1]
    return last in open_words() or (is_punctuated and not text.isupper() and not after.isupper())


def _slot(source: str, chain: Sequence[Part], notation: Notation) -> Slot:
    frames = [framed(part.pieces) for part in chain]
    inline = InlineText([piece for _, inner, _ in frames for piece in (Piece(Kind.TEXT, text=" "), *inner)][1:])

    def write(translation: str) -> str:
        lengths = [len(part.text) for part in chain]
        output, done = [], chain[0].start
        for part, (before, _, after), share in zip(
            chain, frames, shares(inline.pieces(translation), lengths), strict=True
        ):
            lines = broken_lines([*before, *share, *after], notation.write, part.num_lines)
            output += [source[done : part.start], part.ending.join(lines)]
            done = part.end
        return "".join(output)

    return Slot(chain[0].start, chain[-1].end, inline.document_text(f"line {chain[0].line}"), write)
