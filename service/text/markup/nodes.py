"""The tree of the elements in a text of HTML."""

from bisect import bisect_left
from dataclasses import dataclass, field

from service.text.spans import Span


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
    is_spaced: bool = False  # with white space behind it, besides that in it, or before it if it has no text
    is_padded_before: bool = False  # begins with white space, which is no part of its text
    is_padded_after: bool = False
    is_group: bool = False  # no element: a word, whose `children` are around parts of it
    need: int = 0  # number of words needed for each element with text in it to have one
    need_with_letters: int = 0  # the same for elements that have more than punctuation, and words that are
    need_of_letters: int = 0  # the same if letters count as words

    @property
    def has_text(self) -> bool:
        """Return whether the node contains anything but tags."""
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
