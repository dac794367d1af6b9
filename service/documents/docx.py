"""Word documents (ECMA-376): paragraphs of the text, headers, footers, footnotes, endnotes and text boxes.

A paragraph is a text. Its most frequent formatting is that of the paragraph; words in another one are in a tag of
their own. Links, bookmarks, footnote marks, pictures and fields keep their places among the words; the results of
fields, such as page numbers and references, stay as they are. Comments and deleted text are not translated.
"""

import functools
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from service.documents.archive import Archive
from service.documents.document import NO_DOUBTS, Document, DocumentOptions, DocumentText, Doubt, Slot, Spliced
from service.documents.docx_items import Item, balanced, with_fields
from service.documents.errors import DocumentError
from service.documents.inline import InlineText, Kind, Piece
from service.documents.xml_source import Element, XmlSource, as_raw, from_raw

_NAMESPACES = (
    "http://schemas.openxmlformats.org/wordprocessingml/2006/main",
    "http://purl.oclc.org/ooxml/wordprocessingml/main",
)
_CONTENT_TYPES = "[Content_Types].xml"
_TEXT_TYPES = re.compile(
    r"application/vnd\.openxmlformats-officedocument\.wordprocessingml\."
    r"(?:document\.main|header|footer|footnotes|endnotes)\+xml"
)
# Around runs; the content of the first is in an element of its own.
_WRAPPERS = ("sdt", "hyperlink", "ins", "moveTo", "smartTag", "customXml", "dir", "bdo")
_RANGES = ("bookmarkStart", "bookmarkEnd", "commentRangeStart", "commentRangeEnd", "permStart", "permEnd")
_LEFT_OUT = ("proofErr", "lastRenderedPageBreak")  # what Word found out about the old text
_CHARACTERS: Mapping[str, str] = MappingProxyType({"noBreakHyphen": "\u2011", "softHyphen": "\u00ad"})
_SPACES = re.compile(r"[\t\n\r]+")


class _Part:
    """One XML file of the archive."""

    def __init__(self, name: str, data: bytes) -> None:
        self._source = XmlSource(data, name)
        self._w = ""  # the prefix of WordprocessingML, with its colon
        slots = (slot for each in self._source.elements(self._paragraphs) for slot in self._of_paragraph(each))
        self.document = Spliced(self._source.raw, slots, from_raw)

    def _paragraphs(self, root: Element) -> tuple[str, ...]:
        declared = {value: key for key, value in root.attributes.items() if key == "xmlns" or key.startswith("xmlns:")}
        key = next((declared[namespace] for namespace in _NAMESPACES if namespace in declared), None)
        if key is None:
            raise DocumentError("it is no WordprocessingML.", self._source.place(root.start))
        self._w = f"{key.removeprefix('xmlns:')}:" if key != "xmlns" else ""
        return (f"{self._w}p",)

    def _of_paragraph(self, paragraph: Element) -> Iterator[Slot]:
        slots: list[Slot] = []
        run: list[Item] = []
        for item in [*with_fields(list(self._items(paragraph, slots))), Item(None, 0, 0)]:
            if item.kind is not None:
                run.append(item)
                continue
            for part in balanced(run):
                slots += self._slot(part)
            run = []
        yield from sorted(slots, key=lambda slot: slot.start)

    def _slot(self, items: Sequence[Item]) -> Iterator[Slot]:
        if not any(item.kind is Kind.TEXT and item.text.strip() for item in items):
            return
        inline = InlineText(_pieces(items))
        if inline.has_words:
            start, end = items[0], items[-1]
            text = DocumentText(inline.text, inline.mime_type, self._source.place(start.start))
            before = f"</{self._w}r>" if start.splits_before else ""
            after = f"<{self._w}r>{end.properties}" if end.splits_after else ""
            write = functools.partial(_written, inline, self._w, before, after)
            yield Slot(start.start, end.end, text, write)

    def _items(self, element: Element, slots: list[Slot]) -> Iterator[Item]:
        """Yield the parts of a paragraph or of what is around its runs; `slots` gets those of paragraphs in it."""
        raw = self._source.raw
        for child in element.elements:
            name = self._name(child)
            if name == "r":
                yield from self._of_run(child, slots)
            elif name in _WRAPPERS and child.inner < child.end:
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
                yield Item(Kind.KEPT, child.start, child.end, raw[child.start : child.end], self._shown(child))
            elif name in _LEFT_OUT:
                yield Item(Kind.ORDERED, child.start, child.end)
            elif not name.endswith("Pr"):
                yield self._left(child, slots, Item(Kind.MARK, child.start, child.end, raw[child.start : child.end]))

    def _of_run(self, run: Element, slots: list[Slot]) -> Iterator[Item]:
        raw = self._source.raw
        properties = ""
        children = []
        for child in run.elements:
            if child.name == f"{self._w}rPr":
                properties = self._of_any_language(raw[child.start : child.end])
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
                text = child.text()
                text = text if child.attributes.get("xml:space") == "preserve" else text.strip()
                yield replace(item, kind=Kind.TEXT, text=text)
            elif name in _CHARACTERS:
                yield replace(item, kind=Kind.TEXT, text=_CHARACTERS[name])
            elif name in ("tab", "ptab", "cr") or (
                name == "br" and self._attribute(child, "type") in ("", "textWrapping")
            ):
                yield replace(item, kind=Kind.BREAK)
            elif name == "br":
                yield replace(item, kind=None)
            elif name in _LEFT_OUT:
                yield replace(item, kind=Kind.ORDERED, raw="")
            elif name == "fldChar":
                yield replace(item, kind=Kind.ORDERED, field=self._attribute(child, "fldCharType"))
            elif name == "instrText":
                yield replace(item, kind=Kind.ORDERED, field="instruction", text=child.text())
            else:
                yield self._left(child, slots, item)

    def _of_any_language(self, properties: str) -> str:
        """Return a run's formatting without the language of its text, in which words that look the same may differ."""
        left = re.sub(rf"<{self._w}(?:lang|noProof)(?:\s[^<>]*)?/>", "", properties)
        return "" if re.fullmatch(rf"<{self._w}rPr>\s*</{self._w}rPr>", left) else left

    def _left(self, element: Element, slots: list[Slot], item: Item) -> Item:
        """Return an item for an element that stays as it is, but for the paragraphs in it, such as those of a box."""
        inner = list(_outermost(element, f"{self._w}p"))
        for paragraph in inner:
            slots += self._of_paragraph(paragraph)
        return replace(item, kind=None) if inner else item

    def _name(self, element: Element) -> str:
        """Return the name in WordprocessingML; that of another vocabulary with its prefix."""
        return element.name[len(self._w) :] if element.name.startswith(self._w) else element.name

    def _attribute(self, element: Element, name: str) -> str:
        return next((value for key, value in element.attributes.items() if key.rpartition(":")[2] == name), "")

    def _shown(self, element: Element) -> str:
        return "".join(each.text() for each in _outermost(element, f"{self._w}t"))


