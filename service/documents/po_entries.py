"""The syntax of GNU gettext's PO files: entries with their strings, by position.

As gettext reads them: white space and line ends don't matter, a value may be of several strings, and comments belong to
the entry after them.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from service.documents.errors import DocumentError

_TOKEN = re.compile(
    r"[ \t\r\n\f\v]++"
    r"|(?P<comment>#[^\n]*+)"
    r'|"(?P<string>(?:[^"\\\n]++|\\.)*+)"'
    r"|(?P<keyword>msgctxt|msgid_plural|msgid|msgstr|domain)(?:[ \t]*+\[[ \t]*+(?P<form>\d{1,2})[ \t]*+\])?(?!\w)"
)
_ESCAPE = re.compile(r"\\(?:([0-7]{1,3})|x([0-9A-Fa-f]{1,2})|(.))")
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v", '"': '"', "\\": "\\"}
_WRITTEN = str.maketrans({value: f"\\{name}" for name, value in _ESCAPED.items()})


@dataclass(slots=True)
class PoString:
    """A value: its position, quotes included, and the number of its first line."""

    line: int
    start: int
    end: int
    parts: list[str] = field(default_factory=list)

    @property
    def value(self) -> str:
        return "".join(self.parts)


@dataclass(slots=True)
class Entry:
    """An entry: its strings by their keywords, and the forms of its translation.

    `flags_end` is the position after the sign of its flags, -1 if it has none; `start` is where else they belong.
    """

    strings: dict[str, PoString] = field(default_factory=dict)
    forms: list[PoString] = field(default_factory=list)
    flags: set[str] = field(default_factory=set)
    flags_end: int = -1
    start: int = -1

    @property
    def text(self) -> str:
        """Return what is to be translated; empty for the header."""
        return self.strings["msgid"].value


def entries(source: str) -> Iterator[Entry]:
    """Yield the entries that are not obsolete."""
    entry = Entry()
    last: PoString | None = None
    position, line, counted = 0, 1, 0
    while position < len(source):
        token = _TOKEN.match(source, position)
        line += source.count("\n", counted, position)
        counted = position
        if token is None:
            raise DocumentError(
                "expected a comment, or msgid, msgstr and the like with a string in quotes, "
                f"not {source[position : position + 80].splitlines()[0][:40]!r}.",
                f"line {line}",
            )
        position = token.end()
        if token["comment"] is not None:
            if entry.forms:
                yield _checked(entry, line)
                entry, last = Entry(), None
            _read_comment(entry, token)
        elif token["string"] is not None:
            if last is None:
                raise DocumentError(f"expected msgid, msgstr and the like before {token[0][:40]!r}.", f"line {line}")
            if not last.parts:
                last.line, last.start = line, token.start()
            last.parts.append(_value(token["string"]))
            last.end = token.end()
        elif token["keyword"] is not None:
            if entry.forms and token["keyword"] in ("msgctxt", "msgid", "domain"):
                yield _checked(entry, line)
                entry = Entry()
            last = PoString(line, token.end(), token.end())
            if token["keyword"] != "domain":
                _add(entry, token, last, line)
    if entry.strings:
        yield _checked(entry, line)


def in_quotes(text: str, ending: str) -> str:
    """Return a value in quotes, each of its lines on one of its own; `ending` is that of the file's lines."""
    lines = re.findall(r"[^\n]*\n|[^\n]+", text) if "\n" in text[:-1] else [text]
    strings = [f'"{line.translate(_WRITTEN)}"' for line in lines]
    return ending.join(['""', *strings] if len(strings) > 1 else strings)


def _read_comment(entry: Entry, token: re.Match[str]) -> None:
    """Take flags into an entry. What is obsolete is no entry; flags before it are its own."""
    kind = token["comment"][1:2]
    if kind == "~" and not entry.strings:
        entry.flags, entry.flags_end, entry.start = set(), -1, -1
    elif kind == ",":
        entry.flags |= {flag.strip() for flag in token["comment"][2:].split(",")}
        entry.flags_end = token.start() + 2
    elif kind == "|" and entry.start < 0:
        entry.start = token.start()


def _add(entry: Entry, token: re.Match[str], string: PoString, line: int) -> None:
    keyword = token["keyword"]
    if entry.start < 0:
        entry.start = token.start()
    if keyword == "msgstr":
        if int(token["form"] or 0) != len(entry.forms):
            raise DocumentError(f"expected msgstr[{len(entry.forms)}], not {token[0]}.", f"line {line}")
        entry.forms.append(string)
    elif keyword in entry.strings or entry.forms:
        raise DocumentError(f"the entry has a second {keyword}, or one after msgstr.", f"line {line}")
    else:
        entry.strings[keyword] = string


def _checked(entry: Entry, line: int) -> Entry:
    has_plural = "msgid_plural" in entry.strings
    is_whole = all(string.parts for string in (*entry.strings.values(), *entry.forms))
    if not is_whole or "msgid" not in entry.strings or not entry.forms or (len(entry.forms) > 1 and not has_plural):
        raise DocumentError("the entry before this line needs msgid and msgstr, one for each form.", f"line {line}")
    return entry


def _value(written: str) -> str:
    return _ESCAPE.sub(_unescaped, written) if "\\" in written else written


def _unescaped(match: re.Match[str]) -> str:
    if match[1] or match[2]:
        return chr(int(match[1], 8) if match[1] else int(match[2], 16))
    return _ESCAPED.get(match[3], match[0])  # what is no escape stays as it is written
