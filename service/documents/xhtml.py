"""XHTML: pages of HTML that are XML, by themselves or as chapters of books. Their language becomes the target's."""

import functools
import re
from collections.abc import Callable
from dataclasses import replace

from service.documents import html
from service.documents.document import Document, DocumentOptions, Edit, Slot, Spliced
from service.documents.lines import Lines
from service.documents.xml_source import decoded_xml
from service.text.languages import canonical
from service.text.markup.elements import BLOCKS, VOID
from service.text.markup.lexer import RAW_TEXT, tokens

_EMPTY_TAG = re.compile(r"""<([A-Za-z][\w:.-]*+)(?:[^"'<>/]++|/(?!>)|"[^"]*+"|'[^']*+')*+/>""")
_MASK = re.compile(r"<(?:img|hr) (\d+) *>")


def read(data: bytes, options: DocumentOptions) -> Document:
    raw, encode = decoded_xml(data)
    source = raw.decode()
    target = canonical(options.target) if options.target else ""
    slots, edits = page(source, "", target, has_attributes=options.attributes)
    return Spliced(source, slots, lambda text: encode(text.encode()), edits=edits)


def page(source: str, name: str, target: str, *, has_attributes: bool = False) -> tuple[list[Slot], list[Edit]]:
    """Return the texts of a page, which is the part `name` of a document, and what makes `target` its language."""
    masked, tags = _masked(source)
    edits = [edit for edit in html.language_edits(source, tokens(source), target) if edit.start < edit.end]
    slots = [_of_page(slot, tags) for slot in html.slots(masked, Lines(masked, name), has_attributes=has_attributes)]
    return slots, edits


def _of_page(slot: Slot, tags: list[str]) -> Slot:
    inner = tuple(_of_page(each, tags) for each in slot.inner)
    return replace(slot, write=functools.partial(_unmasked, slot.write, tags), inner=inner)


def _masked(source: str) -> tuple[str, list[str]]:
    """Return XHTML of the same length, in which HTML recognizes tags of empty elements as such, and these tags.

    HTML has few of them: `<a id="p1"/>` would begin a link there, and `<script/>` a script.
    """
    tags: list[str] = []

    def mask(match: re.Match[str]) -> str:
        name = match[1].lower()
        if name in VOID:
            return match[0]
        kind = "hr" if name in BLOCKS or name in RAW_TEXT else "img"
        written = f"<{kind} {len(tags)}"
        if len(written) >= len(match[0]):
            return match[0]
        tags.append(match[0])
        return written.ljust(len(match[0]) - 1) + ">"

    return _EMPTY_TAG.sub(mask, source), tags


def _unmasked(write: Callable[..., str], tags: list[str], translation: str, *inner: str) -> str:
    def tag(match: re.Match[str]) -> str:
        return tags[int(match[1])] if len(match[1]) < 9 and int(match[1]) < len(tags) else match[0]

    return _MASK.sub(tag, write(translation, *inner))
