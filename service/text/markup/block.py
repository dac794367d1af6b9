"""A text of an HTML document, and its translation."""

from dataclasses import dataclass, field

from service.domain.translation import AlignedSpan
from service.text.markup.nodes import Node
from service.text.markup.spelling import Spelling
from service.text.spans import Span


@dataclass(frozen=True, slots=True)
class BlockTranslation:
    """The translation of a block's text; `alignment`, from the block's text to the translation, may be empty."""

    text: str
    alignment: tuple[AlignedSpan, ...] = ()


@dataclass(frozen=True, slots=True)
class Block:
    """A text between block-level tags as a reader sees it: without tags, decoded, white space collapsed, trimmed.

    `protected` are the parts of `text` that a translation must keep unchanged: the texts of elements that are copied
    with their tags, each as a unit.
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
