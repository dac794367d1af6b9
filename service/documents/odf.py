"""OpenDocument texts, presentations and spreadsheets (https://docs.oasis-open.org/office/OpenDocument): paragraphs.

A paragraph or heading is a text, also in tables, lists, boxes, notes, headers, speaker's notes. Spans and links follow
their words; fields stay, notes and pictures keep their places. Left are comments, deleted text, code, recognized by
styles and fonts, cells that are computed or not text, names, and descriptions of pictures.
"""

import bisect
import functools
import html
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from service.documents.archive import Archive, package
from service.documents.code_styles import CodeStyles, Style, read_prose
from service.documents.document import Document, DocumentOptions, Edit, Slot
from service.documents.errors import DocumentError
from service.documents.formulas import NamedTexts
from service.documents.inline import InlineText, Kind, Piece, code, has_code
from service.documents.xml_source import Element, XmlSource, as_raw, from_raw

MAX_NESTED = 8  # paragraphs within paragraphs
_MANIFEST = "META-INF/manifest.xml"
_PARTS = ("styles.xml", "content.xml")
_NAMESPACE = "urn:oasis:names:tc:opendocument:xmlns:{}:1.0"
_PAIRS = ("span", "a", "meta")
_BREAKS = ("tab", "line-break")
_FAMILIES = {"span": "text", "a": "text", "p": "paragraph", "h": "paragraph"}  # of styles
_SHAPES = {"draw:style-name": "graphic", "presentation:style-name": "presentation"}
_DEFAULTS = ("paragraph Standard", "paragraph ")  # the styles of text without one
_ORDERED = re.compile(r"(?:bookmark|reference-mark|change|toc-mark|alphabetical-index-mark|user-index-mark|soft-page)")
# What names texts of cells: formulas and conditions, the columns of pivot tables, and values of filters.
_NAMING = re.compile(r"""\s(?:table|calcext):(?:formula|condition|source-field-name|value)=("[^"]*"|'[^']*')""")
_PLACE = re.compile(r"""<table:(?:table|named-range)\s(?:[^<>]*?\s)?table:name=("[^"]*"|'[^']*')""")
_STRING_VALUE = re.compile(r"""\soffice:string-value=(?:"[^"]*"|'[^']*')""")
_SPACE = " \t\r\n"
_SPACES = re.compile(f"[{_SPACE}]+")
# Properties of a span in which words that look the same may differ.
_INVISIBLE = re.compile(r"officeooo:.*|(?:fo|style):(?:language|country|script|rfc-language-tag)(?:-asian|-complex)?")


