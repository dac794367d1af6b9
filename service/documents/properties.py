"""Java's properties (https://docs.oracle.com/en/java/javase/21/docs/api/java.base/java/util/Properties.html#load).

In UTF-8, or else in ISO-8859-1. A file in ASCII, which is both, gets escapes for all beyond it, one in ISO-8859-1 for
all beyond that. In a value with numbered placeholders two apostrophes are one, as in `java.text.MessageFormat`. A value
of several lines becomes one line.
"""

import functools
import re
from collections.abc import Callable, Iterator

from service.documents.document import Document, DocumentOptions, Slot, Spliced
from service.documents.encodings import decoded
from service.documents.errors import DocumentError
from service.documents.keyed_values import KeyedValues
from service.documents.lines import Lines
from service.documents.values import EscapeStyle, joined

_CONTINUED = r"\\(?:\r\n|[\r\n])[ \t\f]*+"
_SPACE = rf"(?:[ \t\f]|{_CONTINUED})*+"
_LINE = re.compile(
    rf"[ \t\f]*+(?:[#!][^\r\n]*+|(?P<key>(?:[^\\=: \t\f\r\n]++|{_CONTINUED}|\\(?:.|\Z))*+){_SPACE}[=:]?+{_SPACE}"
    r"(?P<value>(?:[^\\\r\n]++|\\(?:\r\n|.|\Z))*+))(?:\r\n|[\r\n]|\Z)",
    re.DOTALL,
)
_ESCAPE = re.compile(rf"{_CONTINUED}|\\(?:u([0-9A-Fa-f]{{4}})|(.)|\Z)", re.DOTALL)
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "f": "\f"}
_WRITTEN = {"\\": "\\\\", **{value: f"\\{name}" for name, value in _ESCAPED.items()}}
_SIGN = re.compile(r"\\([=:#!'\"])")
_MESSAGE = re.compile(r"\{\d")


def read(data: bytes, options: DocumentOptions) -> Document:
    first = "\x80" if data.isascii() else ""
    try:
        source, encode = decoded(data)
    except DocumentError:
        source, encode, first = data.decode("latin-1"), lambda text: text.encode("latin-1"), "\u0100"
    values = KeyedValues(options)
    slots = list(_slots(source, EscapeStyle(source, first=first), values))
    return Spliced(source, slots, encode, values.notes)


def _slots(source: str, style: EscapeStyle, values: KeyedValues) -> Iterator[Slot]:
    lines = Lines(source)
    signs = frozenset(_SIGN.findall(source))
    position = 0
    while position < len(source):
        line = _LINE.match(source, position)
        assert line is not None  # anything is a line
        if line["value"]:
            place = lines.place(line.start("value"))
            value = _unescaped(line["value"], place)
            is_message = _MESSAGE.search(value) is not None and "'" not in value.replace("''", "")
            value = value.replace("''", "'") if is_message else value
            write = functools.partial(_written, style, signs, is_message)
            key = (_unescaped(line["key"], place),)
            yield from values.slots(key, line.start("value"), line.end("value"), value, place, write)
        position = max(line.end(), position + 1)


def _unescaped(written: str, place: str) -> str:
    def unescape(match: re.Match[str]) -> str:
        if match[2] == "u":
            raise DocumentError(r"an escape \u has no four hexadecimal digits.", place)
        return chr(int(match[1], 16)) if match[1] else _ESCAPED.get(match[2] or "", match[2] or "")

    return joined(_ESCAPE.sub(unescape, written)) if "\\" in written else written


def _written(style: Callable[[str], str], signs: frozenset[str], is_message: bool, text: str) -> str:
    text = text.replace("'", "''") if is_message else text
    output = [_WRITTEN.get(each) or (f"\\{each}" if each in signs else style(each)) for each in text]
    if text.startswith(" "):
        output[0] = "\\ "
    return "".join(output)