class _WordDocument:
    """The parts of a document as one."""

    notes: Sequence[str] = ()

    def __init__(self, archive: Archive, parts: Mapping[str, Spliced]) -> None:
        self._archive = archive
        self._parts = parts
        self.texts = [text for part in parts.values() for text in part.texts]

    def written(self, translations: Sequence[str], doubts: Mapping[int, Doubt] = NO_DOUBTS) -> bytes:
        """See `Document.written`; nothing in a Word document marks a translation as one to check."""
        if len(translations) != len(self.texts):
            raise ValueError(f"{len(translations)} translations for {len(self.texts)} texts")
        replaced = {}
        done = 0
        for name, part in self._parts.items():
            replaced[name] = part.written(translations[done : done + len(part.texts)])
            done += len(part.texts)
        return self._archive.written(replaced)


def read(data: bytes, _: DocumentOptions) -> Document:
    """Read a Word document.

    Raises:
        DocumentError: it is no such document, damaged, encrypted, or larger than the limits of `archive`.
    """
    archive = Archive(data)
    names = list(_text_parts(archive))
    if not names:
        raise DocumentError("it names no text of a Word document.", _CONTENT_TYPES)
    return _WordDocument(archive, {name: _Part(name, _utf8(archive.read(name), name)).document for name in names})


def _text_parts(archive: Archive) -> Iterator[str]:
    """Yield the names of the files with text, the main one first, as they are listed."""
    source = XmlSource(_utf8(archive.read(_CONTENT_TYPES), _CONTENT_TYPES), _CONTENT_TYPES)
    found: list[tuple[bool, str]] = []
    for element in source.elements(lambda _: ("Override",)):
        name = element.attributes.get("PartName", "").removeprefix("/")
        content = element.attributes.get("ContentType", "")
        if _TEXT_TYPES.fullmatch(content) and name in archive.names:
            found.append(("document.main" not in content, name))
    yield from dict.fromkeys(name for _, name in sorted(found))


def _utf8(data: bytes, name: str) -> bytes:
    """Return XML in UTF-8; UTF-16 is allowed, and nobody writes it."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise DocumentError("it is UTF-16; save the document again with a word processor.", name)
    return data


def _outermost(element: Element, name: str) -> Iterator[Element]:
    for child in element.elements:
        if child.name == name:
            yield child
        else:
            yield from _outermost(child, name)


def _pieces(items: Iterable[Item]) -> Iterator[Piece]:
    """Yield pieces in which formatting other than the most frequent is in pairs, whose `text` is that formatting."""
    every = list(items)
    lengths: Counter[str] = Counter()
    for item in every:
        if item.kind is Kind.TEXT:
            lengths[item.properties] += len(item.text.strip())
    base = lengths.most_common(1)[0][0]
    current = base
    # The base is the outermost pair, so that a writer knows it; it is around all of the text and never moves.
    yield Piece(Kind.OPEN, text=base)
    for item in every:
        is_text = item.kind is Kind.TEXT
        wanted = base if item.kind in (Kind.OPEN, Kind.CLOSE, Kind.BREAK) else current
        if is_text and item.text.strip():
            wanted = item.properties
        if wanted != current:
            if current != base:
                yield Piece(Kind.CLOSE)
            if wanted != base:
                yield Piece(Kind.OPEN, text=wanted)
            current = wanted
        assert item.kind is not None
        yield Piece(item.kind, "" if is_text else item.raw, item.text)
    if current != base:
        yield Piece(Kind.CLOSE)
    yield Piece(Kind.CLOSE)


def _written(inline: InlineText, w: str, before: str, after: str, translation: str) -> str:
    output = [before]
    formats: list[str] = [""]  # outside of all pairs, and in each that is open
    for piece in inline.pieces(translation):
        match piece.kind:
            case Kind.OPEN:
                formats.append(formats[-1] if piece.raw else piece.text)
                output.append(piece.raw)
            case Kind.CLOSE:
                formats.pop()
                output.append(piece.raw)
            case Kind.TEXT if piece.text:
                text = as_raw(_SPACES.sub(" ", piece.text))
                output.append(f'<{w}r>{formats[-1]}<{w}t xml:space="preserve">{text}</{w}t></{w}r>')
            case _:
                output.append(piece.raw)
    return "".join((*output, after))
