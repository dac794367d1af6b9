"""XLIFF 1.2 and 2 (https://docs.oasis-open.org/xliff): sources are translated into targets.

A target that has a translation is kept, unless its state says that it needs one. Targets that are written get the
state `translated`; in 1.2 also the qualifier `mt-suggestion`. Their language is written in BCP 47, whichever spelling
the caller has for it.
"""

import functools
import re
from collections.abc import Iterator
from dataclasses import replace

from service.documents.document import Document, DocumentOptions, DocumentText, Edit, Slot, Spliced
from service.documents.encodings import decoded
from service.documents.errors import DocumentError
from service.documents.inline import InlineText, Kind, Piece
from service.documents.xml_source import Element, XmlSource, as_raw, attribute, from_raw
from service.text.languages import canonical

_UNFINISHED = ("new", "needs-translation", "needs-adaptation", "needs-l10n")  # states of 1.2
_STATES = re.compile(r"""(?<!\s)\s++(?:state|state-qualifier|subState)\s*=\s*(?:"[^"]*"|'[^']*')""")
_PAIRS = ("g", "mrk", "pc")
_OPENINGS = ("bpt", "bx", "sc", "sm")
_CLOSINGS = ("ept", "ex", "ec", "em")


def read(data: bytes, options: DocumentOptions) -> Document:
    """Read XLIFF in UTF-8 or UTF-16.

    Raises:
        DocumentError: it is no XLIFF, not well-formed, or its targets are in another language than `options.target`.
    """
    options = replace(options, target=canonical(options.target))
    text, encode = decoded(data)
    source = XmlSource(text.encode())
    reader = _Reader(source, options)
    slots = list(reader.slots())
    return Spliced(source.raw, slots, lambda raw: encode(from_raw(raw).decode()), edits=reader.edits)


