"""Reading of a block: its text, the tree of its elements, and their kept parts."""

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate

from service.domain.checkpoint import paced
from service.text.markup.block import Block, Node, count_needs, spelling
from service.text.markup.parts import Part, Role, decoded, partners, shown
from service.text.markup.raised import glued
from service.text.markup.signs import with_signs
from service.text.markup.within_words import group_within_words
from service.text.normalization import line_cuts
from service.text.spans import Span, masked, replaced

_SPACE = "\t\n\f\r "
_SPACES = re.compile(f"[{_SPACE}]+")
_SOFT_HYPHEN = "\xad"  # in place of what cut a word, as the model reads it whole
_WHITE_SPACE = _SPACE + "\u00a0\u2002\u2003\u2009\u202f\u3000\u200b\ufeff"
_BLANK_REFERENCES = ("&nbsp;", "&#160;", "&#xa0;", "&#xA0;", "&ensp;", "&emsp;", "&thinsp;")
_NO_WORDS = re.compile(r"\s{1,8}")  # of an element: no-break spaces
_JOINT = re.compile("[ ]?[+-][ ]?")
_BLANK = re.compile(f"(?:[{_WHITE_SPACE}]|{'|'.join(_BLANK_REFERENCES)})++")


def read_blocks(html: str, run: Sequence[Part]) -> Iterator[Block]:
    """Yield the blocks of the parts between two boundaries, if they contain anything to translate."""
    if not any(part.role is Role.TEXT and not html[part.start : part.end].isspace() for part in run):
        return
    text: list[Part] = []
    for part in with_signs(html, run):
        if part.role is Role.LINE_BREAK:
            yield from _read_block(html, text)
            text = []
        else:
            text.append(part)
    yield from _read_block(html, text)


def _read_block(html: str, run: Sequence[Part]) -> Iterator[Block]:
    run = _framed(html, _with_joints(html, glued(html, run)))
    if not any(part.role is Role.TEXT for part in run):
        return
    reading = _Reading(html)
    for part in paced(run):
        reading.add(part)
    text = reading.text()
    if not text:
        return
    root = Node(0, len(text), children=reading.nodes)
    _trim(root, text)
    kept = _take_kept(root, text)
    protected = tuple(Span(node.start, node.end) for node in kept)
    if protected and masked(text, protected, " ").isspace():  # there is nothing else
        return
    group_within_words(root, text, protected)
    count_needs(root, text)
    yield Block(
        text,
        protected,
        root,
        tuple(node.html for node in kept),
        run[0].start,
        run[-1].end,
        reading.before,
        reading.after,
        spelling([html[part.start : part.end] for part in run if part.role is Role.TEXT]),
    )


class _Reading:
    """The block read so far; `before` and `after` are the white space around its text."""

    def __init__(self, html: str) -> None:
        self._html = html
        self._texts: list[str] = []
        self._length = 0
        self._path: list[Node] = []  # elements that are open
        self.nodes: list[Node] = []  # those in no other
        self.before = self.after = ""

    def add(self, part: Part) -> None:
        raw = self._html[part.start : part.end]
        match part.role:
            case Role.TEXT:
                self._add_text(decoded(raw))
            case Role.KEPT:
                self._add_kept(part, raw)
            case Role.OPEN:
                node = self._add_node(Node(self._length, self._length, raw, html=Span(part.start, part.start)))
                self._path.append(node)
            case Role.CLOSE if self._path:
                node = self._path.pop()
                node.end, node.closing, node.html = self._length, raw, Span(node.html.start, part.end)
            case Role.CLOSE:  # opened before a line break
                self.nodes = [Node(0, self._length, "", raw, children=self.nodes)]
            case _:
                self._add_node(Node(self._length, self._length, raw))

    def text(self) -> str:
        """Return the text, once all has been read."""
        for node in self._path:
            node.end = self._length
        return "".join(self._texts).removesuffix(" ")

    def _add_text(self, text: str) -> None:
        stripped = text.strip(_SPACE)
        if not stripped:
            self.after += text
        else:
            if self._length == 0:
                self.before = self.after + text[: text.index(stripped)]
            self.after = text[len(text.rstrip(_SPACE)) :]
        cuts = line_cuts(text) if "\n" in text else ()
        text = replaced(text, ((span, _SOFT_HYPHEN) for span in cuts))[0] if cuts else text
        text = _SPACES.sub(" ", text)
        if text.startswith(" ") and (self._length == 0 or self._ends_with_space):
            text = text[1:]
            if self._length and self._siblings and self._siblings[-1].end == self._length:
                self._siblings[-1].is_spaced = True  # its text, or that before it, has the space
        self._append(text)

    def _add_kept(self, part: Part, raw: str) -> None:
        text = _SPACES.sub(" ", shown(raw, Role.KEPT))
        is_blank = text.isspace()
        visible = "" if is_blank else text.strip(" ")
        is_space = False
        if (is_blank or text.startswith(" ")) and self._length and not self._ends_with_space:
            self._append(" ")
            is_space = is_blank
        end = self._length + len(visible)
        html = Span(part.start, part.end)
        self._add_node(Node(self._length, end, raw, is_kept=bool(visible), is_space=is_space, html=html))
        if visible:
            if self._length == 0:
                self.before = self.after
            self.after = ""
            self._append(visible + " " * text.endswith(" "))

    def _append(self, text: str) -> None:
        if text:
            self._texts.append(text)
            self._length += len(text)

    def _add_node(self, node: Node) -> Node:
        self._siblings.append(node)
        return node

    @property
    def _siblings(self) -> list[Node]:
        return self._path[-1].children if self._path else self.nodes

    @property
    def _ends_with_space(self) -> bool:
        return self._texts[-1].endswith(" ")


