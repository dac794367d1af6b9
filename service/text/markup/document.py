"""Extraction of the texts of an HTML document, and rendering of the document with their translations."""

import heapq
import re
from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from service.domain.checkpoint import paced
from service.text.markup.block import Block, BlockTranslation
from service.text.markup.block_reading import read_blocks
from service.text.markup.lexer import tokens
from service.text.markup.parts import Part, Role
from service.text.markup.placement import insertions
from service.text.markup.structure import parts
from service.text.spans import Span
from service.text.words import is_unspaced

_LINK = re.compile(r"<(?:a|nobr)(?=[\t\n\f\r />])", re.IGNORECASE)  # as `elements.UNNESTABLE`
_LINK_END = re.compile(r"</(?:a|nobr)(?=[\t\n\f\r />])", re.IGNORECASE)
# Start and end tags of links, HTML's and Markdown's, and what can't be within one.
_LINKS = ((_LINK, _LINK_END, _LINK), (re.compile(r"!?\["), re.compile(r"\]\("), re.compile(r"[\[\]]")))
_FIRST_SPACE = re.compile(r"(?:<[^<>]{0,200}>){1,8}\s")
_LAST_SPACE = re.compile(r"\s(?:</[^<>]{0,200}>){1,8}\Z")
_EDGE = 1_000  # characters of what is kept that are looked at for such a space
_MAX_SEARCHES = 1000  # of texts whose positions no link gives


@dataclass(frozen=True, slots=True)
class HtmlDocument:
    """A document and its `blocks`, in order."""

    blocks: tuple[Block, ...]
    html: str = field(repr=False, compare=False)

    def render(self, translations: Sequence[BlockTranslation]) -> str:
        """Return the document with `translations`, one for each block, in place of their texts.

        Everything else is unchanged, and a browser builds the same tree of elements, as long as no translation is
        empty. The exception are elements with protected text, which are placed with it: where a link of the alignment
        from exactly that text leads, else where the translation contains it, else after the translation. A block whose
        translation equals its text is unchanged byte for byte. Other translations are only escaped; if alignments are
        wrong, tags are at the wrong words.
        """
        output: list[str] = []
        done = 0
        for block, translation in paced(zip(self.blocks, translations, strict=True), every=16):
            if translation.text == block.text:
                continue
            output += (self.html[done : block._start], block._before)
            output += merged(self.html, block, translation)
            output.append(block._after)
            done = block._end
        output.append(self.html[done:])
        return "".join(output)


def parse(html: str) -> HtmlDocument:
    """Find the texts in `html`, a document or a fragment, however malformed it is."""
    return HtmlDocument(tuple(blocks(html)), html)


def blocks(html: str) -> Iterator[Block]:
    run: list[Part] = []
    for part in paced(parts(html, list(paced(tokens(html))))):
        if part.role in (Role.BOUNDARY, Role.LINE_BREAK):
            yield from read_blocks(html, run)
            run = []
        else:
            run.append(part)
    yield from read_blocks(html, run)


def merged(html: str, block: Block, translation: BlockTranslation) -> Iterable[str]:
    text = translation.text
    places = _places(block, translation)
    kept = [(source, place) for source, place in zip(block.protected, places, strict=True) if place is not None]
    tags = list(insertions(block._root, block.text, text, translation.alignment, kept))
    elements = [
        (place, html[slice(*markup)] if place is None else _spaced(html[slice(*markup)], block.text, span, text, place))
        for span, place, markup in zip(block.protected, places, block._kept, strict=True)
    ]
    taken = {start for start, _, _ in tags}
    wholes = sorted(
        (*_with_own_spaces(html, element, text, place, taken), markup)
        for element, (place, markup) in zip(block._kept, elements, strict=True)
        if place is not None
    )
    done = 0
    ordered = list(heapq.merge(tags, wholes, key=lambda each: (each[0], each[0] < each[1])))
    for link in _LINKS:
        ordered = _unnested(ordered, *link)
    for start, end, markup in ordered:
        yield block._spelling.written(text[done:start])
        yield markup
        done = end
    yield block._spelling.written(text[done:])
    yield from (f" {markup}" for place, markup in elements if place is None)


def _spaced(markup: str, source: str, span: Span, text: str, place: Span) -> str:
    """Return a kept part with the spaces beside it that the source has and the translation lacks."""
    before, after = source[span.start - 2 : span.start], source[span.end : span.end + 2]
    lacks_before = before[-1:] == " " and _touches(text[place.start - 1 : place.start], before[0], is_before=True)
    lacks_after = after[:1] == " " and _touches(text[place.end : place.end + 1], after[-1], is_before=False)
    return " " * lacks_before + markup + " " * lacks_after


def _with_own_spaces(html: str, element: Span, text: str, place: Span, taken: Collection[int]) -> Span:
    """Extend a place by the spaces around it that the source has within the element, as in `one<b> / </b>two`, but not
    where tags are inserted (`taken`)."""
    start, end = element
    has_first = _FIRST_SPACE.match(html, start, end) is not None and not html[start - 1 : start].isspace()
    has_last = _LAST_SPACE.search(html[max(start, end - _EDGE) : end]) and not html[end : end + 1].isspace()
    before = has_first and place.start not in taken and text[place.start - 1 : place.start] == " "
    return Span(place.start - before, place.end + bool(has_last and text[place.end : place.end + 1] == " "))


def _touches(neighbour: str, in_source: str, *, is_before: bool) -> bool:
    """Return whether there is a neighbour that a space should separate: the same as in the source, or a word."""
    if not neighbour or neighbour.isspace() or is_unspaced(neighbour):
        return False
    return neighbour == in_source or neighbour.isalnum() or (neighbour in "#@" and not is_before)


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


def _unnested(
    markup: list[tuple[int, int, str]], opening: re.Pattern[str], closing: re.Pattern[str], unnestable: re.Pattern[str]
) -> list[tuple[int, int, str]]:
    """Move kept elements that can't be in a link out of it, before the outer link, else after it."""
    if not any(start < end and unnestable.search(text) for start, end, text in markup):
        return markup
    ordered: list[tuple[int, int, str]] = []
    moved: list[tuple[int, int, str]] = []
    opened: list[int] = []  # indices in `ordered` of the start tags of links that are not closed
    for start, end, text in markup:
        if start < end:
            is_moved = bool(opened) and unnestable.search(text) is not None
            ordered.append((start, end, "" if is_moved else text))
            if is_moved:
                place = ordered[opened[0]][0]
                moved.append((place, place, f"{text} "))
            continue
        ordered.append((start, end, text))
        if opening.match(text) and not closing.search(text):  # else a mark, with both of its tags
            opened.append(len(ordered) - 1)
        elif closing.match(text) and opened:
            first = opened.pop()
            if not opened:
                ordered[first:first], moved = moved, []
        elif closing.match(text):  # opened before a line break: everything so far is in it
            for index, (place, place_end, kept) in enumerate(ordered[:-1]):
                if place < place_end and unnestable.search(kept):
                    ordered[index] = (place, place_end, "")
                    ordered.append((start, start, f" {kept}"))
    first = opened[0] if opened else len(ordered)
    return [*ordered[:first], *moved, *ordered[first:]]
