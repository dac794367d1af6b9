"""Parsing of JSON, with errors in JSON's terms that quote no text but the wrong one."""

import codecs
import json
import re
from collections.abc import Iterator
from typing import Any

from service.domain.errors import InvalidRequest, Path, Public, Quoted, TooMany, quoted, shown

# More than any API's limits on its own lists allow: 1024 terms, of three fields each, take 7,200.
MAX_VALUES = 16_384
_QUOTE, _BACKSLASH = b'"', b"\\"
_ENCODE = "encode it as UTF-8"
_BEGIN = re.compile(rb"(?:\xef\xbb\xbf)?[ \t\r\n]*+[\[{]")
_HALF = re.compile(r"[\ud800-\udfff]")
_ESCAPED_HALF = re.compile(rb"\\u[dD][89a-fA-F]")
# RFC 4627 3: the first two characters of JSON are of ASCII, so zeros in its first four bytes tell UTF-16 and UTF-32.
_OTHER_ENCODINGS = (
    (re.compile(rb"\xff\xfe\0\0|\0\0\xfe\xff|\0\0\0|.\0\0\0", re.DOTALL), "UTF-32"),
    (re.compile(rb"\xff\xfe|\xfe\xff|\0|.\0", re.DOTALL), "UTF-16"),
)


def looks_like_json(body: bytes) -> bool:
    """Return whether a body begins as an object or a list does, whatever it is called."""
    return _BEGIN.match(body) is not None


def without_mark(body: bytes) -> bytes:
    """Return a body without the byte order mark that some clients begin with, which may be ignored (RFC 8259 8.1)."""
    return body.removeprefix(codecs.BOM_UTF8)


def check_encoding(body: bytes) -> None:
    """Raise `InvalidRequest` if a body is not UTF-8, as JSON between systems must be (RFC 8259 8.1)."""
    for beginning, name in _OTHER_ENCODINGS:
        if beginning.match(body):
            raise InvalidRequest("the body is {encoding}", encoding=Public(name), allowed="UTF-8", advice=_ENCODE)
    try:
        body.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InvalidRequest(
            "the body is not UTF-8: byte 0x{byte:02X} at {position}",
            byte=body[error.start],
            position=error.start,
            advice=_ENCODE,
        ) from None


def check_escapes(body: bytes) -> None:
    """Raise `InvalidRequest` if a string of a body has half of a surrogate pair, such as of a cut emoji."""
    if not _ESCAPED_HALF.search(body):
        return
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        return  # it is no JSON, whatever it has
    check_surrogates(document)


def check_surrogates(document: Any) -> None:
    """Raise `InvalidRequest` if a string of parsed JSON has half of a surrogate pair; the message names it."""
    for path, text in _strings(document):
        if half := _HALF.search(text):
            raise InvalidRequest(
                "{path} has half of a surrogate pair, {half}"
                if path
                else "a name has half of a surrogate pair, {half}",
                path,
                half=Public(f"\\u{ord(half[0]):04x}"),
                advice="send both halves of the character, or none",
            )


def _strings(document: Any) -> Iterator[tuple[Path, str]]:
    """Yield the strings of a document with their paths, in order; names of members have an empty one."""
    pending: list[tuple[Path, Any]] = [(Path(), document)]
    while pending:
        path, value = pending.pop()
        if isinstance(value, str):
            yield path, value
        elif isinstance(value, list):
            pending += [(Path(*path, index), each) for index, each in reversed(list(enumerate(value)))]
        elif isinstance(value, dict):
            yield from ((Path(), name) for name in value)
            pending += [(Path(*path, quoted(name)[1:-1]), each) for name, each in reversed(value.items())]


def shown_as_json(value: object) -> str:
    """Return a value as JSON for a message, without the contents of a list or an object."""
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list | tuple):
        return "a list"
    if value is None:
        return "null"
    return json.dumps(value) if isinstance(value, bool | float) else shown(value)


def wrong_value(path: Path | str, value: object, allowed: str, advice: str = "") -> InvalidRequest:
    return InvalidRequest("{path} is {value}", path, value=Quoted(shown_as_json(value)), allowed=allowed, advice=advice)


def check_json(body: bytes) -> None:
    """Raise `TooMany` if a body has more than `MAX_VALUES`: lists, objects, further elements and names in them.

    A parser makes an object of each value, and validation an error of each wrong one: 1 MiB of `[],[],...` took 0.2 s
    and 44 MiB to parse, of `0,0,...` in place of texts 1.3 s and 490 MiB to refuse. The bytes that separate values are
    counted in a millisecond, before anything is parsed.
    """
    if _count(body) <= MAX_VALUES:  # as most bodies; others may have commas in their texts
        return
    plain = body.replace(_BACKSLASH * 2, b"").replace(_BACKSLASH + _QUOTE, b"")
    num_strings = plain.count(_QUOTE) // 2  # each is an element, a name or the value of one
    number = num_strings if num_strings > MAX_VALUES else _count(b"".join(plain.split(_QUOTE)[::2]))
    if number > MAX_VALUES:
        raise TooMany(
            "the body has {number} values in its lists and objects",
            number=number,
            allowed=str(MAX_VALUES),
            advice="send several calls",
        )


def _count(text: bytes) -> int:
    return sum(map(text.count, (b"[", b"{", b":", b",")))
