"""Word documents (ECMA-376): paragraphs of the text, headers, footers, footnotes, endnotes and text boxes.

A paragraph is a text. Its most frequent formatting is the paragraph's; words in another one have a tag. Links,
bookmarks, footnote marks, pictures and fields keep their places among the words; results of fields, such as page
numbers, and the readings of ruby stay. A box with text that is anchored in a sentence stays where it is, superscripts
and subscripts at their words. Deleted text is left, as is code, recognized by styles and fonts; notes list more.
"""

import functools
from collections.abc import Iterator, Sequence
from dataclasses import replace

from service.documents.archive import Archive, package
from service.documents.code_styles import CodeStyles, read_prose
from service.documents.document import Document, DocumentOptions, Slot
from service.documents.docx_parts import notes_on_pictures, text_parts
from service.documents.docx_styles import is_code, styles_of
from service.documents.docx_text import (
    NO_BREAK_HYPHEN,
    Item,
    balanced,
    run_of,
    sentence,
    separate,
    trimmed,
    unchecked,
    with_fields,
)
from service.documents.errors import DocumentError
from service.documents.inline import Kind, Piece, code, has_code
from service.documents.layout import apart
from service.documents.xml_source import Element, XmlSource

_NAMESPACES = (
    "http://schemas.openxmlformats.org/wordprocessingml/2006/main",
    "http://purl.oclc.org/ooxml/wordprocessingml/main",
)
# Around runs; the content of the first is in an element of its own.
_WRAPPERS = ("sdt", "hyperlink", "ins", "moveTo", "smartTag", "customXml", "dir", "bdo")
_RANGES = ("bookmarkStart", "bookmarkEnd", "commentRangeStart", "commentRangeEnd", "permStart", "permEnd")
_LEFT_OUT = ("proofErr", "lastRenderedPageBreak")  # what Word found out about the old text


