"""Xcode's string catalogues, `.xcstrings`: JSON in which each key has its texts in every language.

The localization of the source language, or the key if there is none, is copied beside it and translated, with its
variations by number and device: https://developer.apple.com/documentation/xcode/localizing-and-varying-text-with-a-
string-catalog. A text's state is `translated`, or `needs_review` if the call that translated it says so, or it was so
before. What is translated stays, as do `stale` strings, which the code has no more.
"""

import copy
import re
from collections.abc import Iterator, Sequence
from typing import Any

from service.documents.document import Document, DocumentOptions, Doubt, Spliced, Unit, notes_on_left
from service.documents.encodings import decoded
from service.documents.errors import DocumentError
from service.documents.json_source import Reader, literal_of, loaded
from service.documents.keyed_values import KeyedValues
from service.documents.lines import Lines
from service.documents.plural_categories import notes_of_missing
from service.text.languages import canonical

_NAMES = {"zh": "zh-Hans"}  # how Apple names languages, where that differs
_STEP = re.compile(r"\{(\r?\n)([ \t]{0,8})")
_COLON = re.compile(r'"(?:[^"\\]++|\\.)*+"(\s*+:\s*+)')


def read(data: bytes, options: DocumentOptions) -> Document:
    """Read a catalogue in UTF-8, or in UTF-16 with a byte order mark."""
    source, encode = decoded(data)
    reader = _Reader(source, options)
    units = list(reader.units())
    return Spliced(source, units, encode, reader.notes, language=reader.language)


class _Reader:
    def __init__(self, source: str, options: DocumentOptions) -> None:
        self._source, self._options, self._lines = source, options, Lines(source)
        catalog, reader = loaded(source), Reader(source, self._lines)
        for _ in reader.strings():
            pass  # it is not too deep
        self._spans = reader.spans
        self._catalog: dict[str, Any] = catalog if isinstance(catalog, dict) else {}
        self.language = str(self._catalog.get("sourceLanguage", ""))
        self._target = canonical(options.target)
        self._values = KeyedValues(options, "objc-format", signs="")
        step, colon = _STEP.match(source), _COLON.search(source)
        self._line_end, self._step = step.groups() if step else ("", "")
        self._json = literal_of(source, self._step if step else None, colon[1] if colon else ":")
        self._plurals: list[set[str]] = []
        self._num_left = 0

    @property
    def notes(self) -> list[str]:
        names = "string that is stale or has no text", "strings that are stale or have no text"
        left = notes_on_left(self._num_left, *names)
        return [*left, *self._values.notes, *notes_of_missing(self._plurals, self._target)]

    def units(self) -> Iterator[Unit]:
        if self._target and canonical(self.language) == self._target:
            line = self._lines.place(max(self._source.find('"sourceLanguage"'), 0))
            raise DocumentError(f"its sourceLanguage is {self.language[:40]!r}, the same as the target.", line)
        strings = ((("strings", key), entry) for key, entry in _objects(self._catalog.get("strings")))
        for path, entry in sorted(strings, key=lambda each: self._spans[each[0]]):
            localizations = entry.get("localizations", {})
            if entry.get("shouldTranslate") is False or not isinstance(localizations, dict):
                continue
            name = next((name for name, _ in _objects(localizations) if canonical(name) == self._target), None)
            states = {} if name is None else {unit.get("state") for _, unit in _string_units(localizations[name])}
            if states == {"translated"} and not self._options.has_all:
                continue
            if entry.get("extractionState") == "stale":
                self._num_left += 1
            else:
                yield from self._of_entry(path, entry, name, is_checked="needs_review" in states)

    def _of_entry(
        self, path: tuple[str, ...], entry: dict[str, Any], name: str | None, *, is_checked: bool
    ) -> Iterator[Unit]:
        """Yield what becomes the localization of a name, or a new one, if that of the source has texts."""
        localization, keys = dict(_objects(entry.get("localizations"))).get(self.language), path[-1:]
        if localization is None:  # that a text is its key tells nothing of it
            localization, keys = {"stringUnit": {"state": "new", "value": path[-1]}}, (path[-1], "")
        start, end, before, after = self._place(path, entry, name)
        place, units = self._lines.place(start), list(_string_units(localization))
        self._num_left += not units
        found = [
            (number, slot)
            for number, (_, unit) in enumerate(units)
            for slot in self._values.slots(keys, start, end, unit["value"], place, str)
        ]
        categories = {units[number][0][-1] for number, _ in found if units[number][0][-2:-1] == ("plural",)}
        self._plurals += [categories] * bool(categories)

        def write(translations: Sequence[str], doubts: Sequence[Doubt | None]) -> str:
            translated = copy.deepcopy(localization)
            every = list(_string_units(translated))
            for (number, slot), translation, doubt in zip(found, translations, doubts, strict=True):
                state = "needs_review" if is_checked or doubt else "translated"
                every[number][1].update(state=state, value=slot.write(translation))
            return before + self._json(translated).replace("\n", self._line(4)) + after

        if found:
            yield Unit(start, end, [slot.text for _, slot in found], write)

    def _place(self, path: tuple[str, ...], entry: dict[str, Any], name: str | None) -> tuple[int, int, str, str]:
        """Return where a localization is or belongs, and what is to be before and after it."""
        if name is not None:
            return *self._spans[*path, "localizations", name], "", ""
        before, after, depth = self._named(_NAMES.get(self._target, self._target)), "", 3
        if "localizations" in entry:
            entry, path = entry["localizations"], (*path, "localizations")
        else:
            before, after = f"{self._named('localizations')}{{{self._line(4)}{before}", f"{self._line(3)}}}"
            depth = 2
        start, end = self._spans[path]
        if not entry:
            return start + 1, end - 1, self._line(depth + 1) + before, after + self._line(depth)
        end = len(self._source[start : end - 1].rstrip()) + start
        return end, end, f",{self._line(depth + 1)}{before}", after

    def _line(self, depth: int) -> str:
        return self._line_end + self._step * depth

    def _named(self, name: str) -> str:
        return self._json({name: None}).strip("{}\r\n\t ").removesuffix("null")


def _objects(value: object) -> Iterator[tuple[str, dict[str, Any]]]:
    if isinstance(value, dict):
        yield from ((name, each) for name, each in value.items() if isinstance(each, dict))


def _string_units(value: object, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], dict[str, Any]]]:
    """Yield the units with a text below an object, and the keys that lead to them."""
    for name, each in _objects(value):
        if name == "stringUnit" and isinstance(each.get("value"), str):
            yield path, each
        else:
            yield from _string_units(each, (*path, name))