class _Reader:
    """The texts of one document, and the languages that it still lacks."""

    def __init__(self, source: XmlSource, options: DocumentOptions) -> None:
        self._source = source
        self._options = options
        self._prefix = ""
        self._is_first = False  # XLIFF 1
        self._with_language: set[int] = set()  # positions of elements that name the language of the targets
        self.edits: list[Edit] = []

    def slots(self) -> Iterator[Slot]:
        """Yield the texts in order."""
        for unit in self._source.elements(self._units):
            if self._is_first:
                yield from self._of_first(unit)
            else:
                yield from self._of_second(unit)

    def _units(self, root: Element) -> tuple[str, ...]:
        self._prefix, _, name = root.name.rpartition(":")
        self._prefix += ":" if self._prefix else ""
        version = root.attributes.get("version", "")
        if name != "xliff" or version[:2] not in ("1.", "2."):
            raise DocumentError(
                f"the root is <{root.name[:40]}> of version {version[:10]!r}; expected <xliff> of version 1.2 or 2.0.",
                self._source.place(root.start),
            )
        self._is_first = version.startswith("1.")
        return (self._prefix + ("trans-unit" if self._is_first else "unit"),)

    def _of_first(self, unit: Element) -> Iterator[Slot]:
        source, target = unit.first(f"{self._prefix}source"), unit.first(f"{self._prefix}target")
        if source is None or not _is_translated(unit):
            return
        is_done = unit.attributes.get("approved") == "yes"
        if target is not None and target.text().strip():
            is_done |= target.attributes.get("state", "translated") not in _UNFINISHED
        if is_done and not self._options.has_all:
            return
        segmented = unit.first(f"{self._prefix}seg-source")
        inline = InlineText(self._pieces(segmented or source), is_strict=True)
        if not inline.has_words:
            return
        self._name_language(unit, f"{self._prefix}file", "target-language")
        states = ' state="translated" state-qualifier="mt-suggestion"'
        yield self._slot(inline, source, target, (segmented or source).end, states, "", 0)

    def _of_second(self, unit: Element) -> Iterator[Slot]:
        for segment in unit.elements:
            source, target = segment.first(f"{self._prefix}source"), segment.first(f"{self._prefix}target")
            if segment.name != f"{self._prefix}segment" or source is None or not _is_translated(unit):
                continue
            has_target = target is not None and bool(target.text().strip())
            state = segment.attributes.get("state", "translated" if has_target else "initial")
            is_done = (state != "initial" and has_target) or state == "final"
            if is_done and not self._options.has_all:
                continue
            inline = InlineText(self._pieces(source), is_strict=True)
            if not inline.has_words:
                continue
            root = list(unit.ancestors)[-1]
            self._name_language(unit, root.name, "trgLang")
            raw = self._source.raw
            opening = _with_attributes(raw[segment.start : segment.inner], ' state="translated"')
            start = target.start if target else source.end
            yield self._slot(
                inline, source, target, source.end, "", opening + raw[segment.inner : start], segment.start
            )

    def _slot(
        self,
        inline: InlineText,
        source: Element,
        target: Element | None,
        after: int,
        states: str,
        before: str,
        start: int,
    ) -> Slot:
        """Return the slot of a target, or of a new one `after` its source.

        The slot begins with `before`, which is from `start` on, if there is one.
        """
        raw = self._source.raw
        if target is None:
            indent = _indent(raw, source.start)
            opening, closing = f"{indent}<{self._prefix}target{states}>", f"</{self._prefix}target>"
            place = end = after
        else:
            place, end = target.start, target.end
            opening = raw[target.start : target.inner]
            if target.inner == target.end:
                opening = opening.removesuffix("/>").rstrip() + ">"
            opening, closing = _with_attributes(opening, states), f"</{target.name}>"
        told = DocumentText(inline.text, inline.mime_type, self._source.place(source.start))
        write = functools.partial(_written, inline, before + opening, closing)
        return Slot(start if before else place, end, told, write, is_target=True)

    def _name_language(self, unit: Element, name: str, key: str) -> None:
        """See that the element around a unit that names the language of its targets does so, rightly."""
        element = next((each for each in unit.ancestors if each.name == name), None)
        wanted = self._options.target
        if element is None or not wanted or element.start in self._with_language:
            return
        self._with_language.add(element.start)
        found = element.attributes.get(key)
        if found is None:
            self.edits.append(Edit(element.inner - 1, element.inner - 1, f" {key}={attribute(wanted)}"))
        elif _primary(canonical(found)) != _primary(wanted):
            raise DocumentError(
                f"its {key} is {found!r}, and the translations are in {wanted!r}.", self._source.place(element.start)
            )

    def _pieces(self, element: Element) -> list[Piece]:
        is_nested = _is_nested(element)
        return list(self._inline(element, is_nested))

    def _inline(self, element: Element, is_nested: bool) -> Iterator[Piece]:
        raw = self._source.raw
        for child in element.children:
            if isinstance(child, str):
                yield Piece(Kind.TEXT, text=child)
                continue
            name = child.name.removeprefix(self._prefix)
            whole = raw[child.start : child.end]
            if name in _PAIRS and child.inner < child.end:
                if child.attributes.get("mtype") == "protected" or child.attributes.get("translate") == "no":
                    yield Piece(Kind.KEPT, whole, child.text())
                    continue
                yield Piece(Kind.OPEN, raw[child.start : child.inner])
                yield from self._inline(child, is_nested)
                yield Piece(Kind.CLOSE, raw[child.outer : child.end])
            elif name in _OPENINGS:
                yield Piece(Kind.OPEN if is_nested else Kind.ORDERED, whole)
            elif name in _CLOSINGS:
                yield Piece(Kind.CLOSE if is_nested else Kind.ORDERED, whole)
            else:
                yield Piece(Kind.MARK, whole)


def _is_translated(unit: Element) -> bool:
    values = (each.attributes.get("translate") for each in unit.ancestors)
    return next((value for value in values if value), "yes") == "yes"


def _is_nested(element: Element) -> bool:
    """Return whether the start and end marks in an element form pairs that nest, with each other and with elements."""
    path: list[str] = []
    for child in element.elements:
        name = child.name.rpartition(":")[2]
        own = child.attributes.get("rid") or child.attributes.get("startRef") or child.attributes.get("id", "")
        if name in _OPENINGS:
            path.append(own)
        elif name in _CLOSINGS:
            if not path or path.pop() != own:
                return False
        elif name in _PAIRS and not _is_nested(child):
            return False
    return not path


def _with_attributes(tag: str, attributes: str) -> str:
    return _STATES.sub("", tag).removesuffix(">") + attributes + ">" if attributes else tag


def _indent(raw: str, position: int) -> str:
    """Return the line end and the white space before a position; nothing if something else is before it on its line."""
    start = position
    while start and raw[start - 1] in " \t\r":
        start -= 1
    return raw[start - 1 : position] if raw.startswith("\n", start - 1) and start else ""


def _primary(language: str) -> str:
    return re.split("[-_]", language.lower())[0]


def _written(inline: InlineText, opening: str, closing: str, translation: str) -> str:
    output = [as_raw(piece.text) if piece.kind is Kind.TEXT else piece.raw for piece in inline.pieces(translation)]
    return opening + "".join(output) + closing