class _Reader:
    def __init__(self, by_font: bool) -> None:
        self.named = NamedTexts()
        self.has_comments = False
        self.num_left = 0
        self._by_font = by_font
        self._styles: dict[str, Style] = {}  # by family and name; those of a file are used in the next one, too
        self._prefixes: dict[str, str] = {}  # with their colons

    def slots(self, source: XmlSource) -> Iterator[Slot]:
        self._source = source
        self._invisible: set[str] = set()  # names of styles
        self._fonts: dict[str, str] = {}
        found = (self._styles[key].font for key in _DEFAULTS if key in self._styles)
        default = next((font for font in found if font is not None), None)
        self._code = CodeStyles(self._styles, default, by_font=self._by_font)
        for value in _NAMING.findall(source.raw):
            text = _unquoted(value)
            self.named.add(text)
            self.named.add_formula(text)
        for value in _PLACE.findall(source.raw):
            self.named.add_place(_unquoted(value))
        left: tuple[str, ...] = ()
        for element in source.elements(self._wanted):
            if element.name.startswith(self._prefixes["style"]):
                self._note_style(element)
                continue
            left = left or (self._name("text", "tracked-changes"), self._name("office", "annotation"))
            if any(each.name in left for each in element.ancestors):
                self.has_comments |= any(each.name == left[1] for each in element.ancestors)
            elif not self._is_kept(element):
                yield from (self._with_value(slot, element.parent) for slot in self._of_paragraph(element))

    def _wanted(self, root: Element) -> tuple[str, ...]:
        found = {value: key for key, value in root.attributes.items() if key.startswith("xmlns:")}
        for name in ("text", "style", "office", "table"):
            key = found.get(_NAMESPACE.format(name), f"xmlns:{name}")
            self._prefixes[name] = key.removeprefix("xmlns:") + ":"
        styles = (self._name("style", each) for each in ("font-face", "default-style", "style"))
        return (self._name("text", "p"), self._name("text", "h"), *styles)

    def _name(self, prefix: str, name: str) -> str:
        return self._prefixes[prefix] + name

    def _note_style(self, style: Element) -> None:
        """Record a style or a font, and whether a style of spans changes nothing visible, as one for each revision."""
        own = style.local
        name, family, parent = (own.get(each, "") for each in ("name", "family", "parent-style-name"))
        if "font-family" in own:
            self._fonts[name] = own["font-family"]
            return
        properties = style.at("text-properties")
        found = properties.local if properties else {}
        font = found.get("font-name", found.get("font-family"))
        shown = own.get("display-name", name.replace("_20_", " "))
        self._styles[f"{family} {name}"] = Style(shown, f"{family} {parent}", self._fonts.get(font or "", font))
        every = (key for each in style.elements for key in each.attributes)
        if family == "text" and not parent and all(map(_INVISIBLE.fullmatch, every)):
            self._invisible.add(name)

    def _is_code(self, element: Element) -> bool:
        return self._code.is_code(None, list(self._styles_around(element)))

    def _styles_around(self, element: Element) -> Iterator[str]:
        """Yield the styles of a span, of those around it, of their paragraph, and of the shape that this is in."""
        is_in_paragraph = True
        for each in element.ancestors:
            family = _FAMILIES.get(each.name.removeprefix(self._prefixes["text"]))
            if family and is_in_paragraph:
                yield f"{family} {each.attributes.get(self._name('text', 'style-name'), '')}"
                is_in_paragraph = family != "paragraph"
            elif family:
                return
            for name, family in _SHAPES.items():
                if name in each.attributes:
                    yield f"{family} {each.attributes[name]}"

    def _is_kept(self, paragraph: Element) -> bool:
        """Return whether a paragraph is in a cell with a number, a formula's result, or a text that formulas name."""
        cell = paragraph.parent
        if cell is None or not cell.name.startswith(self._prefixes["table"]):
            return False
        kind = cell.attributes.get(self._name("office", "value-type"), "string")
        is_computed = kind != "string" or self._name("table", "formula") in cell.attributes
        return is_computed or self.named.has(paragraph.text())

    def _with_value(self, slot: Slot, cell: Element | None) -> Slot:
        """Return a slot in a cell whose text is an attribute, too, which programs show: it is left out then."""
        has_value = cell is not None and "office:string-value" in cell.attributes
        found = _STRING_VALUE.search(self._source.raw, cell.start, cell.inner) if cell and has_value else None
        return replace(slot, mark=lambda *_: [Edit(*found.span(), "")]) if found else slot

    def _of_paragraph(self, paragraph: Element, depth: int = 0) -> Iterator[Slot]:
        if depth > MAX_NESTED:
            place = self._source.place(paragraph.start)
            raise DocumentError(f"paragraphs are nested more than {MAX_NESTED} deep.", place)
        inner: list[Slot] = []
        pieces = list(self._inline(paragraph, inner, depth))
        inline = InlineText(_with_borders(pieces))
        if not inline.has_words:
            self.num_left += has_code(pieces)
            yield from inner
            return
        document_text = inline.document_text(self._source.place(paragraph.start))
        write = functools.partial(_written, inline, self._source.raw, paragraph, inner)
        yield Slot(paragraph.inner, paragraph.outer, document_text, write, inner=tuple(inner))

    def _inline(self, element: Element, inner: list[Slot], depth: int) -> Iterator[Piece]:
        """Yield the pieces of a paragraph or of what is in it; `inner` gets the slots of paragraphs in it."""
        raw = self._source.raw
        is_code = self._is_code(element)
        for child in element.children:
            if isinstance(child, str):
                yield from code(child, as_raw) if is_code else [Piece(Kind.TEXT, text=child)]
                continue
            name = child.name.removeprefix(self._prefixes["text"])
            whole = raw[child.start : child.end]
            content = child.first(self._name("text", "ruby-base")) if name == "ruby" else child
            if name in _PAIRS and child.attributes.get(self._name("text", "style-name")) in self._invisible:
                yield from self._inline(child, inner, depth)
            elif name in _PAIRS and self._is_whole_code(child):
                yield Piece(Kind.KEPT, whole, child.text(), is_code=True)
            elif content is not None and (name in _PAIRS or name == "ruby") and child.inner < child.end:
                yield Piece(Kind.OPEN, raw[child.start : content.inner])
                yield from self._inline(content, inner, depth)
                yield Piece(Kind.CLOSE, raw[content.outer : child.end])
            elif name in _BREAKS:
                yield Piece(Kind.BREAK, whole)
            elif _ORDERED.match(name):
                yield Piece(Kind.ORDERED, whole)
            elif nested := list(self._paragraphs(child)):
                for paragraph in nested:
                    inner += self._of_paragraph(paragraph, depth + 1)
                yield Piece(Kind.MARK, whole, f"{child.start}:{child.end}")
            elif name != child.name and child.text().strip():
                yield Piece(Kind.KEPT, whole, child.text())
            else:
                yield Piece(Kind.MARK, whole)

    def _is_whole_code(self, span: Element) -> bool:
        """Return whether all of a span is code without white space around it, and has no paragraphs in it."""
        text = span.text()
        return text != "" and text == text.strip() and self._is_code(span) and not any(self._paragraphs(span))

    def _paragraphs(self, element: Element) -> Iterator[Element]:
        if element.name == self._name("office", "annotation"):
            self.has_comments = True
            return
        for child in element.elements:
            if child.name in (self._name("text", "p"), self._name("text", "h")):
                yield child
            else:
                yield from self._paragraphs(child)