class _Reader:
    """The paragraphs of the XML files of an archive."""

    def __init__(self, styles: CodeStyles) -> None:
        self._styles = styles
        self.num_left = 0
        self._w = ""  # the prefix of WordprocessingML, with its colon

    def slots(self, source: XmlSource) -> Iterator[Slot]:
        self._source = source
        for each in source.elements(self._paragraphs):
            yield from self._of_paragraph(each)

    def _paragraphs(self, root: Element) -> tuple[str, ...]:
        declared = {value: key for key, value in root.attributes.items() if key == "xmlns" or key.startswith("xmlns:")}
        key = next((declared[namespace] for namespace in _NAMESPACES if namespace in declared), None)
        if key is None:
            raise DocumentError("it is not WordprocessingML.", self._source.place(root.start))
        self._w = f"{key.removeprefix('xmlns:')}:" if key != "xmlns" else ""
        return (f"{self._w}p",)

    def _of_paragraph(self, paragraph: Element) -> Iterator[Slot]:
        slots: list[Slot] = []
        section: list[Item] = []
        items = list(self._items(paragraph, slots))
        num_inner = len(slots)
        for item in [*with_fields(items), Item(None, 0, 0)]:
            if item.kind is not None:
                section.append(item)
                continue
            for part in balanced(section):
                slots += self._slot(part)
            section = []
        self.num_left += len(slots) == num_inner and has_code(items)
        yield from sorted(slots, key=lambda slot: slot.start)

    def _slot(self, items: Sequence[Item]) -> Iterator[Slot]:
        items = trimmed(items)
        if not any(item.kind is Kind.TEXT and item.text.strip() for item in items):
            return
        start, end = items[0], items[-1]
        before = f"</{self._w}r>" if start.splits_before else ""
        after = f"<{self._w}r>{end.properties}" if end.splits_after else ""
        found = sentence(apart(items, self._is_element, separate), self._w, before, after)
        inline = found.text.inline
        if not inline.has_words:
            return
        anchored = [border for item in items if item.is_in_place for border in (item.start, item.end)]
        borders = [start.start, *anchored, end.end]
        mark = functools.partial(found.other_stretches, borders) if len(borders) > 2 else None
        document_text = inline.document_text(self._source.place(start.start))
        yield Slot(borders[0], borders[1], document_text, found.first_stretch, mark=mark)

    def _is_element(self, item: Item) -> bool:
        return "fldChar" in item.raw or item.raw.startswith((f"<{self._w}hyperlink", f"<{self._w}sdt"))

    def _items(self, element: Element, slots: list[Slot]) -> Iterator[Item]:
        """Yield the parts of a paragraph or of what is around its runs; `slots` gets those of paragraphs in it."""
        raw = self._source.raw
        for child in element.elements:
            name = self._name(child)
            if name == "r":
                yield from self._of_run(child, slots)
            elif child.inner < child.end and (name in _WRAPPERS or self._is_link(child)):
                content = child.first(f"{self._w}sdtContent") if name == "sdt" else child
                if content is None:
                    yield Item(None, child.start, child.end)
                    continue
                properties = content.first(f"{self._w}{name}Pr") if name in ("smartTag", "customXml") else None
                inner = properties.end if properties else content.inner
                yield Item(Kind.OPEN, child.start, inner, raw[child.start : inner])
                yield from self._items(content, slots)
                yield Item(Kind.CLOSE, content.outer, child.end, raw[content.outer : child.end])
            elif name in _RANGES:
                yield Item(Kind.ORDERED, child.start, child.end, raw[child.start : child.end])
            elif name == "fldSimple":
                yield Item(Kind.KEPT, child.start, child.end, raw[child.start : child.end], self._visible_text(child))
            elif name in _LEFT_OUT:
                yield Item(Kind.ORDERED, child.start, child.end)
            elif not name.endswith("Pr"):
                yield self._left(child, slots, Item(Kind.MARK, child.start, child.end, raw[child.start : child.end]))

    def _of_run(self, run: Element, slots: list[Slot]) -> Iterator[Item]:
        raw = self._source.raw
        properties = ""
        children = []
        is_kept = is_code(self._styles, run)
        for child in run.elements:
            if child.name == f"{self._w}rPr":
                properties = raw[child.start : child.end]
                properties = properties if is_kept else unchecked(properties)
            else:
                children.append(child)
        for index, child in enumerate(children):
            is_first, is_last = index == 0, index == len(children) - 1
            item = Item(
                Kind.MARK,
                run.start if is_first else child.start,
                run.end if is_last else child.end,
                f"<{self._w}r>{properties}{raw[child.start : child.end]}</{self._w}r>",
                properties=properties,
                splits_before=not is_first,
                splits_after=not is_last,
            )
            name = self._name(child)
            if name == "t":
                yield from self._of_text(child, item, is_code=is_kept)
            elif name == "noBreakHyphen":
                yield replace(item, kind=Kind.TEXT, text=NO_BREAK_HYPHEN)
            elif name == "ruby" and (base := child.first(f"{self._w}rubyBase")) and base.inner < base.end:
                opening = f"<{self._w}r>{properties}{raw[child.start : base.inner]}"
                yield replace(item, kind=Kind.OPEN, raw=opening, end=base.inner)
                yield from self._items(base, slots)
                closing = f"{raw[base.outer : child.end]}</{self._w}r>"
                yield replace(item, kind=Kind.CLOSE, raw=closing, start=base.outer)
            elif name in ("tab", "ptab", "cr") or (
                name == "br" and child.local.get("type", "") in ("", "textWrapping")
            ):
                yield replace(item, kind=Kind.BREAK)
            elif name == "br":
                yield replace(item, kind=None)
            elif name in (*_LEFT_OUT, "softHyphen"):
                yield replace(item, kind=Kind.ORDERED, raw="")
            elif name == "fldChar":
                yield replace(item, kind=Kind.ORDERED, field=child.local.get("fldCharType", ""))
            elif name == "instrText":
                yield replace(item, kind=Kind.ORDERED, field="instruction", text=child.text())
            else:
                yield self._left(child, slots, item)

    def _of_text(self, element: Element, item: Item, *, is_code: bool) -> Iterator[Item]:
        text = element.text()
        text = text if element.attributes.get("xml:space") == "preserve" else text.strip()
        for index, part in enumerate(text.split("\t")):
            if index:
                tab = f'<{self._w}t xml:space="preserve">\t</{self._w}t>'
                yield replace(item, kind=Kind.BREAK, raw=f"<{self._w}r>{item.properties}{tab}</{self._w}r>")
            write = functools.partial(run_of, self._w, item.properties)
            for piece in code(part, write) if is_code else [Piece(Kind.TEXT, write(part), part)]:
                yield replace(item, kind=piece.kind, text=piece.text, raw=piece.raw, is_code=piece.is_code)

    def _left(self, element: Element, slots: list[Slot], item: Item) -> Item:
        """Return an item for an element that stays as it is, but for the paragraphs in it, such as those of a box."""
        inner = list(_outermost(element, f"{self._w}p"))
        for paragraph in inner:
            slots += self._of_paragraph(paragraph)
        if not inner:
            return item
        is_in_run = element.parent is not None and self._name(element.parent) == "r"
        opening, closing = (f"<{self._w}r>{item.properties}", f"</{self._w}r>") if is_in_run else ("", "")
        around = Item(Kind.ORDERED, element.start, element.end, opening, properties=item.properties)
        return replace(around, is_in_place=True, raw_after=closing)

    def _is_link(self, element: Element) -> bool:
        is_field = self._name(element) == "fldSimple"
        return is_field and element.local.get("instr", "").split()[:1] == ["HYPERLINK"]

    def _name(self, element: Element) -> str:
        """Return the name without WordprocessingML's prefix; that of another vocabulary keeps its own."""
        return element.name[len(self._w) :] if element.name.startswith(self._w) else element.name

    def _visible_text(self, element: Element) -> str:
        return "".join(each.text() for each in _outermost(element, f"{self._w}t"))


def read(data: bytes, _: DocumentOptions) -> Document:
    archive = Archive(data)
    names, styles, notes = text_parts(archive)
    parts, on_code = read_prose(
        archive, names, names[:1], lambda by_font: _Reader(styles_of(archive, styles, by_font=by_font))
    )[1:]
    return package(archive, parts, [*notes, *on_code, *notes_on_pictures(part.source for part in parts)])


def _outermost(element: Element, name: str) -> Iterator[Element]:
    for child in element.elements:
        if child.name == name:
            yield child
        else:
            yield from _outermost(child, name)
