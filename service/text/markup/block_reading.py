"""Reading of a block: its text, the tree of its elements, and what of it is kept."""

import re
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate

from service.domain.checkpoint import paced
from service.text.markup.block import Block, Node, count_needs, spelling
from service.text.markup.parts import Part, Role, decoded, partners, shown
from service.text.markup.raised import glued
from service.text.markup.within_words import group_within_words
from service.text.spans import Span

_SPACES = re.compile(r"[\t\n\f\r ]+")
_WHITE_SPACE = "\t\n\f\r \u00a0\u2002\u2003\u2009\u202f\u3000\u200b\ufeff"
_BLANK_REFERENCES = ("&nbsp;", "&#160;", "&#xa0;", "&#xA0;", "&ensp;", "&emsp;", "&thinsp;")
_NO_WORDS = re.compile(r"\s{1,8}")  # of an element: no-break spaces
_BLANK = re.compile(f"(?:[{_WHITE_SPACE}]|{'|'.join(_BLANK_REFERENCES)})++")


def read_block(html: str, run: Sequence[Part]) -> Iterable[Block]:
    """Return the block of the parts between two boundaries, if it contains anything to translate."""
    if not any(part.role is Role.TEXT and not html[part.start : part.end].isspace() for part in run):
        return
    run = _framed(html, glued(html, run))
    if not any(part.role is Role.TEXT for part in run):
        return
    texts: list[str] = []
    before: list[str] = []
    after = ""
    length = 0
    roots: list[Node] = []
    path: list[Node] = []
    for part in paced(run):
        raw = html[part.start : part.end]
        siblings = path[-1].children if path else roots
        match part.role:
            case Role.TEXT:
                text = decoded(raw)
                stripped = text.strip("\t\n\f\r ")
                if stripped:
                    if length == 0:
                        before += (after, text[: text.index(stripped)])
                    after = text[len(text.rstrip("\t\n\f\r ")) :]
                else:
                    after += text
                text = _SPACES.sub(" ", text)
                if text.startswith(" ") and (length == 0 or texts[-1].endswith(" ")):
                    text = text[1:]
                    if length and siblings and siblings[-1].end == length:  # its text, or that before it, has a space
                        siblings[-1].is_spaced = True
                if text:
                    texts.append(text)
                    length += len(text)
            case Role.KEPT:
                text = _SPACES.sub(" ", shown(raw, Role.KEPT))
                visible = text.strip(" ")
                if text.startswith(" ") and length and not texts[-1].endswith(" "):
                    texts.append(" ")
                    length += 1
                siblings.append(Node(length, length + len(visible), raw, is_kept=bool(visible), html=Span(*part[1:3])))
                if visible:
                    if length == 0:
                        before.append(after)
                    after = ""
                    texts.append(visible + " " * text.endswith(" "))
                    length += len(texts[-1])
            case Role.OPEN:
                node = Node(length, length, raw, html=Span(part.start, part.start))
                siblings.append(node)
                path.append(node)
            case Role.CLOSE if path:
                node = path.pop()
                node.end, node.closing, node.html = length, raw, Span(node.html.start, part.end)
            case Role.CLOSE:  # opened before a line break
                roots = [Node(0, length, "", raw, children=roots)]
            case _:
                siblings.append(Node(length, length, raw))
    for node in path:
        node.end = length
    text = "".join(texts)
    text = text.removesuffix(" ")
    if not text:
        return
    root = Node(0, len(text), children=roots)
    _trim(root, text)
    kept = _take_kept(root, text)
    protected = tuple(Span(node.start, node.end) for node in kept)
    if _covers(protected, text):
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
        "".join(before),
        after,
        spelling([html[part.start : part.end] for part in run if part.role is Role.TEXT]),
    )


def _framed(html: str, run: Sequence[Part]) -> list[Part]:
    """Return a run without what never moves: white space, marks and tags before and after all of its text."""
    ends = partners(run)
    texts = [_visible(html, part) for part in paced(run)]
    num_texts = [0, *accumulate(start < end for start, end in texts)]
    first, last = 0, len(run) - 1
    while first <= last:
        if run[first].role is Role.OPEN and ends.get(first) == last:  # around all of it
            first, last = first + 1, last - 1
        elif num_texts[end := _unit_end(run, first, ends) + 1] == num_texts[first]:
            first = end
        elif num_texts[last + 1] == num_texts[start := _unit_start(run, last, ends)]:
            last = start - 1
        else:
            break
    framed = list(run[first : last + 1])
    if framed and framed[-1].role is Role.TEXT:
        framed[-1] = framed[-1]._replace(end=texts[last].end)
    if framed and framed[0].role is Role.TEXT:
        framed[0] = framed[0]._replace(start=texts[first].start)
    return framed


def _unit_end(run: Sequence[Part], first: int, ends: Mapping[int, int]) -> int:
    """Return the last part of an element that starts with a part; a tag without its other one is alone."""
    return ends.get(first, first) if run[first].role is Role.OPEN else first


def _unit_start(run: Sequence[Part], last: int, ends: Mapping[int, int]) -> int:
    return ends.get(last, last) if run[last].role is Role.CLOSE else last


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


def _covers(spans: Sequence[Span], text: str) -> bool:
    """Return whether there is only white space outside of `spans`, which are sorted."""
    done = 0
    for span in spans:
        if text[done : span.start].strip():
            return False
        done = span.end
    return not text[done:].strip()
