"""Words of a source and its translation, and where in the source each word of the translation points."""

import heapq
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from service.domain.checkpoint import paced
from service.domain.translation import AlignedSpan
from service.text.spans import Span
from service.text.words import MARKS, UNSPACED

_PUNCTUATION = (
    r"!-/:-@\[-`{-~\u00a1\u00a7\u00ab\u00b6\u00b7\u00bb\u00bf\u055a-\u055f\u0589\u05be\u05f3\u05f4\u060c\u061b\u061f"
    r"\u066a-\u066d\u06d4\u0964\u0965\u2010-\u2027\u2030-\u205e\u2190-\u21ff\u2500-\u26ff\u3001-\u3003\u3008-\u3011\u3014-\u301f\u30fb"
    r"\uff01-\uff0f\uff1a-\uff20\uff3b-\uff40\uff5b-\uff65"
)
_LETTERS = rf"[^\s{_PUNCTUATION}{UNSPACED}]"
_ARGUMENT = r"%(?:\d{1,2}\$)?l{0,2}[@a-zA-Z](?![a-zA-Z])"  # of a program's string, which may touch another one
_WORD = re.compile(
    rf"(?P<word>{_ARGUMENT}|{_LETTERS}++(?:(?!}}{{|{_ARGUMENT})[!-%'-*,-.:;?@\[-`{{}}~\u2019\u00b7\u2010\u2011]++{_LETTERS}++)*"
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
            is_sign = not any(map(str.isalnum, text[start:end]))
            found.append(Word(start, end, is_punctuation=is_sign, is_kept=True))
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


def longest_ordered(labels: Sequence[int | None], weights: Sequence[int]) -> list[tuple[int, int]]:
    """Return indices and labels of the heaviest non-decreasing subsequence, ignoring `None` and negative labels."""
    last_labels: list[int] = []  # of the best subsequence of each weight: its last label,
    last_indices: list[int] = []  # and the index of that
    previous: dict[int, int] = {}
    for index, label in paced(enumerate(labels)):
        if label is None or label < 0:
            continue
        for copy in range(weights[index]):
            place = bisect_right(last_labels, label)
            if copy == 0 and place:
                previous[index] = last_indices[place - 1]
            last_labels[place : place + 1] = [label]
            last_indices[place : place + 1] = [index]
    chosen: list[tuple[int, int]] = []
    last = last_indices[-1] if last_indices else None
    while last is not None:
        label = labels[last]
        assert label is not None
        chosen.append((last, label))
        last = previous.get(last)
    return chosen[::-1]


def best_span(
    labels: Sequence[int | None], weights: Sequence[int], label: int, start: int, end: int
) -> tuple[int, int]:
    """Return the part of `start` to `end` with the most words of `label` minus those of others (maximum subarray)."""
    best, span = 0, (start, end)
    balance, first = 0, start
    for index in range(start, end):
        if balance <= 0:
            balance, first = 0, index
        found = labels[index]
        if found is not None:
            balance += weights[index] if found == label else -weights[index]
        if balance > best:
            best, span = balance, (first, index + 1)
    return span


def fitted(wanted_needs: Sequence[int], spans: Sequence[tuple[int, int]], low: int, high: int) -> list[tuple[int, int]]:
    """Move `spans` as little as needed so that they are sorted, disjoint, in bounds and have the words they need.

    `wanted_needs` has the number of words that each needs. If there are too few words, the first spans get them.
    """
    spare = high - low
    needs: list[int] = []
    for need in wanted_needs:
        needs.append(min(need, spare))
        spare -= needs[-1]
    reserved = sum(needs)
    result: list[tuple[int, int]] = []
    for (wanted_start, wanted_end), need in paced(zip(spans, needs, strict=True)):
        reserved -= need
        start = min(max(wanted_start, low), high - reserved - need)
        end = min(max(wanted_end, start + need), high - reserved)
        result.append((start, end))
        low = end
    return result


def with_letters(
    needs: Sequence[int], spans: Sequence[tuple[int, int]], low: int, high: int, num_before: Sequence[int]
) -> list[tuple[int, int]]:
    """Move `spans`, sorted and disjoint, like `fitted`, so that each has the words without punctuation that it `needs`.

    `num_before` counts those before each word, and before the end. If there are too few in all, the spans stay.
    """
    found = [(num_before[start], num_before[end]) for start, end in spans]
    if all(end - start >= need for (start, end), need in zip(found, needs, strict=True)):
        return list(spans)
    first, last = num_before[low], num_before[high]
    if last - first < sum(needs):
        return list(spans)
    places = [*(index for index in range(low, high) if num_before[index] < num_before[index + 1]), high]
    result: list[tuple[int, int]] = []
    for span, before, (start, end) in zip(spans, found, fitted(needs, found, first, last), strict=True):
        if (start, end) == before:
            result.append(span)
        elif start == end:
            result.append((places[start - first], places[start - first]))
        else:
            result.append((places[start - first], places[end - first - 1] + 1))
    return fitted([0] * len(result), result, low, high)
