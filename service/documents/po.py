"""GNU gettext's PO files (https://www.gnu.org/software/gettext/manual/html_node/PO-Files.html).

Only `msgstr` changes: comments, flags, `msgctxt` and obsolete entries stay as they are. An entry that is fuzzy gets a
new translation and stays fuzzy: a person decides. Of an entry with plural forms the translations of `msgid` and
`msgid_plural` are its forms if the language has one or two; of three or more forms a translator knows only which
sentence to say for one and for many, so such entries are left as they are, and a note says so.
"""

import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from service.documents.document import Document, DocumentOptions, DocumentText, Slot, Spliced
from service.documents.encodings import decoded
from service.documents.errors import DocumentError
from service.documents.inline import InlineText, Kind, Piece

_KEYWORD = re.compile(r"(msgctxt|msgid_plural|msgid|msgstr)(?:\[(\d{1,2})\])?[ \t]*(?=\")")
_STRING = re.compile(r'"((?:[^"\\]|\\.)*)"')
_ESCAPE = re.compile(r"\\(?:([0-7]{1,3})|x([0-9A-Fa-f]{1,2})|(.))")
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}
_WRITTEN = str.maketrans({"\\": "\\\\", '"': '\\"', **{value: f"\\{name}" for name, value in _ESCAPED.items()}})
_NUMBERED = re.compile(r"%L?(?:\d{1,2}|n\b)")  # placeholders of qt-format and kde-format, which look like percentages


@dataclass(slots=True)
class _String:
    """A string: its position, quotes included, the number of its first line, and its value, by lines."""

    line: int
    start: int
    end: int
    values: list[str]

    @property
    def value(self) -> str:
        return "".join(self.values)


@dataclass(slots=True)
class _Entry:
    strings: dict[str, _String] = field(default_factory=dict)
    forms: list[_String] = field(default_factory=list)
    flags: set[str] = field(default_factory=set)


def read(data: bytes, options: DocumentOptions) -> Document:
    """Read a catalogue in UTF-8; untranslated and fuzzy entries are to be translated, or all with `has_all`.

    Raises:
        DocumentError: a line is no part of an entry, a string has no end, or the charset is not UTF-8.
    """
    source, encode = decoded(data)
    slots: list[Slot] = []
    num_left = 0
    for entry in _entries(source):
        if not entry.strings["msgid"].value:
            _check_charset(entry)
        elif options.has_all or "fuzzy" in entry.flags or not all(form.value for form in entry.forms):
            num_left += len(entry.forms) > 2
            slots += _slots(source, entry)
    notes = [f"{num_left} entries with more than two plural forms were left as they are."] if num_left else []
    return Spliced(source, slots, encode, notes)


def _check_charset(header: _Entry) -> None:
    found = re.search(r"charset=([\w.:-]+)", header.forms[0].value)
    if found and found[1].lower().replace("-", "") not in ("utf8", "charset", "ascii", "usascii"):
        line = header.forms[0].line
        raise DocumentError(f"its charset is {found[1]}; convert it with msgconv --to-code=UTF-8.", f"line {line}")


def _slots(source: str, entry: _Entry) -> Iterator[Slot]:
    texts = [entry.strings["msgid"].value]
    if "msgid_plural" in entry.strings:
        texts = [*texts[: len(entry.forms) - 1], entry.strings["msgid_plural"].value]
        if len(entry.forms) > 2:
            return
    is_numbered = bool({"qt-format", "kde-format", "qt-plural-format", "kde-kuit-format"} & entry.flags)
    for text, form in zip(texts, entry.forms, strict=True):
        inline = InlineText(_pieces(text, is_numbered=is_numbered))
        if inline.has_words:
            ending = "\r\n" if source.startswith("\r\n", form.end) else "\n"
            written = functools.partial(_written, inline, ending)
            told = DocumentText(inline.text, inline.mime_type, f"line {form.line}")
            yield Slot(form.start, form.end, told, written, is_target=True)


def _pieces(text: str, *, is_numbered: bool) -> Iterator[Piece]:
    done = 0
    for match in _NUMBERED.finditer(text) if is_numbered else ():
        yield Piece(Kind.TEXT, text=text[done : match.start()])
        yield Piece(Kind.KEPT, match[0], match[0])
        done = match.end()
    yield Piece(Kind.TEXT, text=text[done:])


def _written(inline: InlineText, ending: str, translation: str) -> str:
    text = "".join(piece.raw or piece.text for piece in inline.pieces(translation))
    lines = re.findall(r"[^\n]*\n|[^\n]+", text) if "\n" in text[:-1] else [text]
    strings = [f'"{line.translate(_WRITTEN)}"' for line in lines]
    return ending.join(['""', *strings] if len(strings) > 1 else strings)


def _entries(source: str) -> Iterator[_Entry]:
    """Yield the entries that are not obsolete."""
    entry = _Entry()
    last: _String | None = None
    position = 0
    number = 0
    for number, line in enumerate(source.split("\n"), start=1):
        start = position
        position += len(line) + 1
        content = line.strip()
        if not content or content.startswith("#"):
            if entry.strings:
                yield _checked(entry, number)
                entry = _Entry()
            last = None
            if content.startswith("#,"):
                entry.flags |= {flag.strip() for flag in content[2:].split(",")}
            continue
        start += len(line) - len(line.lstrip())
        keyword = _KEYWORD.match(content)
        string = _STRING.fullmatch(content, keyword.end() if keyword else 0)
        if string is None or (keyword is None and last is None):
            raise DocumentError(
                f"expected a comment, or msgid, msgstr and the like with a string in quotes, not {content[:40]!r}.",
                f"line {number}",
            )
        value = _value(string[1])
        if keyword is None:
            assert last is not None
            last.values.append(value)
            last.end = start + string.end()
            continue
        if keyword[1] in ("msgctxt", "msgid") and entry.forms:
            yield _checked(entry, number)
            entry = _Entry()
        last = _String(number, start + string.start(), start + string.end(), [value])
        if keyword[1] == "msgstr":
            if int(keyword[2] or 0) != len(entry.forms):
                raise DocumentError(f"expected msgstr[{len(entry.forms)}], not {keyword[0].strip()}.", f"line {number}")
            entry.forms.append(last)
        elif keyword[1] in entry.strings or entry.forms:
            raise DocumentError(f"the entry has a second {keyword[1]}, or one after msgstr.", f"line {number}")
        else:
            entry.strings[keyword[1]] = last
    if entry.strings:
        yield _checked(entry, number)


def _checked(entry: _Entry, number: int) -> _Entry:
    has_plural = "msgid_plural" in entry.strings
    if "msgid" not in entry.strings or not entry.forms or (len(entry.forms) > 1 and not has_plural):
        raise DocumentError("the entry before this line needs msgid and msgstr, one for each form.", f"line {number}")
    return entry


def _value(written: str) -> str:
    return _ESCAPE.sub(_unescaped, written) if "\\" in written else written


def _unescaped(match: re.Match[str]) -> str:
    if match[1] or match[2]:
        return chr(int(match[1], 8) if match[1] else int(match[2], 16))
    return _ESCAPED.get(match[3], match[3])
