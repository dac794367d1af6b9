"""Jupyter notebooks, version 4 (https://nbformat.readthedocs.io): the Markdown of their cells.

Everything else stays byte for byte, including the layout of the JSON, and whether a source is a string or a list of
lines.
"""

import itertools
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from service.documents.archive import Part, joined
from service.documents.document import Document, DocumentOptions, changed
from service.documents.encodings import decoded
from service.documents.errors import DocumentError
from service.documents.json_source import Reader, String, literal_of, loaded
from service.documents.lines import Lines
from service.documents.markdown import outline_of
from service.documents.markdown.anchors import dead_links, relinked
from service.documents.markdown.reading import Reader as MarkdownReader
from service.documents.values import has_half

_COMMA = re.compile(r"[ \t\n\r]*,[ \t\n\r]*")
_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_VERSION = 4
_CELL_DEPTH = 3  # of the values of a cell, which is in an array of the root
_MAX_CELLS = 50_000


@dataclass(frozen=True, slots=True)
class _Cell:
    """A cell of Markdown: its source, which is a list of lines if it `is_list`, else one string."""

    name: str
    lines: Sequence[String]
    is_list: bool

    @property
    def text(self) -> str:
        return "".join(line.value for line in self.lines)


def read(data: bytes, _: DocumentOptions) -> Document:
    source, encode = decoded(data)
    cells = list(_cells(source))
    parts: list[Part] = []
    notes: list[str] = []
    readers = [MarkdownReader(cell.text, part=cell.name) for cell in cells]
    for cell, reader in zip(cells, readers, strict=True):
        parts.append(Part(cell.name, cell.text, slots=reader.slots()))
        notes += (f"{cell.name.capitalize()}: {note}" for note in reader.notes)
    outlines = [reader.outline for reader in readers]
    notes += dead_links(outlines, [part.source for part in parts])
    literal = literal_of(source)

    def write(contents: Iterable[tuple[Part, str]]) -> bytes:
        changes: list[tuple[int, int, str]] = []
        texts = relinked(outlines, [text for _, text in contents], outline_of)
        for cell, part, text in zip(cells, parts, texts, strict=True):
            if text != part.source:
                lines = map(literal, _LINE.findall(text) if cell.is_list else [text])
                changes.append((cell.lines[0].start, cell.lines[-1].end, _between(source, cell.lines).join(lines)))
        return encode(changed(source, changes))

    return joined(parts, write, notes)


def _cells(source: str) -> Iterator[_Cell]:
    loaded(source)
    reader = Reader(source, Lines(source))
    kinds: dict[int, str] = {}  # of all cells, by where they start
    sources: defaultdict[int, list[String]] = defaultdict(list)
    for each in reader.strings():
        if each.path == ("cells", "cell_type") and each.depth == _CELL_DEPTH:
            kinds[each.owner] = each.value
        elif each.path == ("cells", "source"):
            sources[each.owner].append(each)
    if reader.entries.get("cells", ()) is not None:
        problem = f"it is not a notebook of version {_VERSION}; `jupyter nbconvert --to notebook` makes one."
        raise DocumentError(problem, "line 1")
    if len(kinds) > _MAX_CELLS:
        raise DocumentError(f"it has more than {_MAX_CELLS} cells; split it.")
    for number, (owner, kind) in enumerate(sorted(kinds.items()), start=1):
        lines = sources[owner]
        pairs = itertools.pairwise(lines)
        is_whole = all(_COMMA.fullmatch(source, first.end, second.start) for first, second in pairs)
        if kind == "markdown" and lines and is_whole and not any(has_half(line.value) for line in lines):
            yield _Cell(f"cell {number}", lines, lines[0].depth > _CELL_DEPTH)


def _between(source: str, lines: Sequence[String]) -> str:
    """Return the text between two lines of a source: of a single line, a comma and what precedes it."""
    if len(lines) > 1:
        return source[lines[0].end : lines[1].start]
    start = lines[0].start
    return f",{source[source.rindex('[', 0, start) + 1 : start]}"