def _with_joints(html: str, run: Iterable[Part]) -> list[Part]:
    """Join kept parts that have only a plus or a hyphen between them: `<kbd>Ctrl</kbd>+<kbd>C</kbd>`."""
    joined: list[Part] = []
    for part in paced(run):
        joined.append(part)
        roles = [each.role for each in joined[-3:]]
        if roles[-2:] == [Role.KEPT, Role.KEPT]:
            joined[-2:] = [joined[-2]._replace(end=part.end)]
        elif roles == [Role.KEPT, Role.TEXT, Role.KEPT] and _JOINT.fullmatch(html, joined[-2].start, joined[-2].end):
            joined[-3:] = [joined[-3]._replace(end=part.end)]
    return joined


def _framed(html: str, run: Sequence[Part]) -> list[Part]:
    """Return a run without what never moves: white space, marks and tags before and after all of its text."""
    ends = partners(run)
    texts = [_visible(html, part) for part in paced(run)]
    num_texts = [0, *accumulate(start < end for start, end in texts)]
    first, last = 0, len(run) - 1
    while first <= last:
        if run[first].role is Role.OPEN and ends.get(first) == last:  # around all of it
            first, last = first + 1, last - 1
        elif num_texts[end := max(first, ends.get(first, first)) + 1] == num_texts[first]:
            first = end
        elif num_texts[last + 1] == num_texts[start := min(last, ends.get(last, last))]:
            last = start - 1
        else:
            break
    framed = list(run[first : last + 1])
    if framed and framed[-1].role is Role.TEXT:
        framed[-1] = framed[-1]._replace(end=texts[last].end)
    if framed and framed[0].role is Role.TEXT:
        framed[0] = framed[0]._replace(start=texts[first].start)
    return framed


def _visible(html: str, part: Part) -> Span:
    """Return where in the HTML the text of a part is, without white space around it; empty if there is none."""
    if part.role is Role.KEPT and shown(html[part.start : part.end], Role.KEPT).strip():
        return Span(part.start, part.end)
    if part.role is not Role.TEXT:
        return Span(part.end, part.end)
    start, end = part.start, part.end
    if match := _BLANK.match(html, start, end):
        start = match.end()
    while start < end:
        if html[end - 1] in _WHITE_SPACE:
            end -= 1
        elif reference := next((each for each in _BLANK_REFERENCES if html.endswith(each, start, end)), ""):
            end -= len(reference)
        else:
            break
    return Span(start, max(start, end))


def _trim(root: Node, text: str) -> None:
    """Trim white space at the start and end of elements; one with nothing else has no text."""
    pending = [root]
    while pending:
        node = pending.pop()
        node.start, node.end = min(node.start, len(text)), min(node.end, len(text))
        if node.start < node.end:
            node.is_padded_before = text[node.start] == " "
            node.start += node.is_padded_before
            is_padded = node.start < node.end and text[node.end - 1] == " "
            node.end -= is_padded
            node.is_padded_after = is_padded and not node.is_spaced
            if not node.is_kept and _NO_WORDS.fullmatch(text, node.start, node.end):
                node.end = node.start  # or it would take a word
        for child in node.children:
            child.start = min(max(child.start, node.start), node.end)
            child.end = min(max(child.end, child.start), node.end)
        pending += node.children


def _take_kept(root: Node, text: str) -> list[Node]:
    """Remove the kept nodes from the tree and return them in order, with the elements that contain nothing else."""
    spaces = [place for place, character in enumerate(text) if character == " "]
    nodes = [root]
    for node in nodes:
        nodes += node.children
    lengths: dict[int, int] = {}  # by node identity: the length of its text that is kept, white space aside
    for node in reversed(nodes):
        length = node.end - node.start - bisect_left(spaces, node.end) + bisect_left(spaces, node.start)
        lengths[id(node)] = length if node.is_kept else sum(lengths[id(child)] for child in node.children)
        node.is_kept |= 0 < length == lengths[id(node)] and node.html.end > node.html.start
    kept = []
    pending = [root]
    while pending:
        node = pending.pop()
        if node.is_kept:
            kept.append(node)
            continue
        pending += reversed(node.children)
        node.children = [child for child in node.children if not child.is_kept]
    return kept
