"""Apple's `.strings` files: `"key" = "value";`, in UTF-8 or in UTF-16 with a byte order mark."""

import functools
import re
from collections.abc import Callable, Iterator

from service.documents.document import Document, DocumentOptions, Slot, Spliced
from service.documents.encodings import decoded
from service.documents.errors import DocumentError
from service.documents.keyed_values import KeyedValues
from service.documents.lines import Lines
from service.documents.values import EscapeStyle, joined

_SPACE = re.compile(r"(?:\s++|//[^\r\n]*+|/\*(?:[^*]++|\*(?!/))*+\*/)*+")
_STRING = r'"(?:[^"\\]++|\\.)*+"'
_KEY = re.compile(rf"{_STRING}|[\w.$/:-]++", re.DOTALL | re.ASCII)
_VALUE = re.compile(_STRING, re.DOTALL)
_ESCAPE = re.compile(r"\\(?:[uU]([0-9A-Fa-f]{4})|([0-7]{3})|(.))", re.DOTALL)
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}
_WRITTEN = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": "\\r"}


def read(data: bytes, options: DocumentOptions) -> Document:
    source, encode = decoded(data)
    values = KeyedValues(options, "objc-format")
    slots = list(_slots(source, values))
    return Spliced(source, slots, encode, values.notes)


def _slots(source: str, values: KeyedValues) -> Iterator[Slot]:
    lines = Lines(source)
    write = functools.partial(_written, EscapeStyle(source, form="\\U%04x"))

    def after(position: int, sign: str) -> int:
        if not source.startswith(sign, position):
            raise DocumentError(f'expected {sign} here; an entry is "key" = "value";.', lines.place(position))
        return _space(source, position + len(sign))

    position = _space(source, 0)
    while position < len(source):
        key = _KEY.match(source, position)
        position = _space(source, key.end()) if key else position
        if key and source.startswith(";", position):  # the value is the key
            position = after(position, ";")
            continue
        position = after(position, "=")
        value = _VALUE.match(source, position)
        if value is None or key is None:
            raise DocumentError('expected a string here; an entry is "key" = "value";.', lines.place(position))
        text = _text(value[0][1:-1])
        path = (_text(key[0].strip('"')),)
        yield from values.slots(path, value.start(), value.end(), text, lines.place(position), write)
        position = after(_space(source, value.end()), ";")


def _space(source: str, position: int) -> int:
    """Return where the next sign is behind white space and comments."""
    found = _SPACE.match(source, position)
    assert found is not None  # it may be empty
    return found.end()


def _text(written: str) -> str:
    return joined(_ESCAPE.sub(_unescape, written))


def _unescape(match: re.Match[str]) -> str:
    if match[1] or match[2]:
        return chr(int(match[1], 16) if match[1] else int(match[2], 8))
    return _ESCAPED.get(match[3], match[3])


def _written(style: Callable[[str], str], text: str) -> str:
    return '"' + "".join(_WRITTEN.get(each) or style(each) for each in text) + '"'
