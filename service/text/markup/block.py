"""A text of an HTML document: the tree of its elements, how it is written, and its translation."""

import re
from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from service.domain.translation import AlignedSpan
from service.text.markup.parts import decoded
from service.text.spans import Span

_NO_BREAK = re.compile("&nbsp;?|&#0*160;|&#[xX]0*[aA]0;|\u00a0")
_LESS_THAN = re.compile(r"<(?![\s=])")  # followed by these, it can't begin a tag


class Spelling(NamedTuple):
    """Spelling of the three signs of markup, which may be unescaped, and of a no-break space."""

    has_ampersands: bool = False
    has_less_than: bool = False
    has_greater_than: bool = False
    no_break: str = "&nbsp;"

    def written(self, text: str) -> str:
        """Escape a text so that a browser reads just that text."""
        if "&" in text and not (self.has_ampersands and decoded(text) == text):
            text = text.replace("&", "&amp;")
        if "<" in text:
            text = _LESS_THAN.sub("&lt;", text) if self.has_less_than else text.replace("<", "&lt;")
        if ">" in text and not self.has_greater_than:
            text = text.replace(">", "&gt;")
        return text.replace("\u00a0", self.no_break)


def spelling(texts: Iterable[str]) -> Spelling:
    found = list(texts)
    no_break = next((match[0] for raw in found if (match := _NO_BREAK.search(raw))), "&nbsp;")
    return Spelling(
        _is_bare(found, "&", "&amp") and any("&" in decoded(raw) for raw in found if "&" in raw),
        _is_bare(found, "<", "&lt"),
        _is_bare(found, ">", "&gt"),
        no_break,
    )


def _is_bare(texts: Iterable[str], sign: str, reference: str) -> bool:
    return any(sign in raw for raw in texts) and not any(reference in raw for raw in texts)


@dataclass(slots=True, eq=False)
class Node:
    """An element, or a mark without text, over the source's code points from `start` to before `end`.

    `opening` and `closing` are its tags as written, empty where a line break splits the element; `html` is its position
    in the document, tags included. A node with text that `is_kept` is removed from the tree, and has its text's
    position.
    """

    start: int
    end: int
    opening: str = ""
    closing: str = ""
    children: "list[Node]" = field(default_factory=list)
    html: Span = field(default=Span(0, 0))
    is_kept: bool = False
    is_spaced: bool = False  # with white space behind it, besides that in it, or before it if it has no text
    is_space: bool = False  # a mark with the white space before it
    is_padded_before: bool = False  # begins with white space, which is no part of its text
    is_padded_after: bool = False
    is_group: bool = False  # no element: a word, whose `children` are around parts of it
    need: int = 0  # number of words needed for each element with text in it to have one
    need_with_letters: int = 0  # the same for elements that have more than punctuation, and words that are
    need_of_letters: int = 0  # the same if letters count as words

    @property
    def has_text(self) -> bool:
        return self.start < self.end


def count_needs(root: Node, text: str) -> None:
    """Set the needs of all nodes under `root`, itself included."""
    nodes = [root]
    for node in nodes:
        nodes += node.children
    letters = [place for place, character in enumerate(text) if character.isalnum()] if len(nodes) > 1 else []
    for node in reversed(nodes):
        following = bisect_left(letters, node.start)
        has_letters = following < len(letters) and letters[following] < node.end
        node.need_of_letters = max(int(has_letters), sum(child.need_of_letters for child in node.children))
        children = () if node.is_group else node.children
        node.need = max(int(node.has_text), sum(child.need for child in children))
        node.need_with_letters = max(int(has_letters), sum(child.need_with_letters for child in children))


@dataclass(frozen=True, slots=True)
class BlockTranslation:
    """The translation of a block's text; `alignment`, from the block's text to the translation, may be empty."""

    text: str
    alignment: tuple[AlignedSpan, ...] = ()


@dataclass(frozen=True, slots=True)
class Block:
    """A text between block-level tags as a reader sees it: without tags, decoded, white space collapsed, trimmed.

    `protected` parts of `text` stay: the texts of elements that are copied with their tags, each as a unit.
    """

    text: str
    protected: tuple[Span, ...]
    _root: Node = field(repr=False, compare=False)
    _kept: tuple[Span, ...] = field(repr=False, compare=False)  # the HTML of each of `protected`, tags included
    _start: int = field(repr=False, compare=False)
    _end: int = field(repr=False, compare=False)
    _before: str = field(repr=False, compare=False)
    _after: str = field(repr=False, compare=False)
    _spelling: Spelling = field(repr=False, compare=False)

    @property
    def needs_alignment(self) -> bool:
        """Return whether there are tags within the text, apart from those around all of it or in protected parts."""
        pending = list(self._root.children)
        while pending:
            node = pending.pop()
            if 0 < node.start < len(self.text) or 0 < node.end < len(self.text):
                return True
            pending += node.children
        return False
