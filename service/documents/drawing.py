"""Paragraphs of runs in DrawingML and SpreadsheetML (ECMA-376): of slides, text boxes, charts, and cells.

A paragraph is a text. Its most frequent formatting is the paragraph's; words in another one, such as links, have a tag.
Fields, such as the slide's number, stay, and so does code, in a font of fixed pitch.
"""

import functools
import itertools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from service.documents.code_styles import CodeStyles
from service.documents.document import Slot, has_words
from service.documents.docx_text import is_raised, unchecked
from service.documents.inline import FormattedText, Kind, Piece, code, has_code
from service.documents.values import has_half
from service.documents.xml_source import Element, XmlSource, as_raw

# The types of files with such paragraphs, whatever document they are in.
DRAWN = (
    "application/vnd.openxmlformats-officedocument.drawingml.diagramData+xml",
    "application/vnd.ms-office.drawingml.diagramDrawing+xml",
    "application/vnd.openxmlformats-officedocument.drawingml.chart+xml",
)
_NAMESPACES = ("http://schemas.openxmlformats.org/drawingml/2006/main", "http://purl.oclc.org/ooxml/drawingml/main")
_READINGS = ("rPh", "phoneticPr")  # of Japanese words; they say at which characters these are
_LINE_ENDS = re.compile(r"([\n\r]+)")
_ESCAPE = re.compile("_x([0-9A-Fa-f]{4})_")
_ESCAPED = re.compile("_(?=x[0-9A-Fa-f]{4}_)|[\x00-\x08\x0b-\x1f]")
_LEVEL = re.compile(r"(?:\w+:)?lvl([1-9])pPr")


@dataclass(frozen=True, slots=True)
class Runs:
    """A reader of runs whose elements have this prefix, and a writer, with these attributes of texts."""

    prefix: str
    styles: CodeStyles
    attributes: str = ""

    def slot(self, pieces: list[tuple[str, Piece]], start: int, end: int, place: str) -> Iterator[Slot]:
        """Yield the slot of pieces, from `start` to before `end`, if they have words that can be translated."""
        texts = [piece.text for _, piece in pieces if piece.kind is Kind.TEXT]
        if any(map(has_words, texts)) and not any(map(has_half, texts)):
            text = FormattedText(pieces, is_raised)
            yield Slot(start, end, text.inline.document_text(place), functools.partial(text.written, self.write))

    def pieces(
        self, source: XmlSource, paragraph: Element, font: str | None = None, *styles: str
    ) -> Iterator[tuple[str, Piece]]:
        for child in paragraph.elements:
            name, raw = child.name.removeprefix(self.prefix), source.raw[child.start : child.end]
            properties = child.at("rPr")
            own = font_of(properties)
            if name == "r" and not _has_more(child):
                formatting = source.raw[properties.start : properties.end] if properties else ""
                if self.styles.is_code(font if own is None else own, styles):
                    write = functools.partial(self.write, formatting)
                    yield from (("", piece) for piece in code(shown(child), write))
                else:
                    yield from self._lines(unchecked(formatting), shown(child))
            elif name == "t":
                yield from self._lines("", unescaped(child.text()))
            elif name == "br":
                yield "", Piece(Kind.BREAK, raw)
            elif name == "fld":
                yield "", Piece(Kind.KEPT, raw, shown(child))
            elif name not in _READINGS:
                yield "", Piece(Kind.MARK, raw)

    def _lines(self, formatting: str, text: str) -> Iterator[tuple[str, Piece]]:
        for index, part in enumerate(_LINE_ENDS.split(text)):
            raw = self._run(formatting, part) if index % 2 else ""
            yield formatting, Piece(Kind.BREAK if index % 2 else Kind.TEXT, raw, part)

    def write(self, formatting: str, text: str) -> str:
        return self._run(formatting, _LINE_ENDS.sub(" ", text))

    def _run(self, formatting: str, text: str) -> str:
        x = self.prefix
        return f"<{x}r>{formatting}<{x}t{self.attributes}>{escaped(text)}</{x}t></{x}r>"


