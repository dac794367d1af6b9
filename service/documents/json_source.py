"""JSON with the strings of a program (RFC 8259): the values that are strings, at any depth.

Keys, numbers and white space stay; of two equal keys both values are translated. By convention these stay, too, with
all that is in them: values of keys that begin with `@` (Flutter's ARB) or `$` (JSON Schema); and where every value of
the root has the shape of an entry of a known format, all of it but its text: of Chrome's `messages.json` the
`description` and the `placeholders`. Placeholders in texts, such as i18next's `{{name}}`, are the translator's.
"""

import enum
import functools
import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple

from service.documents.document import MAX_DEPTH, Document, DocumentOptions, Edit, Slot, Spliced, has_words
from service.documents.encodings import decoded
from service.documents.errors import DocumentError
from service.documents.keyed_values import KeyedValues
from service.documents.lines import Lines
from service.documents.values import EscapeStyle
from service.text.languages import canonical

_TOKEN = re.compile(
    r'[ \t\n\r]*+(?:(?P<string>"(?:[^"\\\x00-\x1f]++|\\(?:["\\/bfnrt]|u[0-9A-Fa-f]{4}))*+")'
    r"|(?P<open>[{\[])|(?P<close>[}\]])|(?P<comma>,)|(?P<colon>:)"
    r"|(?P<other>(?:-?(?:0|[1-9]\d*+)(?:\.\d++)?(?:[eE][-+]?\d++)?|true|false|null)(?![\w.+-])))",
    re.ASCII,
)
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


class _Expected(enum.Enum):
    VALUE = "a value"
    VALUE_OR_END = "a value or ]"
    KEY = "a key"
    KEY_OR_END = "a key or }"
    COLON = "a colon"
    COMMA_OR_END = "a comma or the end"
    END = "the end of the file"


_BEFORE_END = (_Expected.COMMA_OR_END, _Expected.KEY_OR_END, _Expected.VALUE_OR_END)


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
    """An object or array that is being read; the keys in `path` lead to it, those in `names` to what is read of it."""

    is_object: bool
    path: tuple[str, ...]
    names: tuple[str, ...]
    is_left: bool
    start: int = 0  # of the object, or of the one that the array is in


@dataclass(slots=True)
class Reader:
    """One document; `entries` are the keys of each value of the root that is an object, `None` for another value.

    `spans`, if given, takes where each object is, by the keys that lead to it.
    """

    source: str
    lines: Lines
    entries: dict[str, set[str] | None] = field(default_factory=dict)
    spans: dict[tuple[str, ...], tuple[int, int]] | None = None

    def strings(self) -> Iterator[String]:
        position, expected = 0, _Expected.VALUE
        path: list[_Open] = []
        while match := _TOKEN.match(self.source, position):
            position = match.end()
            kind = match.lastgroup or ""
            start = match.start(kind)
            inner = path[-1] if path else _Open(is_object=False, path=(), names=(), is_left=False)
            if kind == "string" and expected in (_Expected.KEY, _Expected.KEY_OR_END):
                self._name(path, json.loads(match["string"]))
                expected = _Expected.COLON
            elif kind == "colon" and expected is _Expected.COLON:
                expected = _Expected.VALUE
            elif kind == "comma" and expected is _Expected.COMMA_OR_END:
                expected = _Expected.KEY if inner.is_object else _Expected.VALUE
            elif kind == "close" and inner.is_object is (match["close"] == "}") and path and expected in _BEFORE_END:
                path.pop()
                if self.spans is not None and inner.is_object:
                    self.spans[inner.path] = inner.start, position
                expected = _Expected.COMMA_OR_END if path else _Expected.END
            elif kind in ("string", "open", "other") and expected in (_Expected.VALUE, _Expected.VALUE_OR_END):
                if len(path) == 1:
                    self.entries["".join(inner.names)] = set() if match["open"] == "{" else None
                expected = _Expected.COMMA_OR_END if path else _Expected.END
                if kind == "string":
                    value = json.loads(match["string"])
                    yield String(start, position, value, inner.names, len(path), inner.is_left, inner.start)
                elif kind == "open":
                    if len(path) == MAX_DEPTH:
                        raise DocumentError(f"it is nested more than {MAX_DEPTH} deep.", self.lines.place(start))
                    is_object = match["open"] == "{"
                    owner = start if is_object else inner.start
                    path.append(_Open(is_object, inner.names, inner.names, inner.is_left, owner))
                    expected = _Expected.KEY_OR_END if is_object else _Expected.VALUE_OR_END
            else:
                raise self._error(start, expected)
        if expected is not _Expected.END or self.source[position:].strip(" \t\n\r"):
            raise self._error(position, expected)

    def _name(self, path: list[_Open], key: str) -> None:
        inner = path[-1]
        inner.names = (*inner.path, key)
        inner.is_left = key.startswith(("@", "$")) or (len(path) > 1 and path[-2].is_left)
        if len(path) == 2 and (keys := self.entries["".join(inner.path)]) is not None:
            keys.add(key)

    def _error(self, position: int, expected: _Expected) -> DocumentError:
        return DocumentError(f"it is not JSON: {expected.value} is expected.", self.lines.place(position))


def read(data: bytes, options: DocumentOptions) -> Document:
    """Read JSON in UTF-8, or in UTF-16 with a byte order mark; ARB's `@@locale` becomes `options.target`."""
    source, encode = decoded(data)
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
        if texts is not None and (each.depth != 2 or "".join(each.path[-1:]) not in texts):
            num_left += has_words(each.value)
        else:
            slots += values.slots(each.path, each.start, each.end, each.value, lines.place(each.start), write)
    notes = [f"{num_left} descriptions of texts for translators were left as they are."] if num_left else []
    return Spliced(source, slots, encode, [*notes, *values.notes], edits)


def _texts_of_entries(entries: Mapping[str, set[str] | None]) -> Collection[str] | None:
    """Return the keys of texts, if all values of the root are entries of one known format."""
    found = [keys for key, keys in entries.items() if not key.startswith(("@", "$"))]
    for key, (texts, others) in _SHAPES.items():
        if found and all(keys is not None and key in keys and keys <= {*texts, *others} for keys in found):
            return texts
    return None


def literal_of(source: str) -> Callable[[str], str]:
    """Return what writes a string as a source does."""
    return functools.partial(_literal, EscapeStyle(source, "<>&'="), "\\/" in source)


def _literal(style: Callable[[str], str], escapes_slashes: bool, text: str) -> str:
    literal = style(json.dumps(text, ensure_ascii=False))
    return literal.replace("/", "\\/") if escapes_slashes else literal
