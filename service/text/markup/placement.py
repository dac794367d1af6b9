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
4. An element with text that got no word takes one between its neighbours. If there are too few words for all, letters
    count as words: a word in two elements reads as before, and no element with text is ever empty.
5. Elements within a word are around the same part of the word in its place (`within_words`).

Elements deeper than `_MAX_DEPTH` are placed by relative position, which makes the total time linear.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate, groupby

from service.domain.checkpoint import checkpoint, paced
from service.domain.translation import AlignedSpan
from service.text.markup.block import Node
from service.text.markup.within_words import placed_within
from service.text.markup.word_links import (
    Word,
    best_span,
    fitted,
    is_punctuation,
    longest_ordered,
    names_and_numbers,
    points,
    with_letters,
    words,
)
from service.text.spans import Span

_MAX_DEPTH = 32
_ANCHOR_WEIGHT = 4
_NEARBY = 6  # words
_END = 4  # characters, such as the signs at the end of a sentence


def insertions(
    root: Node, source: str, translation: str, alignment: Sequence[AlignedSpan], kept: Sequence[tuple[Span, Span]] = ()
) -> Iterator[tuple[int, int, str]]:
    """Yield the tags to insert into `translation`, in order, as (start, end, tags); only elements of a space replace
    one.

    `kept` are the source's parts that the translation contains unchanged, and their positions there: no tag is placed
    within those. `root` stands for the whole source. Spans of `alignment` may overlap, be unsorted or be out of range.
    """
    placer = _Placer(source, translation, alignment, kept, root.need_with_letters)
    words = placer.words
    done = 0
    pending: list[tuple[Node, int, int, bool, int]] = [(root, 0, len(words), False, 0)]
    while pending:
        checkpoint()
        node, low, high, is_after, depth = pending.pop()
        if depth < 0:  # everything in it has been placed
            done = max(done, words[high - 1].end) if low < high else done
            done += node.is_padded_after and translation[done : done + 1] == " "
            # A mark between two words has its own space; within a word a space would split it.
            has_room = done in (0, len(translation)) or any(map(str.isspace, translation[done - 1 : done + 1]))
            yield done, done, node.closing + " " * (node.is_spaced and not node.has_text and has_room)
            continue
        if low < high:
            start = words[low].start
        elif is_after and low:
            start = words[low - 1].end
        else:
            start = words[low].start if low < len(words) else len(translation)
        start = max(start, done)
        if node.is_group:
            end = max(start, words[high - 1].end) if low < high else start
            word = _longest_changeable(words[low:high])
            yield from placed_within(node, source, translation, word or Span(start, end), is_whole=word is None)
            done = end
            continue
        if node is not root:
            start -= node.is_padded_before and done < start and translation[start - 1] == " "
            space, end = "", start
            if node.is_space:  # in place of the translation's
                start -= done < start and translation[start - 1] == " "
                end = start + (translation[start : start + 1] == " ")
            elif not node.has_text and start and source[max(0, node.start - 1) : node.start] == " ":
                start += translation[start : start + 1] == " "
                is_at_end = len(source) - node.start < _END and translation[start:] == source[node.start :]
                space = " " * (is_at_end and not translation[start - 1].isspace())
                end = start
            yield start, end, space + node.opening
            done = end
            pending.append((node, low, high, is_after, -1))
        regions = placer.regions(node, low, high, depth)
        pending += [
            (child, *region, depth + 1) for child, region in reversed(list(zip(node.children, regions, strict=True)))
        ]


def _longest_changeable(found: Sequence[Word]) -> Span | None:
    """Return where the most words in a row are that are not kept, in which alone tags may be."""
    runs = [list(run) for is_kept, run in groupby(found, key=lambda word: word.is_kept) if not is_kept]
    return max((Span(run[0].start, run[-1].end) for run in runs), key=lambda run: run.end - run.start, default=None)


class _Placer:
    """A translation's words and, for each, the position in the source that it points at."""

    def __init__(
        self,
        source: str,
        translation: str,
        alignment: Sequence[AlignedSpan],
        kept: Sequence[tuple[Span, Span]],
        num_words: int,
    ) -> None:
        """Split the translation into words; into letters if there are fewer than `num_words`."""
        places = sorted(target for _, target in kept)
        self.words = words(translation, places)
        self._are_letters = sum(not word.is_punctuation for word in self.words) < num_words
        if self._are_letters:
            self.words = words(translation, places, are_letters=True)
        self._num_before = [0, *accumulate(not word.is_punctuation for word in self.words)]
        target_starts = [word.start for word in self.words]
        self._source = source
        self._source_words = words(source, sorted(part for part, _ in kept))
        self._source_starts = [word.start for word in self._source_words]
        self._points = points(self.words, len(source), len(translation), alignment)
        self._weights = [1] * len(self.words)
        is_certain = bytearray(len(source))  # whether a position in the source occurs in the translation word for word
        source_places = names_and_numbers(source, self._source_words)
        for name, place in names_and_numbers(translation, self.words).items():
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
            spans = self._fitted(elements, self._aligned(elements, low, high), low, high)
        else:
            scale = (high - low) / max(1, parent.end - parent.start)
            relative = [
                (low + int((e.start - parent.start) * scale), low + int((e.end - parent.start) * scale))
                for e in elements
            ]
            spans = fitted([element.need for element in elements], relative, low, high)
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

    def _fitted(
        self, elements: Sequence[Node], wanted: Sequence[tuple[int, int]], low: int, high: int
    ) -> list[tuple[int, int]]:
        """Return the spans of siblings, in order, with the words that each needs."""
        if self._are_letters:
            needs = [element.need_of_letters for element in elements]
            return with_letters(needs, fitted(needs, wanted, low, high), low, high, self._num_before)
        spans = fitted([element.need for element in elements], wanted, low, high)
        return with_letters([element.need_with_letters for element in elements], spans, low, high, self._num_before)

    def _border(self, position: int, parent: Node, low: int, high: int) -> tuple[int, bool]:
        """Return the word before which a tag at `position` belongs, and whether it comes right after the one before."""
        if position <= parent.start:
            return low, False
        if position >= parent.end:
            return high, True
        following = bisect_right(self._source_starts, position - 1)
        touches_previous = self._source[position - 1] != " "
        before, after = self._first.get(following), self._last.get(following - 1)
        if before is not None and (after is None or not touches_previous):
            return before, touches_previous
        if after is not None:
            return after + 1, True
        guess = low + int((position - parent.start) / (parent.end - parent.start) * (high - low))
        if touches_previous:  # what it touches may be an abbreviation's point, which has no place of its own
            nearby = (self._last.get(word) for word in range(following - 2, max(-1, following - _NEARBY), -1))
            return next((place + 1 for place in nearby if place is not None), guess), True
        return guess, False

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
        for index, kept_label in longest_ordered(labels, weights):
            kept[kept_label] = (kept.get(kept_label, (index, 0))[0], index + 1)
        spans: list[tuple[int, int] | None] = []
        for label, element in paced(enumerate(elements)):
            if label not in kept:
                spans.append(None)
                continue
            start, end = best_span(labels, weights, label, *kept[label])
            spans.append(self._without_punctuation(element, low + start, low + end))
        return self._completed(elements, spans, low, high)

    def _without_punctuation(self, element: Node, start: int, end: int) -> tuple[int, int]:
        """Return the span without punctuation at borders where the source has none."""
        while end - start > 1 and self.words[start].is_punctuation and not is_punctuation(self._source[element.start]):
            start += 1
        while (
            end - start > 1 and self.words[end - 1].is_punctuation and not is_punctuation(self._source[element.end - 1])
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