class Drawing:
    """A reader of paragraphs in DrawingML, which counts those that are nothing but code."""

    def __init__(self, styles: CodeStyles, layouts: Mapping[str, str] = MappingProxyType({})) -> None:
        """Take styles; the keys of those of placeholders begin with the layout of the file that has them."""
        self.num_left = 0
        self._styles = styles
        self._layouts = layouts

    def slots(self, source: XmlSource) -> Iterator[Slot]:
        layout = self._layouts.get(source.part, "")
        fonts: Mapping[str, str | None] = {}
        body: Element | None = None  # whose fonts these are
        for element, about in in_bodies(source):
            if element.name.endswith("lstStyle"):
                fonts, body = fonts_of_levels(element), element.parent
                continue
            if any(isinstance(child, str) and child.strip() for child in element.children):
                continue  # no program writes it so
            properties = element.at("pPr")
            level = properties.attributes.get("lvl", "0") if properties else "0"
            font = fonts.get(level) if element.parent is body else None
            runs = Runs(element.name.removesuffix("p"), self._styles)
            styles = [f"{layout} {about.get('idx', '0')} {level}"] if about else []
            pieces = list(runs.pieces(source, element, font, *styles))
            children = list(element.elements)
            start, end = (children[0].start, children[-1].end) if children else (0, 0)
            found = list(runs.slot(pieces, start, end, source.place(start)))
            self.num_left += not found and has_code(piece for _, piece in pieces)
            yield from found


def in_bodies(source: XmlSource) -> Iterator[tuple[Element, Mapping[str, str]]]:
    """Yield paragraphs and lists of styles, each with what is said of the placeholder that it is in."""
    shape: Element | None = None
    about: Mapping[str, str] = {}
    for element in source.elements(_wanted):
        if element.name.endswith("ph"):
            shape, about = next(itertools.islice(element.ancestors, 3, None), None), element.attributes
        else:
            yield element, about if any(each is shape for each in element.ancestors) else {}


def fonts_of_levels(styles: Element) -> dict[str, str | None]:
    levels = ((_LEVEL.fullmatch(each.name), each) for each in styles.elements)
    return {str(int(level[1]) - 1): font_of(each.at("defRPr")) for level, each in levels if level}


def font_of(properties: Element | None) -> str | None:
    """Return the font that formatting names; empty if it is one of the theme."""
    latin = (properties.at("latin") or properties.at("rFont")) if properties else None
    return re.sub(r"\+.*", "", latin.attributes.get("typeface", latin.attributes.get("val", ""))) if latin else None


def shown(run: Element) -> str:
    return unescaped("".join(each.text() for each in run.elements if each.name.rpartition(":")[2] == "t"))


def unescaped(text: str) -> str:
    """Decode characters written as `_xHHHH_`, as those are that XML can't have."""
    return _ESCAPE.sub(lambda match: chr(int(match[1], 16)), text)


def escaped(text: str) -> str:
    """Write a text, with what XML can't have, and what looks like such an escape, as `_xHHHH_`."""
    return as_raw(_ESCAPED.sub(lambda match: f"_x{ord(match[0]):04X}_", text))


def _wanted(root: Element) -> tuple[str, ...]:
    found = (key for key, value in root.attributes.items() if value in _NAMESPACES and key.startswith("xmlns"))
    a = next((key[6:] + ":" if key[6:] else "" for key in found), "a:")
    return f"{a}p", f"{a}lstStyle", f"{root.name[: root.name.rfind(':') + 1]}ph"


def _has_more(run: Element) -> bool:
    """Return whether a run has more than formatting and text, which is all that a written run has."""
    texts = [each for each in run.elements if each.name.rpartition(":")[2] == "t"]
    others = [each for each in run.elements if each.name.rpartition(":")[2] not in ("t", "rPr")]
    apart = "".join(each for each in run.children if isinstance(each, str))
    return bool(others or apart.strip() or any(any(text.elements) for text in texts))
