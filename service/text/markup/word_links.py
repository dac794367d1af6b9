"""Words of a source and its translation, and where in the source each word of the translation points."""

import heapq
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from service.domain.checkpoint import paced
from service.domain.translation import AlignedSpan
from service.text.spans import Span
from service.text.words import MARKS, UNSPACED

_PUNCTUATION = (
    r"!-/:-@\[-`{-~\u00a1\u00a7\u00ab\u00b6\u00b7\u00bb\u00bf\u055a-\u055f\u0589\u05be\u05f3\u05f4\u060c\u061b\u061f"
    r"\u066a-\u066d\u06d4\u0964\u0965\u2010-\u2027\u2030-\u205e\u3001-\u3003\u3008-\u3011\u3014-\u301f\u30fb"
    r"\uff01-\uff0f\uff1a-\uff20\uff3b-\uff40\uff5b-\uff65"
)
_LETTERS = rf"[^\s{_PUNCTUATION}{UNSPACED}]"
_WORD = re.compile(
    rf"(?P<word>{_LETTERS}++(?:[!-%'-*,-.:;?@\[-`{{}}~\u2019\u00b7\u2010\u2011]++{_LETTERS}++)*"
    rf"|(?![{_PUNCTUATION}])[{UNSPACED}][{MARKS}]*+)|\S"  # in scripts without spaces, each letter is a word
)

_LETTER = re.compile(rf"(?P<word>(?![{_PUNCTUATION}])\S[{MARKS}]*+)|\S")


@dataclass(frozen=True, slots=True)
class Word:
    """A word of a text; in HTML, a part that is kept unchanged is one word."""

    start: int
    end: int
    is_punctuation: bool
    is_kept: bool = False


def words(text: str, kept: Sequence[Span], *, are_letters: bool = False) -> list[Word]:
    """Split a text into words, or into letters with their marks; each kept part, in order, is one word."""
    pattern = _LETTER if are_letters else _WORD
    found: list[Word] = []
    done = 0
    for start, end in (*kept, Span(len(text), len(text))):
        found += (Word(*match.span(), match.lastgroup is None) for match in paced(pattern.finditer(text, done, start)))
        if start < end:
            found.append(Word(start, end, is_punctuation=False, is_kept=True))
        done = end
    return found


def is_punctuation(character: str) -> bool:
    """Return whether a character can't be part of a word."""
    match = _WORD.match(character)
    return match is not None and match.lastgroup is None


def names_and_numbers(text: str, text_words: Sequence[Word]) -> dict[str, int]:
    """Map words with a capital letter or a digit that occur once in `text` to their indices."""
    spelled = [text[word.start : word.end] for word in text_words]
    counts = Counter(spelled)
    return {
        word: index
        for index, word in enumerate(spelled)
        if counts[word] == 1 and any(character.isupper() or character.isdigit() for character in word)
    }


def points(
    target_words: Sequence[Word], source_length: int, target_length: int, alignment: Sequence[AlignedSpan]
) -> list[float]:
    """Return each word's position in the source, from the shortest alignment span over it; -1 if there is none."""
    links = [
        link
        for link in paced(alignment)
        if 0 <= link.source_start < link.source_end <= source_length
        and 0 <= link.target_start < link.target_end <= target_length
    ] or [AlignedSpan(0, source_length, 0, target_length)]
    links.sort(key=lambda link: link.target_start)
    found: list[float] = []
    over: list[tuple[int, int]] = []  # a heap: length and index of the links that have started
    begun = 0
    for word in paced(target_words):
        center = (word.start + word.end) / 2
        while begun < len(links) and links[begun].target_start <= center:
            heapq.heappush(over, (links[begun].target_end - links[begun].target_start, begun))
            begun += 1
        while over and links[over[0][1]].target_end <= center:
            heapq.heappop(over)
        if not over:
            found.append(-1.0)
            continue
        link = links[over[0][1]]
        share = (center - link.target_start) / (link.target_end - link.target_start)
        found.append(link.source_start + share * (link.source_end - link.source_start))
    return found
