"""What the cues of subtitles say: a text for each speaker of a cue, and one for a sentence over several cues.

A cue keeps its number of lines: a translation is broken at the spaces that make its longest line shortest. That of a
sentence over several cues is laid back over them in proportion to the lengths of what they said. Words with times of
their own stay in their cue, and a line that two cues show is a text, so that it is the same in both: captions of a
machine, or of live television, roll up, each with the last line of the one before.
"""

import functools
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby, pairwise

from service.documents.document import Slot, has_words
from service.documents.inline import InlineText, Kind, Piece, framed
from service.documents.line_breaks import broken_lines, shares, words
from service.documents.lines import Line
from service.text.abbreviations import open_words

_DASH = re.compile(r"\s*(?:[-–—‐]|(?:>|&gt;){2,3})(?=\s|[^\W\d])\s*")  # also >> of American captions
_VOICE = re.compile(r"<v[\s.>]", re.IGNORECASE)
_NAME = re.compile(r"[^\W\da-z_](?:[^\W\da-z_]|[ .'’-]){0,24}:\s")  # ANNA: Hello.
# Anna Smith: Hello. Or ANNA [WHISPERS]: Hello. Or [Anna Smith]: Hello.
_SPEAKER = re.compile(
    r"(?=.{1,40}:)(?P<name>(?P<is_in_brackets>\[)?[^\W\da-z_][\w.'’-]*+"
    r"(?:,? (?:[a-z]{2,3} )?+(?:[^\W\da-z_][\w.'’-]*+|\d++)){0,3}+(?(is_in_brackets)\]))"
    r"(?::(?=\s|\Z)\s*+|\s(?P<manner>(?=[\[(][^\[\]()]{1,30}[\])]:(?:\s|\Z))))"
)
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


@dataclass(slots=True)
class Part:
    """What one speaker says in one cue: pieces over lines, from `start` to before `end` of the source.

    `inner` are its pieces between those `before` and `after` the text, which never move.
    """

    line: int
    start: int
    ending: str
    end: int = 0
    num_lines: int = 1
    voice: str = ""
    speaker: str = ""  # whose name is before the text
    is_reply: bool = False
    is_alone: bool = False  # no part of a sentence over several cues
    has_letters: bool = False  # there are words
    pieces: list[Piece] = field(default_factory=list)
    before: list[Piece] = field(default_factory=list)
    inner: list[Piece] = field(default_factory=list)
    after: list[Piece] = field(default_factory=list)

    @property
    def text(self) -> str:
        return "".join(piece.text for piece in self.inner).strip()

    @property
    def is_sung(self) -> bool:
        return any(sign in piece.raw or piece.text.startswith("#") for sign in _MUSIC for piece in self.pieces)


def has_ended(text: str) -> bool:
    """Return whether a text has a mark at its end that ends a sentence."""
    return _ENDED.search(text) is not None


def lines_between(
    source: str, start: int, end: int, number: int, ending: re.Pattern[str], tag: re.Pattern[str]
) -> Iterator[list[Line]]:
    """Yield the lines of a stretch that is at a line of this number, in groups without those that have no text.

    They end with what the group `ending` finds.
    """
    endings = [match.span() for match in ending.finditer(source, start, end) if match["ending"]]
    kept = min((source[begin:stop] for begin, stop in endings), default="")  # of SubStation's, \N if there is one
    starts, ends = [start, *(stop for _, stop in endings)], [*(begin for begin, _ in endings), end]
    every = []
    for begin, stop in zip(starts, ends, strict=True):
        text = source[begin:stop]
        every.append(Line(number, text.strip(_SPACE), begin + len(text) - len(text.lstrip(_SPACE)), kept))
    for has_text, group in groupby(every, key=lambda line: bool(tag.sub("", line.text).strip())):
        if has_text:
            yield list(group)