def read(data: bytes, _: DocumentOptions) -> Document:
    archive = Archive(data, "an OpenDocument file", "an OpenDocument file")
    if _MANIFEST in archive.names and b"encryption-data" in archive.read(_MANIFEST):
        raise DocumentError("it is encrypted; save it without a password.", _MANIFEST)
    names = [name for name in _PARTS if name in archive.names or name == _PARTS[-1]]
    reader, parts, notes = read_prose(archive, names, _PARTS[-1:], _Reader)
    notes = [*reader.named.notes, *notes]
    if reader.has_comments:
        notes.append("Comments were left as they are.")
    return package(archive, reversed(parts), notes)


def _unquoted(value: str) -> str:
    return html.unescape(from_raw(value[1:-1]).decode("utf-8", "replace"))


def _with_borders(pieces: list[Piece]) -> Iterator[Piece]:
    """Yield the pieces with white space as a reader sees it, and that at the borders as it was written."""
    for index, piece in enumerate(pieces):
        if piece.kind is not Kind.TEXT:
            yield piece
            continue
        text = piece.text.lstrip(_SPACE) if index == 0 else piece.text
        inner = text.rstrip(_SPACE) if index == len(pieces) - 1 else text
        borders = piece.text[: len(piece.text) - len(text)], text[len(inner) :]
        before, after = ([Piece(Kind.ORDERED, border)] if border else [] for border in borders)
        yield from (*before, Piece(Kind.TEXT, text=_SPACES.sub(" ", inner)), *after)


def _written(
    inline: InlineText, source: str, paragraph: Element, inner: Sequence[Slot], translation: str, *written: str
) -> str:
    """Return the content of a paragraph; `written` are the contents of the `inner` ones, in their places."""
    starts = [slot.start for slot in inner]

    def filled(first: int, last: int) -> str:
        output: list[str] = []
        for index in range(bisect.bisect_left(starts, first), bisect.bisect_left(starts, last)):
            output += (source[first : starts[index]], written[index])
            first = inner[index].end
        return "".join((*output, source[first:last]))

    if translation == inline.text:
        return filled(paragraph.inner, paragraph.outer)
    output = []
    for piece in inline.pieces(translation):
        if piece.kind is Kind.TEXT:
            output.append(as_raw(_SPACES.sub(" ", piece.text)))
        elif piece.kind is Kind.MARK and piece.text:
            start, _, end = piece.text.partition(":")
            output.append(filled(int(start), int(end)))
        else:
            output.append(piece.raw)
    return "".join(output)
