"""Spreadsheets (ECMA-376): shared and inline strings, text boxes, and titles of charts.

Formulas, names of sheets and numbers stay, and so do texts that formulas, filters or tables name: a table is damaged if
a column's name is not its cell's text. Readings of Japanese words, which refer to characters, are dropped from
translations. Formulas that show text are computed when the file is opened.
"""

import html
import re
from collections.abc import Iterator

from service.documents.archive import CONTENT_TYPES, Archive, content_types, package, xml_part
from service.documents.code_styles import CodeStyles, note_on_code
from service.documents.document import Document, DocumentOptions, Edit, Slot
from service.documents.drawing import DRAWN, Drawing, Runs, escaped, unescaped
from service.documents.errors import DocumentError
from service.documents.formulas import NamedTexts
from service.documents.values import value_slots
from service.documents.xml_source import Element, XmlSource

_OPEN_XML = "application/vnd.openxmlformats-officedocument.spreadsheetml"
_MAIN = re.compile(r"application/vnd\.(?:openxmlformats-.*|ms-excel)\.(?:sheet|template)(?:\.macroEnabled)?\.main\+xml")
_SHEET, _STRINGS = f"{_OPEN_XML}.worksheet+xml", f"{_OPEN_XML}.sharedStrings+xml"
_NAMING = (_SHEET, f"{_OPEN_XML}.table+xml", f"{_OPEN_XML}.pivotCacheDefinition+xml")
_COMMENTS = (f"{_OPEN_XML}.comments+xml", "application/vnd.ms-excel.threadedcomments+xml")
_DRAWINGS = ("application/vnd.openxmlformats-officedocument.drawing+xml", *DRAWN)
_FORMULA = re.compile(
    r"<(?:\w+:)?(?:f|formula[12]?|definedName|calculatedColumnFormula|totalsRowFormula)(?:\s[^<>]*)?>([^<]+)<"
)
_NAME = re.compile(
    r"""<(?:\w+:)?(?:filter|customFilter|cfRule|tableColumn|cacheField)\s((?:[^<>"']|"[^"]*"|'[^']*')*+)>"""
)
_VALUE = re.compile(r"""\b(?:val|text|name|totalsRowLabel)=(?:"([^"]*)"|'([^']*)')""")
_PLACE = re.compile(r"""<(?:\w+:)?(?:sheet|definedName)\s(?:[^<>]*?\s)?name=(?:"([^"]*)"|'([^']*)')""")
_CELL = re.compile(r"<(?:\w+:)?c\s([^<>]*)>\s*<(?:\w+:)?v>(\d{1,9})</")
_ADDRESS = re.compile(r'\br="([A-Z]{1,3}\d{1,7})"')
_OWN_STRING = re.compile(r'\st="(?:inlineStr"|str"[^<>]*>\s*<(?:\w+:)?v\b)')
_TEXT_FORMULA = re.compile(r'\st="str"[^<>]*>\s*<(?:\w+:)?f\b')


def read(data: bytes, _: DocumentOptions) -> Document:
    archive = Archive(data, "an .xlsx", "a spreadsheet")
    types = content_types(archive)
    main = next((name for name, kind in types.items() if _MAIN.fullmatch(kind)), None)
    if main is None:
        raise DocumentError("it names no spreadsheet.", CONTENT_TYPES)
    reader = _Reader()
    for name, kind in types.items():
        if kind in _NAMING or name == main:
            reader.note_names(name, archive.read(name).decode("utf-8", "replace"))
    for place in _PLACE.finditer(archive.read(main).decode("utf-8", "replace")):
        reader.named.add_place(html.unescape(place[1] or place[2] or ""))
    drawing = Drawing(reader.code)
    parts = [xml_part(archive, name, reader.shared) for name, kind in types.items() if kind == _STRINGS]
    parts += [xml_part(archive, name, reader.inline) for name in reader.with_strings]
    parts += [xml_part(archive, name, drawing.slots) for name, kind in types.items() if kind in _DRAWINGS]
    if reader.has_text_formulas:
        parts.append(xml_part(archive, main, lambda _: (), _computed_at_once))
    notes = [*reader.named.notes, *note_on_code(drawing.num_left)]
    if any(kind in _COMMENTS for kind in types.values()):
        notes.append("Comments were left as they are.")
    return package(archive, [part for part in parts if part.slots or part.edits], notes)


class _Reader:
    """The texts of cells."""

    def __init__(self) -> None:
        self.named = NamedTexts()
        self.with_strings: list[str] = []  # sheets that have strings of their own
        self.has_text_formulas = False
        self.code = CodeStyles({}, None, by_font=True)
        self._cells: dict[int, str] = {}  # the first one of each shared string

    def note_names(self, name: str, text: str) -> None:
        """Record the names that formulas and tables use in a file, and which cells have shared strings."""
        for formula in _FORMULA.finditer(text):
            self.named.add_formula(html.unescape(formula[1]))
        for element in _NAME.finditer(text):
            for value in _VALUE.finditer(element[1]):
                self.named.add(unescaped(html.unescape(value[1] or value[2] or "")))
        for cell in _CELL.finditer(text):
            if 't="s"' in cell[1] and int(cell[2]) not in self._cells and (address := _ADDRESS.search(cell[1])):
                self._cells[int(cell[2])] = f"{name}, {address[1]}"
        if _OWN_STRING.search(text):
            self.with_strings.append(name)
        self.has_text_formulas |= _TEXT_FORMULA.search(text) is not None

    def shared(self, source: XmlSource) -> Iterator[Slot]:
        strings = source.elements(lambda root: (f"{root.name.removesuffix('sst')}si",))
        for index, element in enumerate(strings):
            yield from self._text(source, element, self._cells.get(index) or source.place(element.start))

    def inline(self, source: XmlSource) -> Iterator[Slot]:
        for cell in source.elements(lambda root: (f"{root.name.removesuffix('worksheet')}c",)):
            place = f"{source.part}, {cell.attributes.get('r', '')}"
            children = {each.name.rpartition(":")[2]: each for each in cell.elements}
            kind = cell.attributes.get("t", "")
            if kind == "inlineStr" and "is" in children:
                yield from self._text(source, children["is"], place)
            elif kind == "str" and children.keys() == {"v"} and not self.named.has(children["v"].text()):
                value = children["v"]
                yield from value_slots(value.inner, value.outer, unescaped(value.text()), place, escaped)

    def _text(self, source: XmlSource, element: Element, place: str) -> Iterator[Slot]:
        reader = Runs(element.name[: element.name.rfind(":") + 1], self.code, ' xml:space="preserve"')
        text = element.first(f"{reader.prefix}t")
        if text is None:
            pieces = list(reader.pieces(source, element))
            if not self.named.has("".join(piece.text for _, piece in pieces)):
                yield from reader.slot(pieces, element.inner, element.outer, place)
        elif not self.named.has(whole := unescaped(text.text())):
            before, after = source.raw[text.start : text.inner], source.raw[text.outer : text.end]
            yield from value_slots(
                element.inner, element.outer, whole, place, lambda text: before + escaped(text) + after
            )


def _computed_at_once(source: XmlSource) -> Iterator[Edit]:
    for element in source.elements(lambda root: (f"{root.name.removesuffix('workbook')}calcPr",)):
        if "fullCalcOnLoad" not in element.attributes:
            start = element.start + 1 + len(element.name)
            yield Edit(start, start, ' fullCalcOnLoad="1"')