def parts(
    cues: Sequence[Sequence[Line]], tag: re.Pattern[str], read: Callable[[str], str], voices: Sequence[str] = ()
) -> Iterator[Part]:
    """Yield what is said in cues, which may have a voice each.

    `tag` finds markup, and `read` decodes the text between.
    """
    bare = [[tag.sub("", line.text).strip() for line in cue] for cue in cues]
    speakers = _speakers(bare)
    rolled: list[set[str]] = [set() for _ in cues]  # lines that a neighbour shows, too
    for index, (before, after) in enumerate(pairwise(bare)):
        common = {*before} & {*after} if before != after else ()
        rolled[index] |= {*filter(has_words, common)}
        rolled[index + 1] |= rolled[index].intersection(common)
    for index, cue in enumerate(cues):
        is_again = index > 0 and bare[index] == bare[index - 1]
        for part in _parts(cue, bare[index], tag, read, speakers, rolled[index]):
            part.is_alone |= is_again
            part.voice += voices[index] if voices else ""
            part.before, part.inner, part.after = framed(part.pieces)
            yield part


def _speakers(bare: Sequence[Sequence[str]]) -> Collection[str]:
    """Return the names that begin several cues; in a transcript, in which most cues begin so, all names that begin one.

    One in capitals is a name if others are, or if a word in brackets follows, as in `ANNA [WHISPERS]:`.
    """
    found = [match for cue in bare for text in cue if (match := _SPEAKER.match(_without_dash(text)))]
    counts = Counter(match["name"] for match in found)
    is_transcript = 2 * sum(number for number in counts.values() if number > 1) >= len(bare)
    capitals = [match for match in found if match["name"].isupper()]
    sure = {match["name"] for match in capitals if match["manner"] is not None or len(capitals) > 1}
    return sure | {name for name, number in counts.items() if number > 1 or is_transcript}


def _without_dash(text: str) -> str:
    dash = _DASH.match(text)
    return text[dash.end() :] if dash else text


def _parts(
    lines: Sequence[Line],
    bare: Sequence[str],
    tag: re.Pattern[str],
    read: Callable[[str], str],
    speakers: Collection[str],
    rolled: Collection[str],
) -> Iterator[Part]:
    has_replies = sum(bool(_DASH.match(text)) for text in bare) > 1
    found: list[Part] = []
    for number, line in enumerate(lines):
        is_dashed = _DASH.match(bare[number]) is not None
        is_reply = is_dashed and (has_replies or number == 0 or has_ended(bare[number - 1]))
        name = _SPEAKER.match(_without_dash(bare[number]))
        speaker = name["name"] if name and name["name"] in speakers else ""
        is_apart = is_reply or bool(speaker or _NAME.match(bare[number]))
        is_apart |= any(sign in line.text[:12] for sign in "♪♫♬")
        is_apart |= bare[number] in rolled or (number > 0 and bare[number - 1] in rolled)
        is_said_by = bool(found and found[-1].speaker and not found[-1].has_letters)  # the line before is a name
        if not found or is_apart or is_said_by:
            speaker = speaker or (found[-1].speaker if is_said_by else "")
            found.append(Part(line.number, line.start, lines[0].ending or "\n", speaker=speaker, is_reply=is_reply))
        else:
            found[-1].pieces.append(Piece(Kind.TEXT, text=" "))
            found[-1].num_lines += 1
        marks = [_DASH] * is_reply + [_SPEAKER] * bool(speaker and name)
        for piece, start, end in _pieces(line, tag, read, marks):
            if _VOICE.match(piece.raw):
                if found[-1].has_letters:
                    if start == line.start:  # the line is not one of those before
                        found[-1].pieces.pop()
                        found[-1].num_lines -= 1
                    else:  # nor is the white space before it
                        spoken_parts = line.text[: start - line.start].rstrip()
                        last = found[-1].pieces[-1]
                        found[-1].pieces[-1] = Piece(last.kind, last.raw, last.text.rstrip())
                        found[-1].end = line.start + len(spoken_parts)
                    found.append(Part(line.number, start, lines[0].ending or "\n"))
                found[-1].voice = piece.raw
            found[-1].pieces.append(piece)
            found[-1].has_letters |= has_words(piece.text)
            found[-1].is_alone |= bare[number] in rolled or _TIMED.match(piece.raw) is not None
            found[-1].end = end
    yield from found


