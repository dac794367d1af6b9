"""Paragraphs of DrawingML (ECMA-376), the language of slides, and of text boxes and charts in other documents.

A paragraph is a text. Its most frequent formatting is that of the paragraph; words in another one, such as links, are
in a tag of their own. Fields, such as the slide's number, stay, and so does code, which is in a font of fixed pitch.
"""

import functools
import re
from collections.abc import Iterator

from service.documents.code_styles import CodeStyles
from service.documents.document import Slot, has_words
from service.documents.inline import FormattedText, Kind, Piece, code, has_code
from service.documents.xml_source import Element, XmlSource, as_raw

# The types of files with such paragraphs, whatever document they are in.
DRAWN = (
    "application/vnd.openxmlformats-officedocument.drawingml.diagramData+xml",
    "application/vnd.ms-office.drawingml.diagramDrawing+xml",
    "application/vnd.openxmlformats-officedocument.drawingml.chart+xml",
)
_NAMESPACES = ("http://schemas.openxmlformats.org/drawingml/2006/main", "http://purl.oclc.org/ooxml/drawingml/main")
_CHECKED = re.compile(r"""\s(?:lang|altLang|dirty|err|smtClean|noProof)\s*=\s*(?:"[^"]*"|'[^']*')""")


class Drawing:
    """A reader of paragraphs, which counts those that are nothing but code."""

    def __init__(self, *, by_font: bool = True) -> None:
        self.num_left = 0
        self._code = CodeStyles({}, None, by_font=by_font)

    def slots(self, source: XmlSource) -> Iterator[Slot]:
        """Yield the paragraphs of a file."""
        a = ""
        styles: Element | None = None  # those of the body that is being read

        def wanted(root: Element) -> tuple[str, ...]:
            nonlocal a
            found = (key for key, value in root.attributes.items() if value in _NAMESPACES and key.startswith("xmlns"))
            a = next((key[6:] + ":" if key[6:] else "" for key in found), "a:")
            return f"{a}p", f"{a}lstStyle"

        for element in source.elements(wanted):
            if element.name == f"{a}lstStyle":
                styles = element
                continue
            if any(isinstance(child, str) and child.strip() for child in element.children):
                continue  # no program writes it so
            own = styles if styles is not None and styles.parent is element.parent else None
            runs = list(self._runs(source, element, a, _font_of_level(own, element, a)))
            has_text = any(piece.kind is Kind.TEXT and has_words(piece.text) for _, piece in runs)
            self.num_left += not has_text and has_code(piece for _, piece in runs)
            if has_text:
                text = FormattedText(runs)
                children = list(element.elements)
                start, end = children[0].start, children[-1].end
                write = functools.partial(_written, text, a)
                yield Slot(start, end, text.inline.document_text(source.place(start)), write)

    def _runs(
        self, source: XmlSource, paragraph: Element, a: str, font: str | None
    ) -> Iterator[tuple[str | None, Piece]]:
        """Yield the pieces of a paragraph with their formatting, in which white space is as the text before it."""
        properties: str | None = ""
        for child in paragraph.elements:
            name, raw = child.name.removeprefix(a), source.raw[child.start : child.end]
            text = "".join(each.text() for each in child.elements if each.name == f"{a}t")
            own = child.first(f"{a}rPr")
            said = _font(own, a)
            if name == "r" and self._code.is_code(font if said is None else said, ()) and not _has_more(child, a):
                properties = None
                formatting = source.raw[own.start : own.end] if own else ""
                yield from ((None, piece) for piece in code(text, functools.partial(_run, a, formatting)))
            elif name == "r" and not _has_more(child, a):
                if text.strip():
                    properties = _properties(source, own)
                yield properties, Piece(Kind.TEXT, text=text)
            elif name == "br":
                yield None, Piece(Kind.BREAK, raw)
            elif name == "fld":
                yield None, Piece(Kind.KEPT, raw, text)
            else:
                yield None, Piece(Kind.MARK, raw)


def _font(properties: Element | None, a: str) -> str | None:
    """Return the font that formatting names; empty if it is one of the theme."""
    latin = properties.first(f"{a}latin") if properties else None
    return re.sub(r"\+.*", "", latin.attributes.get("typeface", "")) if latin else None


def _font_of_level(styles: Element | None, paragraph: Element, a: str) -> str | None:
    """Return the font that a list of styles has for the level of a paragraph."""
    properties = paragraph.first(f"{a}pPr")
    level = properties.attributes.get("lvl", "0") if properties else "0"
    own = styles.first(f"{a}lvl{ord(level[:1] or '0') - ord('0') + 1}pPr") if styles else None
    return _font(own.first(f"{a}defRPr"), a) if own else None


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
            output.append(_run(a, formatting, piece.text))
        else:
            output.append(piece.raw)
    return "".join(output)


def _run(a: str, formatting: str, text: str) -> str:
    raw = as_raw(re.sub(r"[\n\r]+", " ", text))
    return f"<{a}r>{formatting}<{a}t>{raw}</{a}t></{a}r>"
