"""Extraction of the texts of an HTML document, and rendering of the document with their translations."""

import heapq
import html as html_standard
import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from service.domain.checkpoint import paced
from service.domain.translation import AlignedSpan
from service.text.markup.lexer import TokenKind, tokens
from service.text.markup.placement import Node, count_needs, insertions
from service.text.markup.structure import Part, Role, parts
from service.text.spans import Span

_SPACES = re.compile(r"[\t\n\f\r ]+")
_LONG_NUMBER = re.compile(r"&#0*[0-9]{8,}")
_UNNESTABLE = re.compile(r"<(?:a|nobr)(?=[\t\n\f\r />])", re.IGNORECASE)  # as `structure.UNNESTABLE`
_UNNESTABLE_END = re.compile(r"</(?:a|nobr)(?=[\t\n\f\r />])", re.IGNORECASE)
_MAX_SEARCHES = 1000  # of texts whose positions no link gives
_ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", "\u00a0": "&nbsp;"})


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


@dataclass(frozen=True, slots=True)
class HtmlDocument:
    """A document and its `blocks`, in order."""

    blocks: tuple[Block, ...]
    html: str = field(repr=False, compare=False)

    def render(self, translations: Sequence[BlockTranslation]) -> str:
        """Return the document with `translations`, one for each block, in place of their texts.

        Everything else is unchanged, and a browser builds the same tree of elements, as long as no translation is
        empty. The exception are elements with protected text, which are placed where that text is: where a link of the
        alignment from exactly that text leads, else where the translation contains it; those that it lacks come after
        it. A block whose translation equals its text is unchanged byte for byte. Other translations are escaped and
        otherwise unchanged; if alignments are wrong, tags are at the wrong words.

        Raises:
            ValueError: there are more or fewer translations than blocks.
        """
        output: list[str] = []
        done = 0
        for block, translation in paced(zip(self.blocks, translations, strict=True), every=16):
            if translation.text == block.text:
                continue
            output += (self.html[done : block._start], block._before)
            output += _merged(self.html, block, translation)
            output.append(block._after)
            done = block._end
        output.append(self.html[done:])
        return "".join(output)


def parse(html: str) -> HtmlDocument:
    """Find the texts in `html`, a document or a fragment, however malformed it is."""
    return HtmlDocument(tuple(blocks(html)), html)


def blocks(html: str) -> Iterator[Block]:
    """Yield the blocks of `html` lazily."""
    run: list[Part] = []
    for part in paced(parts(html, list(paced(tokens(html))))):
        if part.role in (Role.BOUNDARY, Role.LINE_BREAK):
            yield from _block(html, run)
            run = []
        else:
            run.append(part)
    yield from _block(html, run)


def _block(html: str, run: Sequence[Part]) -> Iterable[Block]:
    """Return the block of `run`, if it contains anything to translate."""
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
                text = _decoded(raw)
                stripped = text.strip("\t\n\f\r ")
                if not stripped:
                    after += text
                elif length == 0:
                    before.append(after)
                    after = text[len(text.rstrip("\t\n\f\r ")) :]
                else:
                    after = text[len(text.rstrip("\t\n\f\r ")) :]
                if length == 0 and stripped:
                    before.append(text[: len(text) - len(text.lstrip("\t\n\f\r "))])
                text = _SPACES.sub(" ", text)
                if text.startswith(" ") and (length == 0 or texts[-1].endswith(" ")):
                    text = text[1:]
                    if length and siblings and siblings[-1].is_mark and siblings[-1].start == length:
                        siblings[-1].is_spaced = True  # the space after an image takes the place of the one before it
                if text:
                    texts.append(text)
                    length += len(text)
            case Role.KEPT:
                text = _SPACES.sub(" ", _shown(raw))
                shown = text.strip(" ")
                if text.startswith(" ") and length and not texts[-1].endswith(" "):
                    texts.append(" ")
                    length += 1
                siblings.append(Node(length, length + len(shown), raw, is_kept=bool(shown), html=Span(*part[1:3])))
                if shown:
                    if length == 0:
                        before.append(after)
                    after = ""
                    texts.append(shown + " " * text.endswith(" "))
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
                siblings.append(Node(length, length, raw, is_mark=not part.is_comment))
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
    count_needs(root)
    yield Block(
        text, protected, root, tuple(node.html for node in kept), run[0].start, run[-1].end, "".join(before), after
    )


