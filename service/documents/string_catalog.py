"""Xcode's string catalogues, `.xcstrings`: JSON in which each key has its texts in every language.

The localization of the source language, or the key if there is none, is copied beside it and translated, with its
variations by number and device: https://developer.apple.com/documentation/xcode/localizing-and-varying-text-with-a-
string-catalog. A text's state is `translated`, or `needs_review` if the call that translated it says so, or it was so
before. What is translated stays, as do `stale` strings, which the code has no more.
"""

import functools
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

from service.documents.document import Document, DocumentOptions, Doubt, Slot, Spliced
from service.documents.encodings import decoded
from service.documents.errors import DocumentError
from service.documents.json_source import Reader, literal_of
from service.documents.keyed_values import KeyedValues
from service.documents.lines import Lines
from service.documents.plural_categories import notes_of_missing
from service.text.languages import canonical

_NAMES = {"zh": "zh-Hans"}  # how Apple names languages, where that differs
_STEP = re.compile(r"\{(\r?\n)([ \t]{0,8})")
_Place = tuple[int, int, str, str]  # where a localization belongs, and what is to be before and after it
_COLON = re.compile(r'"(?:[^"\\]++|\\.)*+"(\s*+:\s*+)')


class _Unit(NamedTuple):
    """A text of a localization: the object that has it, the keys that lead to this, and its state."""

    start: int
    end: int
    path: tuple[str, ...]
    text: str
    state: str


def read(data: bytes, options: DocumentOptions) -> Document:
    """Read a catalogue in UTF-8, or in UTF-16 with a byte order mark."""
    source, encode = decoded(data)
    reader = _Reader(source, options)
    slots = list(reader.slots())
    return Spliced(source, slots, encode, reader.notes, language=reader.language)


class _Reader:
    """The texts of one catalogue."""

    def __init__(self, source: str, options: DocumentOptions) -> None:
        self._source, self._options, self._lines = source, options, Lines(source)
        self._spans: dict[tuple[str, ...], tuple[int, int]] = {}
        for _ in Reader(source, self._lines, spans=self._spans).strings():
            pass  # it is JSON, and not too deep
        catalog = json.loads(source, parse_int=str)
        self._catalog: dict[str, Any] = catalog if isinstance(catalog, dict) else {}
        self.language = str(self._catalog.get("sourceLanguage", ""))
        self._target = canonical(options.target)
        self._values = KeyedValues(options, "objc-format", signs="")
        self._literal = literal_of(source)
        step, colon = _STEP.match(source), _COLON.search(source)
        self._line_end, self._step = step.groups() if step else ("", "")
        self._colon = colon[1] if colon else ":"
        self._plurals: list[set[str]] = []
        self._num_left = 0

    @property
    def notes(self) -> list[str]:
        number = self._num_left
        left = [f"strings that are stale, or have no text, were left as they are: {number}."] * bool(number)
        return [*left, *self._values.notes, *notes_of_missing(self._plurals, self._target)]

    def slots(self) -> Iterator[Slot]:
        if self._target and canonical(self.language) == self._target:
            line = self._lines.place(max(self._source.find('"sourceLanguage"'), 0))
            raise DocumentError(f"its sourceLanguage is {self.language[:40]!r}, and so are the translations.", line)
        strings = ((("strings", key), entry) for key, entry in _objects(self._catalog.get("strings")))
        for path, entry in sorted(strings, key=lambda each: self._spans[each[0]]):
            if entry.get("shouldTranslate") is False or not isinstance(entry.get("localizations", {}), dict):
                continue
            names = [name for name, _ in _objects(entry.get("localizations"))]
            spans = {name: self._spans[(*path, "localizations", name)] for name in names}
            span = next((spans[name] for name in names if canonical(name) == self._target), None)
            states = {unit.state for unit in _units(self._source[slice(*span)])} if span else set()
            if states == {"translated"} and not self._options.has_all:
                continue
            if entry.get("extractionState") == "stale":
                self._num_left += 1
                continue
            place = (*span, "", "") if span else self._place(path, entry)
            has_source = self.language in spans
            localization = self._source[slice(*spans[self.language])] if has_source else self._of_key(path[-1])
            key = (path[-1],) if has_source else (path[-1], "")  # that a text is its key tells nothing of it
            yield from self._of_entry(key, localization, place, is_checked="needs_review" in states)

    def _of_entry(self, key: tuple[str, ...], localization: str, place: _Place, *, is_checked: bool) -> Iterator[Slot]:
        """Yield the slots of a localization's texts: each also writes what is before it, the last what is after."""
        units = _units(localization)
        self._num_left += not units
        start, end, before, after_all = place
        where, done = self._lines.place(start), 0
        slots: list[tuple[_Unit, Slot]] = []
        for unit in units:
            found = self._values.slots(key, start, end, unit.text, where, self._literal)
            slots += ((unit, slot) for slot in found)
        categories = {unit.path[-2] for unit, _ in slots if unit.path[-3:-2] == ("plural",)}
        self._plurals += [categories] * bool(categories)
        for unit, slot in slots:
            after = localization[unit.end :] + after_all if unit is slots[-1][0] else ""
            before += localization[done : unit.start]
            write = functools.partial(self._written, before, unit, slot.write, after, is_checked)
            yield replace(slot, write=write, is_target=True, takes_doubt=True)
            before, done = "", unit.end

    def _of_key(self, key: str) -> str:
        """Return a localization whose text is a key."""
        unit = self._unit(5, "new", self._literal(key))
        return f"{{{self._line(5)}{self._named('stringUnit')}{unit}{self._line(4)}}}"

    def _place(self, path: tuple[str, ...], entry: dict[str, Any]) -> _Place:
        """Return where a new localization belongs."""
        before, after = self._named(_NAMES.get(self._target, self._target)), ""
        if "localizations" in entry:
            members, depth, path = entry["localizations"], 3, (*path, "localizations")
        else:
            members, depth = entry, 2
            before, after = f"{self._named('localizations')}{{{self._line(4)}{before}", f"{self._line(3)}}}"
        start, end = self._spans[path]
        start, end, line = start + 1, end - 1, self._line(depth + 1)
        if not members:
            return start, end, line + before, after + self._line(depth)
        while self._source[end - 1].isspace():
            end -= 1
        return end, end, f",{line}{before}", after

    def _written(
        self,
        before: str,
        unit: _Unit,
        write: Callable[[str], str],
        after: str,
        is_checked: bool,
        translation: str,
        doubt: Doubt | None,
    ) -> str:
        state = "needs_review" if is_checked or doubt else "translated"
        return f"{before}{self._unit(len(unit.path) + 4, state, write(translation))}{after}"

    def _unit(self, depth: int, state: str, literal: str) -> str:
        line = self._line(depth + 1)
        return f'{{{line}{self._named("state")}"{state}",{line}{self._named("value")}{literal}{self._line(depth)}}}'

    def _line(self, depth: int) -> str:
        return self._line_end + self._step * depth

    def _named(self, name: str) -> str:
        return self._literal(name) + self._colon


def _objects(value: object) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the members of an object that are objects."""
    if isinstance(value, dict):
        yield from ((name, each) for name, each in value.items() if isinstance(each, dict))


def _units(localization: str) -> list[_Unit]:
    spans: dict[tuple[str, ...], tuple[int, int]] = {}
    values = {each.path: each.value for each in Reader(localization, Lines(localization), spans=spans).strings()}
    return [
        _Unit(*spans[path[:-1]], path[:-1], text, values.get((*path[:-1], "state"), ""))
        for path, text in values.items()
        if path[-2:] == ("stringUnit", "value")
    ]
