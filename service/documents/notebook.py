"""Jupyter notebooks, version 4 (https://nbformat.readthedocs.io): the Markdown of their cells.

All else stays byte for byte: code, raw cells, outputs, metadata, attachments, and how the JSON is laid out. The source
of a cell is one string or a list of lines, and comes back in the same form.
"""

import itertools
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from service.documents.document import MAX_TEXTS, NO_DOUBTS, Document, DocumentOptions, DocumentText, Doubt
from service.documents.encodings import decoded
from service.documents.errors import DocumentError
from service.documents.json_source import literal_of, loaded
from service.documents.markdown import Part, outline_of, part
from service.documents.markdown.anchors import dead_links, relinked
from service.documents.values import has_half

_GAP = re.compile(r"[ \t\n\r]*[,:]?[ \t\n\r]*")
_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_VERSION = 4
_MAX_CELLS = 50_000


class _Value(NamedTuple):
    """A value of JSON: its key if it is in an object, and its position."""

    key: str
    start: int
    end: int
    value: Any


@dataclass(frozen=True, slots=True)
class _Cell:
    """A cell of Markdown: the position of its source, which is written in `lines` if it is no string."""

    source: _Value
    lines: Sequence[_Value]
    markdown: Part


def read(data: bytes, _: DocumentOptions) -> Document:
    """Read a notebook."""
    source, encode = decoded(data)
    return _Notebook(source, list(_cells(source)), encode)


class _Notebook:
    language = ""

    def __init__(self, source: str, cells: Sequence[tuple[int, _Cell]], encode: Callable[[str], bytes]) -> None:
        self._source, self._encode = source, encode
        self._cells = [cell for _, cell in cells]
        self._literal = literal_of(source)
        self.texts: list[DocumentText] = []
        self.notes: list[str] = []
        for number, cell in cells:
            self.texts += (replace(each, place=f"cell {number}, {each.place}") for each in cell.markdown.document.texts)
            self.notes += (f"Cell {number}: {note}" for note in cell.markdown.document.notes)
            if len(self.texts) > MAX_TEXTS:
                raise DocumentError(f"it has more than {MAX_TEXTS} texts; split it.", self.texts[-1].place)
        self._outlines = [cell.markdown.outline for cell in self._cells]
        self.notes += dead_links(self._outlines, ["".join(cell.source.value) for cell in self._cells])

    def written(self, translations: Sequence[str], _: Mapping[int, Doubt] = NO_DOUBTS) -> bytes:
        if len(translations) != len(self.texts):
            raise ValueError(f"{len(translations)} translations for {len(self.texts)} texts")
        remaining = iter(translations)
        texts: list[str] = []
        for cell in self._cells:
            document = cell.markdown.document
            texts.append(document.written([*itertools.islice(remaining, len(document.texts))]).decode())
        output: list[str] = []
        done = 0
        for cell, text in zip(self._cells, relinked(self._outlines, texts, outline_of), strict=True):
            if text != "".join(cell.source.value):
                output += (self._source[done : cell.source.start], self._written(cell, text))
                done = cell.source.end
        return self._encode("".join((*output, self._source[done:])))

    def _written(self, cell: _Cell, text: str) -> str:
        if not cell.lines:
            return self._literal(text)
        first, *others = cell.lines
        before = self._source[cell.source.start : first.start]
        between = self._source[first.end : others[0].start] if others else f",{before[1:]}"
        after = self._source[cell.lines[-1].end : cell.source.end]
        return f"{before}{between.join(map(self._literal, _LINE.findall(text)))}{after}"


def _cells(source: str) -> Iterator[tuple[int, _Cell]]:
    """Yield the cells of Markdown with their numbers."""
    notebook = loaded(source)
    if not isinstance(notebook, dict) or not isinstance(notebook.get("cells"), list):
        problem = f"it is no notebook of version {_VERSION}; `jupyter nbconvert --to notebook` makes one."
        raise DocumentError(problem, "line 1")
    if len(notebook["cells"]) > _MAX_CELLS:
        raise DocumentError(f"it has more than {_MAX_CELLS} cells; split it.")
    root = _end_of_gap(source, 0)
    *_, cells = (each for each in _values(source, root) if each.key == "cells")  # the last one, as `json` reads it
    for number, cell in enumerate(_values(source, cells.start), start=1):
        if not isinstance(cell.value, dict) or cell.value.get("cell_type") != "markdown":
            continue
        for each in _values(source, cell.start):
            lines = each.value if isinstance(each.value, list) else [each.value]
            if each.key == "source" and all(isinstance(line, str) and not has_half(line) for line in lines):
                strings = list(_values(source, each.start)) if lines is each.value else []
                yield number, _Cell(each, strings, part("".join(lines)))


def _values(source: str, start: int) -> Iterator[_Value]:
    """Yield the values of an array or an object that starts here, of valid JSON."""
    decode = json.JSONDecoder(parse_int=str).raw_decode
    key = ""
    is_object, position = source[start] == "{", _end_of_gap(source, start + 1)
    while source[position] not in "]}":
        if is_object:
            key, position = decode(source, position)
            position = _end_of_gap(source, position)
        value, end = decode(source, position)
        yield _Value(key, position, end, value)
        position = _end_of_gap(source, end)


def _end_of_gap(source: str, position: int) -> int:
    match = _GAP.match(source, position)
    assert match is not None  # it matches anything
    return match.end()
