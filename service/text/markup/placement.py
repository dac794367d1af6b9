"""Placement of the source's tags in its translation.

Tags keep their order, so elements keep their nesting and siblings their order. From the outside in, each element gets a
span of its parent's words:

1. Each word of the translation points at a position in the source: a number or a name that occurs once in either text
   at itself, other words according to the alignment; without any alignment at the same relative position.
2. Words that point into different siblings may be out of order. The longest sequence in which they are in order is kept
   (longest non-decreasing subsequence, O(n log n)); numbers and names have a higher weight.
3. The element gets the span of these words with the best balance: words that point into it count for it, words that
   point elsewhere against it (maximum subarray, O(n)). Punctuation at its border is included only if the source has
       any.
4. An element with text that got no word takes one between its neighbours.

Elements deeper than `_MAX_DEPTH` are placed by relative position, which makes the total time linear.
"""

import heapq
import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from service.domain.checkpoint import checkpoint, paced
from service.domain.translation import AlignedSpan
from service.text.scripts import MARKS, UNSPACED
from service.text.spans import Span

_MAX_DEPTH = 32
_ANCHOR_WEIGHT = 4

_PUNCTUATION = (
    r"!-/:-@\[-`{-~\u00a1\u00a7\u00ab\u00b6\u00b7\u00bb\u00bf\u055a-\u055f\u0589\u05be\u05f3\u05f4\u060c\u061b\u061f"
    r"\u066a-\u066d\u06d4\u0964\u0965\u2010-\u2027\u2030-\u205e\u3001-\u3003\u3008-\u3011\u3014-\u301f\u30fb"
    r"\uff01-\uff0f\uff1a-\uff20\uff3b-\uff40\uff5b-\uff65"
)
_LETTERS = rf"[^\s{_PUNCTUATION}{UNSPACED}]"
_WORD = re.compile(
    rf"(?P<word>{_LETTERS}++(?:[!-/:-@\[-`{{-~\u2019\u00b7\u2010\u2011]++{_LETTERS}++)*"
    rf"|(?![{_PUNCTUATION}])[{UNSPACED}][{MARKS}]*+)|\S"  # in scripts without spaces, each letter is a word
)


@dataclass(slots=True, eq=False)
class Node:
    """An element, or a mark without text, over the source's code points from `start` to before `end`.

    `opening` and `closing` are its tags as written, empty where a line break splits the element. `html` is its position
    in the document, from tag to tag. A node with text that `is_kept` is removed from the tree: the position of its text
    is its position.
    """

    start: int
    end: int
    opening: str = ""
    closing: str = ""
    children: "list[Node]" = field(default_factory=list)
    html: Span = field(default=Span(0, 0))
    is_kept: bool = False
    is_mark: bool = False
    is_spaced: bool = False  # a mark with white space before and after it
    need: int = 0  # number of words needed for each element with text in it to have one

    @property
    def has_text(self) -> bool:
        """Return whether the node contains anything but tags."""
        return self.start < self.end


def count_needs(root: Node) -> None:
    """Set `need` of all nodes under `root`, itself included."""
    nodes = [root]
    for node in nodes:
        nodes += node.children
    for node in reversed(nodes):
        node.need = max(int(node.has_text), sum(child.need for child in node.children))


def insertions(
    root: Node,
    source: str,
    translation: str,
    alignment: Sequence[AlignedSpan],
    kept: Sequence[tuple[Span, Span]] = (),
) -> Iterator[tuple[int, int, str]]:
    """Yield where to insert which tags into `translation`, in order, as (start, end, tags) with end = start.

    `kept` are the parts of the source that the translation contains unchanged, and their positions there: no tag is
    placed within those. `root` is not an element: it stands for the whole source. Spans of `alignment` may overlap, be
    unsorted or be out of range.
    """
    placer = _Placer(source, translation, alignment, kept)
    words = placer.words
    done = 0
    pending: list[tuple[Node, int, int, bool, int]] = [(root, 0, len(words), False, 0)]
    while pending:
        checkpoint()
        node, low, high, is_after, depth = pending.pop()
        if depth < 0:  # everything in it has been placed
            done = max(done, words[high - 1].end) if low < high else done
            yield done, done, node.closing
            continue
        if low < high:
            start = words[low].start
        elif is_after and low:
            start = words[low - 1].end
        else:
            start = words[low].start if low < len(words) else len(translation)
        if node is not root:
            start = max(start, done)
            # A mark between two words has its own space; within a word a space would split it.
            has_room = start in (0, len(translation)) or any(map(str.isspace, translation[start - 1 : start + 1]))
            yield start, start, node.opening + " " * (node.is_spaced and has_room)
            done = start
            pending.append((node, low, high, is_after, -1))
        regions = placer.regions(node, low, high, depth)
        pending += [
            (child, *region, depth + 1) for child, region in reversed(list(zip(node.children, regions, strict=True)))
        ]


@dataclass(frozen=True, slots=True)
class _Word:
    start: int
    end: int
    is_punctuation: bool