def _decoded(raw: str) -> str:
    if "&" in raw:
        raw = html_standard.unescape(_LONG_NUMBER.sub("&#1114112", raw))  # int() refuses thousands of digits
    return raw.replace("\0", "")


def _shown(html: str) -> str:
    """Return the text of an element that is copied unchanged."""
    return "".join(
        _decoded(html[token.start : token.end]) if token.kind is TokenKind.TEXT else " " * (token.name == "br")
        for token in tokens(html)
    )


def _trim(root: Node, text: str) -> None:
    """Trim white space at the start and end of elements."""
    pending = [root]
    while pending:
        node = pending.pop()
        node.start, node.end = min(node.start, len(text)), min(node.end, len(text))
        if node.start < node.end:
            node.start += text[node.start] == " "
            node.end = max(node.start, node.end - (text[node.end - 1] == " "))
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


def _merged(html: str, block: Block, translation: BlockTranslation) -> Iterable[str]:
    text = translation.text
    places = _places(block, translation)
    kept = [(source, place) for source, place in zip(block.protected, places, strict=True) if place is not None]
    tags = insertions(block._root, block.text, text, translation.alignment, kept)
    elements = [(place, html[slice(*markup)]) for place, markup in zip(places, block._kept, strict=True)]
    wholes = sorted((*place, markup) for place, markup in elements if place is not None)
    done = 0
    for start, end, markup in _unnested(list(heapq.merge(tags, wholes, key=lambda each: (each[0], each[0] < each[1])))):
        yield text[done:start].translate(_ESCAPES)
        yield markup
        done = end
    yield text[done:].translate(_ESCAPES)
    yield from (f" {markup}" for place, markup in elements if place is None)


def _places(block: Block, translation: BlockTranslation) -> list[Span | None]:
    """Return the position of each protected text in the translation; no two of them overlap."""
    text = translation.text
    links = {(link.source_start, link.source_end): link for link in translation.alignment}
    places: list[Span | None] = [None] * len(block.protected)
    linked = sorted(
        (Span(max(0, link.target_start), link.target_end), index)
        for index, (start, end) in enumerate(block.protected)
        if (link := links.get((start, end))) and text[link.target_start : link.target_end] == block.text[start:end]
    )
    taken: list[Span] = []
    for place, index in linked:
        if not taken or taken[-1].end <= place.start:
            places[index] = place
            taken.append(place)
    num_searches = 0
    for index, (start, end) in enumerate(block.protected):
        found = -1
        while places[index] is None and num_searches < _MAX_SEARCHES:
            num_searches += 1
            found = text.find(block.text[start:end], found + 1)
            if found < 0:
                break
            place = Span(found, found + end - start)
            following = bisect_left(taken, place)
            is_after = following == 0 or taken[following - 1].end <= place.start
            if is_after and (following == len(taken) or place.end <= taken[following].start):
                places[index] = place
                taken.insert(following, place)
    return places


def _unnested(markup: list[tuple[int, int, str]]) -> list[tuple[int, int, str]]:
    """Move kept links out of other links, to the position before the outer link, or else after it."""
    if not any(start < end and _UNNESTABLE.search(text) for start, end, text in markup):
        return markup
    ordered: list[tuple[int, int, str]] = []
    moved: list[tuple[int, int, str]] = []
    opened: list[int] = []  # indices in `ordered` of the start tags of links that are not closed
    for start, end, text in markup:
        if start < end:
            is_moved = bool(opened) and _UNNESTABLE.search(text) is not None
            ordered.append((start, end, "" if is_moved else text))
            if is_moved:
                place = ordered[opened[0]][0]
                moved.append((place, place, f"{text} "))
            continue
        ordered.append((start, end, text))
        if _UNNESTABLE.match(text):
            opened.append(len(ordered) - 1)
        elif _UNNESTABLE_END.match(text) and opened:
            first = opened.pop()
            if not opened:
                ordered[first:first], moved = moved, []
        elif _UNNESTABLE_END.match(text):  # opened before a line break: everything so far is in it
            for index, (place, place_end, kept) in enumerate(ordered[:-1]):
                if place < place_end and _UNNESTABLE.search(kept):
                    ordered[index] = (place, place_end, "")
                    ordered.append((start, start, f" {kept}"))
    first = opened[0] if opened else len(ordered)
    return [*ordered[:first], *moved, *ordered[first:]]