def _pieces(
    line: Line, tag: re.Pattern[str], read: Callable[[str], str], marks: Sequence[re.Pattern[str]]
) -> Iterator[tuple[Piece, int, int]]:
    """Yield the pieces of a line and where they are; `marks` are at the beginning of its text, in this order."""
    text, done = line.text, 0
    remaining = list(marks)
    for match in [*tag.finditer(text), None]:
        start = match.start() if match else len(text)
        while done < start and remaining and (mark := remaining[0].match(text, done, start)):
            yield Piece(Kind.ORDERED, mark[0]), line.start + done, line.start + mark.end()
            done = mark.end()
            remaining.pop(0)
        if done < start:
            if text[done:start].strip():
                remaining.clear()
            yield Piece(Kind.TEXT, text=read(text[done:start])), line.start + done, line.start + start
        if match:
            done = match.end()
            yield Piece(_kind(match.groupdict()), match[0]), line.start + start, line.start + done


def _kind(groups: dict[str, str | None]) -> Kind:
    if groups.get("br"):
        return Kind.BREAK
    if groups.get("mark"):
        return Kind.MARK
    if not groups["name"]:
        return Kind.ORDERED
    return Kind.CLOSE if groups["close"] else Kind.OPEN


def slots(source: str, spoken_parts: Sequence[Part], write: Callable[[str], str]) -> Iterator[Slot]:
    """Yield a slot for each text of `spoken_parts`; `write` encodes text."""
    texts = [part.text for part in spoken_parts]
    num_ended = sum(map(has_ended, texts))
    has_marks = num_ended >= _LEAST_ENDED * len(texts)
    is_punctuated = len(texts) >= _LONG_FILE and num_ended >= _MOSTLY_ENDED * len(texts)
    chain: list[Part] = []
    for part in spoken_parts:
        if chain and not (
            part.has_letters and _is_continued(chain, part, has_marks=has_marks, is_punctuated=is_punctuated)
        ):
            yield _slot(source, chain, write)
            chain = []
        if part.has_letters:
            chain.append(part)
    if chain:
        yield _slot(source, chain, write)


def _is_continued(chain: Sequence[Part], part: Part, *, has_marks: bool, is_punctuated: bool) -> bool:
    before, text, after = chain[-1], chain[-1].text, part.text
    if len(chain) == _MAX_CUES or sum(len(each.text) for each in chain) + len(after) > _MAX_CHARACTERS:
        return False
    if part.is_reply or part.is_alone or before.is_alone or part.is_sung or before.is_sung or _NAME.match(after):
        return False
    if part.voice != before.voice or part.speaker not in ("", chain[0].speaker):
        return False
    if has_ended(text) or after[0] in "([（【-–—":
        return False
    first = next(filter(str.isalnum, after))
    if text.endswith(_COMMA) or first.islower():
        return True
    if first.lower() == first.upper():
        return has_marks  # a number, or a script without capital letters
    last = re.split(r"\W+", text.lower())[-1]
    return last in open_words() or (is_punctuated and not text.isupper() and not after.isupper())


def _slot(source: str, chain: Sequence[Part], write: Callable[[str], str]) -> Slot:
    pieces = list(chain[0].inner)
    for part in chain[1:]:
        pieces += (Piece(Kind.TEXT, text=" "), *part.inner)
    inline = InlineText(pieces)
    document_text = inline.document_text(f"line {chain[0].line}")
    return Slot(chain[0].start, chain[-1].end, document_text, functools.partial(_written, source, chain, inline, write))


def _written(
    source: str, chain: Sequence[Part], inline: InlineText, write: Callable[[str], str], translation: str
) -> str:
    found = inline.pieces(translation)
    output = []
    for number, (part, share) in enumerate(zip(chain, shares(found, [len(part.text) for part in chain]), strict=True)):
        if number:
            output.append(source[chain[number - 1].end : part.start])
        pieces = [*part.before, *share, *part.after]
        output.append(part.ending.join(broken_lines(words(pieces), write, part.num_lines)))
    return "".join(output)
