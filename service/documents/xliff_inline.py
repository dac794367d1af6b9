"""Sources of XLIFF, and segments of TMX, as pieces of text and inline codes."""

import re
from collections.abc import Iterator
from dataclasses import replace

from service.documents.arguments import ArgumentFormat, format_of
from service.documents.inline import Kind, Piece
from service.documents.layout import apart
from service.documents.program_strings import ProgramString
from service.documents.xml_source import Element, as_raw, writer_of

_PAIRS = ("g", "mrk", "pc", "hi")  # the last is TMX's
_OPENINGS = ("bpt", "bx", "sc", "sm")
_CLOSINGS = ("ept", "ex", "ec", "em")
_WRAPPED = re.compile(r"(?<![ \t\r\n])[ \t\r]*+\n\s*+")  # a line end, and the white space around it
_LINE_BREAKS = ("lb", "pb", "x-html-br", "x-br", "xlf:lb", "xlf:pb", "LINE_BREAK")
_BR = re.compile(r"\s*(?:<br\s{0,10}/?>|\\n|\n)\s*", re.IGNORECASE)
_OF_APPLE = (".strings", ".stringsdict", ".xcstrings", ".storyboard", ".xib", ".plist", ".intentdefinition")
_FORMATS = ("bold", "italic", "underlined", "BOLD", "ITALIC", "EMPHASISED", "UNDERLINED")


class InlineReader:
    """Reads the sources of a document, whose elements have a prefix."""

    def __init__(self, raw: str, prefix: str) -> None:
        self._raw = raw
        self._prefix = prefix
        self.num_sub_flows = 0

    def string(self, source: Element, *, keeps_lines: bool = False) -> ProgramString:
        keeps_lines |= source.inherited("xml:space") == "preserve"
        children = list(self._inline(source, _is_nested(source), keeps_lines=keeps_lines))
        pieces = apart(children, self._is_element, _separate)
        return ProgramString(pieces, _format_of(source), writer_of(self._raw, source))

    def _inline(self, element: Element, is_nested: bool, *, keeps_lines: bool, depth: int = 0) -> Iterator[Piece]:
        raw = self._raw
        last = len(element.children) - 1
        for index, child in enumerate(element.children):
            if isinstance(child, str):
                text = child if keeps_lines else _joined(child, not depth and not index, not depth and index == last)
                yield Piece(Kind.TEXT, text=text)
                continue
            name = child.name.removeprefix(self._prefix)
            whole = raw[child.start : child.end]
            if name in _PAIRS and child.inner < child.end:
                if child.attributes.get("mtype") == "protected" or child.attributes.get("translate") == "no":
                    yield Piece(Kind.KEPT, whole, child.text())
                    continue
                yield Piece(Kind.OPEN, raw[child.start : child.inner])
                yield from self._inline(child, is_nested, keeps_lines=keeps_lines, depth=depth + 1)
                yield Piece(Kind.CLOSE, raw[child.outer : child.end])
            elif name in _OPENINGS:
                yield Piece(Kind.OPEN if is_nested else Kind.ORDERED, whole)
            elif name in _CLOSINGS:
                yield Piece(Kind.CLOSE if is_nested else Kind.ORDERED, whole)
            elif (sides := _sides(child)) is not None:
                yield Piece(sides, whole)
            else:
                self.num_sub_flows += child.first(f"{self._prefix}sub") is not None
                yield Piece(Kind.BREAK if _is_line_break(child) else Kind.MARK, whole)

    def _is_element(self, piece: Piece) -> bool:
        name = piece.raw[1:].removeprefix(self._prefix)
        return name.startswith((*_PAIRS, *_OPENINGS, "x ", "ph ")) and not any(each in piece.raw for each in _FORMATS)


def _format_of(source: Element) -> ArgumentFormat:
    """Return how the file's program writes arguments; in a text without any, no sign has a meaning."""
    original = next((each.attributes["original"] for each in source.ancestors if "original" in each.attributes), "")
    kind = format_of(("objc-format",) if original.endswith(_OF_APPLE) else ())
    return replace(kind, escaped="")


def _separate(piece: Piece | None) -> Piece:
    return Piece(Kind.BREAK, as_raw(piece.text) if piece else "")


def _joined(text: str, is_first: bool, is_last: bool) -> str:
    """Return wrapped lines as one, but for the white space around all of a source."""
    start = len(text) - len(text.lstrip()) if is_first else 0
    end = len(text.rstrip()) if is_last else len(text)
    if start >= end:
        return text if is_first or is_last else _WRAPPED.sub(" ", text)
    return text[:start] + _WRAPPED.sub(" ", text[start:end]) + text[end:]


def _is_line_break(code: Element) -> bool:
    attributes = code.attributes
    if any(attributes.get(name) in _LINE_BREAKS for name in ("ctype", "type", "subType", "id", "equiv")):
        return True
    if code.attributes.get("id", "").startswith("LINE_BREAK"):
        return True
    texts = (attributes.get("equiv-text"), attributes.get("disp"), code.text())
    return any(each and _BR.fullmatch(each) for each in texts)


def _sides(code: Element) -> Kind | None:
    """Return which end of a pair a code is that Angular writes for a tag: START_LINK, CLOSE_LINK."""
    name = code.attributes.get("equiv") or code.attributes.get("id", "")
    return Kind.OPEN if name.startswith("START_") else Kind.CLOSE if name.startswith("CLOSE_") else None


def _is_nested(element: Element) -> bool:
    """Return whether the start and end marks in an element form pairs that nest, with each other and with elements."""
    path: list[str] = []
    for child in element.elements:
        name = child.name.rpartition(":")[2]
        own = next((child.attributes[key] for key in ("rid", "startRef", "i", "id") if child.attributes.get(key)), "")
        if name in _OPENINGS:
            path.append(own)
        elif name in _CLOSINGS:
            if not path or path.pop() != own:
                return False
        elif name in _PAIRS and not _is_nested(child):
            return False
    return not path
