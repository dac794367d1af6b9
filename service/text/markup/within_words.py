"""Elements and marks within a word, such as `<b>H</b>ello` and `Donau<wbr>dampf`.

A word is placed as a whole, as its parts have no translation. Within it, tags keep their distance in letters from the
nearer end.
"""

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate

from service.text.markup.block import Node
from service.text.markup.word_links import words
from service.text.spans import Span
from service.text.words import is_mark, is_word_boundary

_IN_NAME = re.compile(r"(?<=\w)(?:\(|\.(?=\w))|(?<=\w\.)(?=\w)")
_SEPARATOR = re.compile(r"([\W_]+)")


def group_within_words(root: Node, text: str, kept: Sequence[Span]) -> None:
    """Put nodes that are within the same word into a group, which is a node over the word.

    Of an element that begins or ends within a word and has others too, that tag is in the group.
    """
    nodes = [root]
    for node in nodes:
        nodes += node.children
    if all(_is_boundary(text, node.start) and _is_boundary(text, node.end) for node in nodes):
        return
    found = [Span(word.start, word.end) for word in words(text, kept)]
    starts = [word.start for word in found]

    def word_at(position: int) -> Span | None:
        if _is_boundary(text, position):
            return None
        index = bisect_right(starts, position) - 1
        return found[index] if index >= 0 and found[index].start < position < found[index].end else None

    pending = [root]
    while pending:
        parent = pending.pop()
        parent.children = _grouped(parent, text, word_at)
        pending += [child for child in parent.children if not child.is_group]


def _is_boundary(text: str, position: int) -> bool:
    """Return whether a position is not within a word, nor in a name with a sign: `apt|(8)`, `x-1.0|.tar.gz`."""
    return is_word_boundary(text, position) and not _IN_NAME.match(text, position)


def _grouped(parent: Node, text: str, word_at: Callable[[int], Span | None]) -> list[Node]:
    children, result = parent.children, list[Node]()
    index = 0
    while index < len(children):
        child = children[index]
        word = word_at(child.start) or word_at(child.end)
        if word is None or word.start < parent.start or parent.end < word.end:
            result.append(child)
            index += 1
            continue
        inner: list[Node] = []
        if child.start < word.start:  # it ends within the word, and only its end tag does
            result.append(child)
            inner += _cut_end(child, word, text)
            index += 1
        while index < len(children) and children[index].end <= word.end and children[index].start < word.end:
            inner.append(children[index])
            index += 1
        if index < len(children) and children[index].start < word.end:
            inner += _cut_start(children[index], word, text)
            if children[index].start < word.end:  # it has others that begin within the word
                result += inner
                result.append(children[index])
                index += 1
                continue
        if inner:
            result.append(Node(*word, children=inner, is_group=True))
    return result


def _cut_end(node: Node, word: Span, text: str) -> list[Node]:
    """Let an element end before a word; return its end tag as a node, if nothing that it contains is in the word."""
    if any(child.end > word.start for child in node.children):
        return []
    tag = Node(word.start, node.end, closing=node.closing)
    node.closing, node.end = "", word.start
    node.end -= node.start < node.end and text[node.end - 1] == " "
    return [tag]


def _cut_start(node: Node, word: Span, text: str) -> list[Node]:
    """Let an element begin behind a word; return its start tag as a node, as `_cut_end` its end tag."""
    if any(child.start < word.end for child in node.children):
        return []
    tag = Node(node.start, word.end, node.opening)
    node.opening, node.start = "", word.end
    node.start += node.start < node.end and text[node.start] == " "
    return [tag]


def placed_within(
    group: Node, source: str, translation: str, place: Span, *, is_whole: bool
) -> Iterator[tuple[int, int, str]]:
    """Yield the tags within a word, like `placement.insertions`; none within its new `place` if that `is_whole`."""
    tags: list[tuple[int, str]] = []
    changes: Counter[int] = Counter()  # how many more elements are around what follows an offset
    pending = [(node, False) for node in reversed(group.children)]
    while pending:
        node, is_closed = pending.pop()
        tags.append((node.end, node.closing) if is_closed else (node.start, node.opening))
        if not is_closed:
            changes.update({node.start: 1})
            changes.subtract({node.end: 1})
            pending.append((node, True))
            pending += [(child, False) for child in reversed(node.children)]
    offsets = sorted({group.start, group.end, *changes})
    inner = [offset - group.start for offset in offsets]
    start, end = place
    wanted = _wanted(source[group.start : group.end], inner, translation[start:end])
    is_within = [depth > 0 for depth in accumulate(changes[offset] for offset in offsets)]
    num_within = sum(is_within)  # parts of the word from here on that are in elements: each needs a letter
    places = {group.start: start}
    last = start
    for number, offset in enumerate(offsets[1:]):
        num_within -= is_within[number]
        last = max(last, min(max(start + wanted[number + 1], last + 1), end - num_within))
        last = end if is_whole else last
        while last < end - num_within and is_mark(translation[last]):
            last += 1
        places[offset] = last
    for offset, tag in tags:
        yield places[offset], places[offset], tag


def _wanted(word: str, offsets: Sequence[int], translation: str) -> list[int]:
    """Return the best offset in the translation of a word for each offset in the word, in order."""
    parts, translated = _SEPARATOR.split(word), _SEPARATOR.split(translation)
    if parts[1::2] != translated[1::2]:
        parts, translated = [word], [translation]
    result: list[int] = []
    begin = target = 0
    for part, other in zip(parts, translated, strict=True):
        while len(result) < len(offsets) and (place := offsets[len(result)] - begin) <= len(part):
            is_near_end = place > len(part) - place
            result.append(target + max(0, min(len(other), len(other) - len(part) + place if is_near_end else place)))
        begin += len(part)
        target += len(other)
    return result
