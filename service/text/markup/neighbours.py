"""Sibling elements that are separate items: the entries of a menu, a toolbar, a breadcrumb, a tag list.

As one text, an entry might take the words of another. So each is a text of its own: their tags become boundaries.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from service.domain.checkpoint import paced
from service.text.markup.parts import Part, Role, Texts, element_name, partners
from service.text.spans import Span

_SEPARATORS = re.compile(r"[\s|/\\>»›→⟩▸▶·•‣∙◦▪▫●○■□★*~+,;:&<«‹←<\-–—_=]*+")
_OPENS = re.compile(r"[(\[{¡¿«„“]\Z")
_CONTINUATION = re.compile(r"[.,;:!?…)\]}»”’'。、，！？]")
_SENTENCE_END = re.compile(r"[.!?:…。！？][\"'”’»)]*\Z")
_PARTS_OF_WORDS = frozenset({"rb", "ruby", "sub", "sup"})
_LABEL = re.compile(r"(?:[:：]|[©℗]\s*\d[\d\s–-]*)\s*\Z")
_XML_INLINE = re.compile(r"x\d+")  # a tag of XML that does not split, as the caller says (`xml`)
_LINKS = frozenset({"a", "button", "label", "option"})


@dataclass(frozen=True, slots=True)
class _Entry:
    """An element at the top of a paragraph, from its part `first` to its part `last`, both included."""

    first: int
    last: int
    name: str
    text: str
    gap: str  # the text before it, from the entry before


def separated(html: str, parts: Sequence[Part]) -> list[Part]:
    """Return the parts, with boundaries in place of the tags of elements that are all of a paragraph together."""
    pending: list[Span] = []
    start = 0
    for index, part in paced(enumerate((*parts, None))):
        if part is None or part.role in (Role.BOUNDARY, Role.LINE_BREAK):
            if index - start > 3:  # an element, and another one
                pending.append(Span(start, index))
            start = index + 1
    result = list(parts)
    if not pending:
        return result
    ends = partners(parts)
    texts = Texts(html, parts)
    while pending:
        run = pending.pop()
        entries = _entries(html, parts, run, ends, texts)
        if len(entries) == 1 and parts[entries[0].first].role is Role.OPEN:
            pending.append(Span(entries[0].first + 1, entries[0].last))
        if len(entries) < 2 or any(map(_continues, entries[:-1], entries[1:])):
            continue
        for entry in entries:
            if parts[entry.first].role is Role.OPEN:
                for tag in (entry.first, entry.last):
                    result[tag] = parts[tag]._replace(role=Role.BOUNDARY)
                pending.append(Span(entry.first + 1, entry.last))
            else:
                result[entry.first] = parts[entry.first]._replace(role=Role.BOUNDARY)
    return result


def _entries(html: str, parts: Sequence[Part], run: Span, ends: dict[int, int], texts: Texts) -> list[_Entry]:
    """Return the elements with text of a run, if there is nothing but separators beside them, else nothing."""
    entries: list[_Entry] = []
    index, gap = run.start, ""
    while index < run.end:
        part = parts[index]
        last = index
        if part.role is Role.TEXT:
            text = texts.of(index, index + 1)
            if texts.have_words(index, index + 1):
                if entries or not _LABEL.search(text):
                    return []
            elif not _SEPARATORS.fullmatch(text):
                return []
            else:
                gap += text
        elif part.role in (Role.OPEN, Role.KEPT):
            last = ends.get(index, index)
            if last >= run.end or (part.role is Role.OPEN and last == index):
                return []
            name = element_name(html, part)
            if _XML_INLINE.fullmatch(name):
                return []
            text = texts.of(index, last + 1)
            if texts.have_words(index, last + 1):
                entries.append(_Entry(index, last, name, text, gap))
                gap = ""
            elif text.strip() and not _SEPARATORS.fullmatch(text):
                return []
        elif part.role is not Role.MARK:
            return []
        index = last + 1
    return entries


def _continues(left: _Entry, right: _Entry) -> bool:
    """Return whether two elements are parts of one sentence, as many programs write, or of one word."""
    if right.gap.strip():
        return False
    before, after = left.text, right.text
    if not right.gap:
        if right.name in _PARTS_OF_WORDS or left.name in _PARTS_OF_WORDS:
            return True
        if _CONTINUATION.match(after) or _OPENS.search(before):
            return True
        if len(before.strip()) == 1 and after[:1].islower():  # an initial
            return True
        if (before[-1:].isspace() or after[:1].isspace()) and not {left.name, right.name} & _LINKS:
            return True
    if not right.gap or {left.name, right.name} & _LINKS or _SENTENCE_END.search(before.rstrip()):
        return False
    return before.lstrip()[:1].isupper() and after.lstrip()[:1].islower()
