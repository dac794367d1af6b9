"""JSON with the strings of a program (RFC 8259): the values that are strings, at any depth.

Of two equal keys both values are translated. Keys, numbers and white space stay; so do, by convention, values of keys
that begin with `@` (Flutter's ARB) or `$` (JSON Schema) and, if every value of the root is an entry of a known format,
all but its text: `description` and `placeholders` of Chrome's `messages.json`.
"""

import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, NamedTuple

from service.documents.document import (
    MAX_DEPTH,
    Document,
    DocumentOptions,
    Edit,
    Slot,
    Spliced,
    has_words,
    notes_on_left,
)
from service.documents.encodings import decoded
from service.documents.errors import DocumentError
from service.documents.keyed_values import KeyedValues
from service.documents.lines import Lines
from service.documents.values import EscapeStyle
from service.text.languages import canonical

_TOKEN = re.compile(r'"(?:[^"\\]++|\\.)*+"|[{}\[\],:]|[^\s"{}\[\],:]++')  # of what is JSON
_MAX_DIGITS = 100  # of a number
_LOCALE = "@@locale"
_PLURALS = ("zero", "one", "two", "few", "many", "other")
# Entries of known formats: by a key that each of them has, the keys of texts, and those that it may have beside them.
_SHAPES: Mapping[str, tuple[Collection[str], Collection[str]]] = MappingProxyType(
    {
        "message": (("message",), ("description", "placeholders", "hash")),  # Chrome
        "defaultMessage": (("defaultMessage",), ("id", "description", "file", "start", "end")),  # FormatJS
        "string": (("string",), ("context", "developer_comment", "character_limit", "key")),  # Transifex
        "other": (_PLURALS, ("id", "hash", "description", "leftDelim", "rightDelim")),  # go-i18n
    }
)


class String(NamedTuple):
    """A value: its position, with quotes, the keys that lead to it, how deep it is, and where its object starts."""

    start: int
    end: int
    value: str
    path: tuple[str, ...]
    depth: int
    is_left: bool
    owner: int


@dataclass(slots=True)
class _Open:
    """An object or array being read; the keys in `path` lead to it, those in `names` to its current member."""

    is_object: bool
    path: tuple[str, ...]
    names: tuple[str, ...]
    is_left: bool
    start: int  # of the object, or of the one that the array is in
    has_key_next: bool


def loaded(source: str) -> Any:
    try:
        return json.loads(source, parse_int=lambda digits: int(digits[:_MAX_DIGITS]))
    except json.JSONDecodeError as error:
        raise DocumentError(f"it is not JSON: {error.msg}.", f"line {error.lineno}") from None
    except RecursionError:
        raise DocumentError(f"it is nested more than {MAX_DEPTH} deep.", "line 1") from None


@dataclass(slots=True)
class Reader:
    """A JSON document; `entries` are the keys of each object in the root, else `None`, `spans` its objects by keys."""

    source: str
    lines: Lines
    entries: dict[str, set[str] | None] = field(default_factory=dict)
    spans: dict[tuple[str, ...], tuple[int, int]] = field(default_factory=dict)

    def strings(self) -> Iterator[String]:
        path: list[_Open] = []
        for match in _TOKEN.finditer(self.source):
            sign, (start, end) = match[0], match.span()
            inner = path[-1] if path else _Open(False, (), (), False, 0, False)
            if sign in "}]":
                path.pop()
                if inner.is_object:
                    self.spans[inner.path] = inner.start, end
            elif sign in ",:":
                inner.has_key_next = sign == "," and inner.is_object
            elif inner.has_key_next:
                self._name(path, json.loads(sign))
            else:
                if len(path) == 1 and sign[0] != '"':
                    self.entries["".join(inner.names)] = set() if sign == "{" else None
                if sign[0] == '"':
                    yield String(start, end, json.loads(sign), inner.names, len(path), inner.is_left, inner.start)
                elif sign in "{[":
                    if len(path) == MAX_DEPTH:
                        raise DocumentError(f"it is nested more than {MAX_DEPTH} deep.", self.lines.place(start))
                    owner = start if sign == "{" else inner.start
                    path.append(_Open(sign == "{", inner.names, inner.names, inner.is_left, owner, sign == "{"))

    def _name(self, path: list[_Open], key: str) -> None:
        inner = path[-1]
        inner.names = (*inner.path, key)
        inner.is_left = key.startswith(("@", "$")) or (len(path) > 1 and path[-2].is_left)
        if len(path) == 2 and (keys := self.entries["".join(inner.path)]) is not None:
            keys.add(key)


def read(data: bytes, options: DocumentOptions) -> Document:
    """Read JSON in UTF-8, or in UTF-16 with a byte order mark; ARB's `@@locale` becomes `options.target`."""
    source, encode = decoded(data)
    loaded(source)
    lines = Lines(source)
    reader = Reader(source, lines)
    strings = list(reader.strings())
    texts = _texts_of_entries(reader.entries)
    write = literal_of(source)
    values = KeyedValues(options)
    slots: list[Slot] = []
    edits: list[Edit] = []
    num_left = 0
    for each in strings:
        if each.path == (_LOCALE,) and each.depth == 1 and options.target:
            locale = canonical(options.target).replace("-", "_")
            edits.append(Edit(each.start, each.end, write(locale)))
        if each.is_left:
            continue
        if texts is not None and each.depth != 1 and (each.depth != 2 or "".join(each.path[-1:]) not in texts):
            num_left += has_words(each.value)
        else:
            slots += values.slots(each.path, each.start, each.end, each.value, lines.place(each.start), write)
    notes = notes_on_left(num_left, "description for translators", "descriptions for translators")
    return Spliced(source, slots, encode, [*notes, *values.notes], edits)


def _texts_of_entries(entries: Mapping[str, set[str] | None]) -> Collection[str] | None:
    """Return the keys of texts, if all values of the root but strings are entries of one known format."""
    found = [keys for key, keys in entries.items() if not key.startswith(("@", "$"))]
    for key, (texts, others) in _SHAPES.items():
        if found and all(keys is not None and key in keys and keys <= {*texts, *others} for keys in found):
            return texts
    return None


def literal_of(source: str, indent: str | None = None, colon: str = ": ") -> Callable[[Any], str]:
    style, escapes_slashes = EscapeStyle(source, "<>&'="), "\\/" in source

    def literal(value: Any) -> str:
        written = style(json.dumps(value, ensure_ascii=False, indent=indent, separators=(",", colon)))
        return written.replace("/", "\\/") if escapes_slashes else written

    return literal