class _Placer:
    """A translation's words and, for each, the position in the source that it points at."""

    def __init__(
        self, source: str, translation: str, alignment: Sequence[AlignedSpan], kept: Sequence[tuple[Span, Span]]
    ) -> None:
        self.words = _words(translation, sorted(target for _, target in kept))
        target_starts = [word.start for word in self.words]
        self._source = source
        self._source_words = _words(source, sorted(part for part, _ in kept))
        self._source_starts = [word.start for word in self._source_words]
        self._points = _points(self.words, len(source), len(translation), alignment)
        self._weights = [1] * len(self.words)
        is_certain = bytearray(len(source))  # whether a position in the source occurs in the translation word for word
        source_places = _names_and_numbers(source, self._source_words)
        for name, place in _names_and_numbers(translation, self.words).items():
            if name in source_places:
                word = self._source_words[source_places[name]]
                self._points[place] = (word.start + word.end) / 2
                is_certain[word.start : word.end] = bytes([1]) * (word.end - word.start)
                self._weights[place] = _ANCHOR_WEIGHT
        for (start, end), target in kept:
            is_certain[start:end] = bytes([1]) * (end - start)
            index = bisect_left(target_starts, target.start)
            self._points[index] = (start + end) / 2
            self._weights[index] = _ANCHOR_WEIGHT
        self._first: dict[int, int] = {}  # source word -> first word that points at it
        self._last: dict[int, int] = {}
        for index, point in paced(enumerate(self._points)):
            if point >= 0 and is_certain[int(point)] and self._weights[index] != _ANCHOR_WEIGHT:
                self._points[index] = -1.0  # the text that it points at is elsewhere
                continue
            source_word = bisect_right(self._source_starts, point) - 1
            if source_word >= 0 and point < self._source_words[source_word].end:
                self._first.setdefault(source_word, index)
                self._last[source_word] = index

    def regions(self, parent: Node, low: int, high: int, depth: int) -> list[tuple[int, int, bool]]:
        """Return the words of each of `parent`'s children, from start to before end, all within `low` to `high`.

        A child without words is placed before the word `low`, or, if the third value is true, after the previous word.
        """
        elements = [child for child in parent.children if child.has_text]
        if len(elements) == 1 and (elements[0].start, elements[0].end) == (parent.start, parent.end):
            spans = [(low, high)]
        elif depth < _MAX_DEPTH:
            spans = _fitted(elements, self._aligned(elements, low, high), low, high)
        else:
            scale = (high - low) / max(1, parent.end - parent.start)
            relative = [
                (low + int((e.start - parent.start) * scale), low + int((e.end - parent.start) * scale))
                for e in elements
            ]
            spans = _fitted(elements, relative, low, high)
        regions: list[tuple[int, int, bool]] = []
        earliest, is_after_element = low, False
        following = iter([*spans, (high, high)])
        latest = next(following)
        for child in paced(parent.children):
            if child.has_text:
                regions.append((*latest, is_after_element))
                earliest, is_after_element = latest[1], True
                latest = next(following)
                continue
            border, is_after = self._border(child.start, parent, low, high)
            if border < earliest:
                border, is_after = earliest, is_after_element
            elif border > latest[0]:
                border, is_after = latest[0], latest[0] == high
            regions.append((border, border, is_after))
            earliest = border
        return regions

    def _border(self, position: int, parent: Node, low: int, high: int) -> tuple[int, bool]:
        """Return the word before which a tag at `position` belongs; if the second value is true, after the previous
        word.
        """
        if position <= parent.start:
            return low, False
        if position >= parent.end:
            return high, True
        following = bisect_right(self._source_starts, position - 1)
        touches_previous = self._source[position - 1] != " "
        before, after = self._first.get(following), self._last.get(following - 1)
        if before is not None and (after is None or not touches_previous):
            return before, False
        if after is not None:
            return after + 1, True
        return low + int((position - parent.start) / (parent.end - parent.start) * (high - low)), False

    def _aligned(self, elements: Sequence[Node], low: int, high: int) -> list[tuple[int, int]]:
        """Return the spans of siblings, sorted and disjoint, but perhaps with fewer words than they need."""
        starts = [element.start for element in elements]
        labels: list[int | None] = []  # index of the element that a word points into; -1: none of them; None: nowhere
        for point in paced(self._points[low:high]):
            label = bisect_right(starts, point) - 1
            is_within = label >= 0 and point < elements[label].end
            labels.append(None if point < 0 else label if is_within else -1)
        weights = self._weights[low:high]
        kept: dict[int, tuple[int, int]] = {}
        for index, kept_label in _longest_ordered(labels, weights):
            kept[kept_label] = (kept.get(kept_label, (index, 0))[0], index + 1)
        spans: list[tuple[int, int] | None] = []
        for label, element in paced(enumerate(elements)):
            if label not in kept:
                spans.append(None)
                continue
            start, end = _best_span(labels, weights, label, *kept[label])
            spans.append(self._without_punctuation(element, low + start, low + end))
        return self._completed(elements, spans, low, high)

    def _without_punctuation(self, element: Node, start: int, end: int) -> tuple[int, int]:
        """Return the span without punctuation at borders where the source has none."""
        while end - start > 1 and self.words[start].is_punctuation and not _is_punctuation(self._source[element.start]):
            start += 1
        while (
            end - start > 1
            and self.words[end - 1].is_punctuation
            and not _is_punctuation(self._source[element.end - 1])
        ):
            end -= 1
        return start, end

    def _completed(
        self, elements: Sequence[Node], spans: Sequence[tuple[int, int] | None], low: int, high: int
    ) -> list[tuple[int, int]]:
        """Return `spans` with a guess for each missing one: a word between its neighbours, or one of theirs."""
        complete: list[tuple[int, int]] = []
        index = 0
        while index < len(spans):
            span = spans[index]
            if span is not None:
                complete.append(span)
                index += 1
                continue
            end_index = index
            while end_index < len(spans) and spans[end_index] is None:
                end_index += 1
            start = complete[-1][1] if complete else low
            following = spans[end_index] if end_index < len(spans) else None
            end = following[0] if following else high
            if start == end and complete and complete[-1][1] - complete[-1][0] > elements[index - 1].need:
                complete[-1] = (complete[-1][0], start - 1)
                start -= 1
            between = [place for place in range(start, end) if not self.words[place].is_punctuation]
            between = between or list(range(start, end)) or [start]
            num_missing = end_index - index
            for missing in range(num_missing):
                place = between[(2 * missing + 1) * len(between) // (2 * num_missing)]
                complete.append((place, place))
            index = end_index
        return complete


def _words(text: str, kept: Sequence[Span]) -> list[_Word]:
    """Split a text into words; each kept part, in order, is one word."""
    words: list[_Word] = []
    done = 0
    for start, end in (*kept, Span(len(text), len(text))):
        words += (_Word(*match.span(), match.lastgroup is None) for match in paced(_WORD.finditer(text, done, start)))
        if start < end:
            words.append(_Word(start, end, is_punctuation=False))
        done = end
    return words


def _is_punctuation(character: str) -> bool:
    match = _WORD.match(character)
    return match is not None and match.lastgroup is None


def _names_and_numbers(text: str, words: Sequence[_Word]) -> dict[str, int]:
    """Map words with a capital letter or a digit that occur once in `text` to their indices."""
    spelled = [text[word.start : word.end] for word in words]
    counts = Counter(spelled)
    return {
        word: index
        for index, word in enumerate(spelled)
        if counts[word] == 1 and any(character.isupper() or character.isdigit() for character in word)
    }


def _points(
    words: Sequence[_Word], source_length: int, target_length: int, alignment: Sequence[AlignedSpan]
) -> list[float]:
    """Return each word's position in the source, from the shortest alignment span over it; -1 if there is none."""
    links = [
        link
        for link in paced(alignment)
        if 0 <= link.source_start < link.source_end <= source_length
        and 0 <= link.target_start < link.target_end <= target_length
    ] or [AlignedSpan(0, source_length, 0, target_length)]
    links.sort(key=lambda link: link.target_start)
    points: list[float] = []
    over: list[tuple[int, int]] = []  # a heap: length and index of the links that have started
    begun = 0
    for word in paced(words):
        center = (word.start + word.end) / 2
        while begun < len(links) and links[begun].target_start <= center:
            heapq.heappush(over, (links[begun].target_end - links[begun].target_start, begun))
            begun += 1
        while over and links[over[0][1]].target_end <= center:
            heapq.heappop(over)
        if not over:
            points.append(-1.0)
            continue
        link = links[over[0][1]]
        share = (center - link.target_start) / (link.target_end - link.target_start)
        points.append(link.source_start + share * (link.source_end - link.source_start))
    return points


def _longest_ordered(labels: Sequence[int | None], weights: Sequence[int]) -> list[tuple[int, int]]:
    """Return indices and labels of the heaviest non-decreasing subsequence of `labels`, ignoring `None` and negative
    ones.
    """
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


def _best_span(
    labels: Sequence[int | None], weights: Sequence[int], label: int, start: int, end: int
) -> tuple[int, int]:
    """Return the part of `start` to `end` with the most words of `label` minus those of others (maximum subarray)."""
    best, best_span = 0, (start, end)
    balance, first = 0, start
    for index in range(start, end):
        if balance <= 0:
            balance, first = 0, index
        found = labels[index]
        if found is not None:
            balance += weights[index] if found == label else -weights[index]
        if balance > best:
            best, best_span = balance, (first, index + 1)
    return best_span


def _fitted(elements: Sequence[Node], spans: Sequence[tuple[int, int]], low: int, high: int) -> list[tuple[int, int]]:
    """Move `spans` as little as needed so that they are sorted, disjoint, in bounds and have the words they need.

    If there are too few words, the first elements get them.
    """
    spare = high - low
    needs: list[int] = []
    for element in elements:
        needs.append(min(element.need, spare))
        spare -= needs[-1]
    reserved = sum(needs)
    fitted: list[tuple[int, int]] = []
    for (wanted_start, wanted_end), need in paced(zip(spans, needs, strict=True)):
        reserved -= need
        start = min(max(wanted_start, low), high - reserved - need)
        end = min(max(wanted_end, start + need), high - reserved)
        fitted.append((start, end))
        low = end
    return fitted
