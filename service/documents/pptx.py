"""Presentations (ECMA-376): paragraphs of slides, speaker's notes, tables, SmartArt, and titles in charts.

A paragraph is a text. Its most frequent formatting is that of the paragraph; words in another one, such as links, are
in a tag of their own. Fields, such as the slide's number, stay. Left as they are: masters and layouts, comments,
descriptions of pictures, and what charts show of their tables.
"""

import functools
import re
from collections.abc import Iterator

from service.documents.archive import Archive, package, xml_part
from service.documents.document import Document, DocumentOptions, Slot
from service.documents.errors import DocumentError
from service.documents.inline import FormattedText, Kind, Piece
from service.documents.xml_source import Element, XmlSource, as_raw

_NAMESPACES = ("http://schemas.openxmlformats.org/drawingml/2006/main", "http://purl.oclc.org/ooxml/drawingml/main")
_TYPES = "[Content_Types].xml"
_MAIN = re.compile(r"application/vnd\..*(?:presentation|slideshow|template)\.(?:main|macroEnabled\.main)\+xml")
# The kinds of files with texts, in the order in which they are read.
_TEXT_TYPES = (
    "application/vnd.openxmlformats-officedocument.presentationml.slide+xml",
    "application/vnd.openxmlformats-officedocument.presentationml.notesSlide+xml",
    "application/vnd.openxmlformats-officedocument.drawingml.diagramData+xml",
    "application/vnd.ms-office.drawingml.diagramDrawing+xml",
    "application/vnd.openxmlformats-officedocument.drawingml.chart+xml",
)
_COMMENTS = ("application/vnd.openxmlformats-officedocument.presentationml.comments+xml",)
_CHECKED = re.compile(r"""\s(?:lang|altLang|dirty|err|smtClean|noProof)\s*=\s*(?:"[^"]*"|'[^']*')""")


def read(data: bytes, _: DocumentOptions) -> Document:
    """Read a presentation."""
    archive = Archive(data, "a .pptx", "a presentation")
    types = _types(archive)
    if not any(_MAIN.fullmatch(each) for each in types.values()):
        raise DocumentError("it names no presentation.", _TYPES)
    names = [name for name, kind in types.items() if kind in _TEXT_TYPES]
    # slide2 comes before slide10
    names.sort(key=lambda name: (_TEXT_TYPES.index(types[name]), [part.zfill(9) for part in re.split(r"(\d+)", name)]))
    parts = [xml_part(archive, name, _slots) for name in names]
    notes = []
    if _TEXT_TYPES[-1] in types.values():
        notes.append("Charts were left as they are, but for their titles: their tables name the rest.")
    if any(kind in _COMMENTS for kind in types.values()):
        notes.append("Comments were left as they are.")
    return package(archive, parts, notes)


def _types(archive: Archive) -> dict[str, str]:
    types: dict[str, str] = {}
    for element in XmlSource(archive.read(_TYPES), _TYPES).elements(lambda _: ("Override",)):
        name = element.attributes.get("PartName", "").removeprefix("/")
        if name in archive.names:
            types[name] = element.attributes.get("ContentType", "")
    return types


def _slots(source: XmlSource) -> Iterator[Slot]:
    prefixes: list[str] = []

    def wanted(root: Element) -> tuple[str, ...]:
        found = (key for key, value in root.attributes.items() if value in _NAMESPACES and key.startswith("xmlns"))
        prefixes.append(next((key[6:] + ":" if key[6:] else "" for key in found), "a:"))
        return (f"{prefixes[0]}p",)

    for paragraph in source.elements(wanted):
        if any(isinstance(child, str) and child.strip() for child in paragraph.children):
            continue  # no program writes it so
        runs = list(_runs(source, paragraph, prefixes[0]))
        if not any(piece.text.strip() for _, piece in runs if piece.kind is Kind.TEXT):
            continue
        text = FormattedText(runs)
        if text.inline.has_words:
            children = list(paragraph.elements)
            start, end = children[0].start, children[-1].end
            write = functools.partial(_written, text, prefixes[0])
            yield Slot(start, end, text.inline.document_text(source.place(start)), write)


def _runs(source: XmlSource, paragraph: Element, a: str) -> Iterator[tuple[str | None, Piece]]:
    """Yield the pieces of a paragraph with their formatting, in which white space is as the text before it."""
    properties = ""
    for child in paragraph.elements:
        name, raw = child.name.removeprefix(a), source.raw[child.start : child.end]
        text = "".join(each.text() for each in child.elements if each.name == f"{a}t")
        if name == "r" and not _has_more(child, a):
            if text.strip():
                properties = _properties(source, child.first(f"{a}rPr"))
            yield properties, Piece(Kind.TEXT, text=text)
        elif name == "br":
            yield None, Piece(Kind.BREAK, raw)
        elif name == "fld":
            yield None, Piece(Kind.KEPT, raw, text)
        else:
            yield None, Piece(Kind.MARK, raw)


def _has_more(run: Element, a: str) -> bool:
    """Return whether a run has more than formatting and text, which is all that a written run has."""
    for child in run.children:
        if isinstance(child, str):
            if child.strip():
                return True
        elif child.name != f"{a}rPr" and (child.name != f"{a}t" or any(child.elements)):
            return True
    return False


def _properties(source: XmlSource, element: Element | None) -> str:
    """Return formatting as it is written, but for what a program found out about the language of the old text."""
    if element is None:
        return ""
    tag = source.raw[element.start : element.inner]
    written = _CHECKED.sub("", tag) + source.raw[element.inner : element.end]
    return "" if re.fullmatch(r"<[\w:]+\s*/>", written) else written


def _written(text: FormattedText, a: str, translation: str) -> str:
    output: list[str] = []
    for formatting, piece in text.runs(translation):
        if piece.kind is Kind.TEXT and piece.text:
            raw = as_raw(re.sub(r"[\n\r]+", " ", piece.text))
            output.append(f"<{a}r>{formatting}<{a}t>{raw}</{a}t></{a}r>")
        else:
            output.append(piece.raw)
    return "".join(output)
