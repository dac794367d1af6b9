"""YAML with the strings of a program, such as Rails' locales: the values that are strings.

This reads block mappings and sequences, flow collections and all kinds of scalars, where they are; what else there is
in YAML (keys of several lines or with `?`, text behind `---`) is refused. Keys, comments, anchors, aliases, numbers,
truth values and symbols stay, and so do the values of other tags than `!!str`. By Rails' conventions all below
`formats`, and `format` below `number`, stays; a value whose key ends in `_html` is HTML; and if the one key of the root
is a language code, as in `config/locales/en.yml`, it becomes that of the target.
"""

import functools
import re
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass

from service.documents import yaml_scalars
from service.documents.document import Document, DocumentOptions, Edit, MimeType, Slot, Spliced
from service.documents.encodings import decoded
from service.documents.errors import DocumentError
from service.documents.escapes import EscapeStyle
from service.documents.places import Lines
from service.documents.values import value_slot
from service.text.languages import canonical

MAX_DEPTH = 100
_START = r"[^\s\-?:,\[\]{}#&*!|>'\"%@`]"
_PLAIN = re.compile(rf"(?:{_START}|[-?:](?=\S))(?:[^:#\n\r]++|:(?=\S)|(?<=\S)#)*+")
_MORE = re.compile(r"(?:[^:#\n\r]++|:(?=\S)|(?<=\S)#)++")
_FLOW_PLAIN = re.compile(
    rf"(?:{_START}|[-?:](?=[^\s,\[\]{{}}]))(?:[^:#\n\r,\[\]{{}}]++|:(?=[^\s,\[\]{{}}])|(?<=\S)#)*+"
)
_KEY = re.compile(
    rf""" (?:"(?:[^"\\\n]++|\\.)*+"|'(?:[^'\n]++|'')*+'|{_PLAIN.pattern})[ \t]*+:(?=[ \t\r\n]|\Z)""".strip()
)
_STRING = re.compile(r""" "(?:[^"\\]++|\\.)*+"|'(?:[^']++|'')*+'""".strip(), re.DOTALL)
_BLANK = re.compile(r"[ \t]*+\r?(?=\n)")
_PROPERTY = re.compile(r"([&!][^\s,\[\]{}]*+)(?:[ \t]++|(?=[\r\n]|\Z))")
_HEADER = re.compile(r"[|>](?:[+-]?([1-9])?|[1-9]?[+-])[+-]?(?=[ \t\r\n]|\Z)")
_REST = re.compile(r"(?:[ \t]++#[^\n]*|[ \t]*+)\r?(?=\n|\Z)")
_FLOW_SPACE = re.compile(r"(?:[ \t\r\n]++|(?<=[ \t\n])#[^\n]*)*+")
_ALIAS = re.compile(r"\*[^\s,\[\]{}]++")
_MARKER = re.compile(r"(?:---|\.\.\.)(?=[ \t\r\n]|\Z)")
_STRING_TAGS = ("!", "!!str")
_LANGUAGE = re.compile(r"[a-z]{2}(?:[-_][A-Z][a-z]{3})?(?:[-_][A-Z]{2})?")


@dataclass(slots=True)
class _Level:
    """A key, or the dash of an entry, at a column; its children's column and kind; whether it has its whole value."""

    column: int
    name: str | None
    inner: int | None = None
    has_keys: bool = False
    is_full: bool = False


class _Reader:
    """The slots of one document, by lines."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._lines = Lines(source)
        self._style = EscapeStyle(source)
        self._path = [_Level(-1, None)]
        self.roots: list[tuple[int, int, str]] = []  # keys of the root, with quotes, where they are
        self.has_nested_root = False

    def slots(self) -> Iterator[Slot]:
        """Yield the texts in order.

        Raises:
            DocumentError: it is not YAML, or has what is not read here.
        """
        if found := re.search("\r(?!\n)|[\x85\u2028\u2029]", self._source):
            raise self._error(found.start(), "a line ends in another sign than a line feed; write it as an escape")
        position = 0
        while position < len(self._source):
            start = position + self._indentation(position)
            if _REST.match(self._source, start) or self._source.startswith("#", start):
                position = self._next_line(start)
            elif start == position and _MARKER.match(self._source, start):
                position = self._ended(start + 3)
                self._path = [_Level(-1, None)]
            elif start == position and self._source.startswith("%", start) and self._path[0].inner is None:
                position = self._next_line(start)
            else:
                position = yield from self._line(position, start)

    def _line(self, line: int, position: int) -> Generator[Slot, None, int]:
        """Yield the texts of what begins on a line, and return where the line after it begins."""
        while self._source.startswith("-", position) and self._source[position + 1 : position + 2] in (*" \t\r\n", ""):
            self._enter(_Level(position - line, None), position)
            if _REST.match(self._source, position + 1):
                return self._next_line(position)
            position += 1 + self._indentation(position + 1)
        column = position - line
        if key := _KEY.match(self._source, position):
            name = key[0][:-1].rstrip()
            self._enter(_Level(column, name.strip("\"'")), position)
            if len(self._path) == 2:
                self.roots.append((position, position + len(name), name))
            self.has_nested_root |= len(self._path) > 2
            position = key.end()
            position += self._indentation(position, " \t")
            if _REST.match(self._source, position) or self._source.startswith("#", position):
                return self._next_line(position)
        else:
            while self._path[-1].column >= column and self._path[-1].name is not None:
                self._path.pop()
        return (yield from self._value(position))

    def _enter(self, level: _Level, position: int) -> None:
        """Put a key or a dash below the level that it belongs to."""
        while self._path[-1].column > level.column or (
            self._path[-1].column == level.column and (level.name is not None or self._path[-1].name is None)
        ):
            self._path.pop()
        parent = self._path[-1]
        has_key = level.name is not None
        if parent.is_full or (parent.inner is not None and (parent.inner, parent.has_keys) != (level.column, has_key)):
            raise self._error(position, "its indentation fits no line before")
        if len(self._path) > MAX_DEPTH:
            raise self._error(position, f"it is nested more than {MAX_DEPTH} deep")
        parent.inner, parent.has_keys = level.column, has_key
        self._path.append(level)

    def _value(self, position: int) -> Generator[Slot, None, int]:
        """Yield the texts of a value, which is that of the innermost level, and return where the next line begins."""
        level = self._path[-1]
        if level.is_full or level.inner is not None:
            raise self._error(position, "a text follows what is complete")
        position, is_text = self._after_properties(position)
        if _REST.match(self._source, position):
            return self._next_line(position)
        level.is_full = True
        first = self._source[position]
        if first in "|>":
            return (yield from self._block(position, level.column, is_text=is_text))
        if first in "[{":
            position = yield from self._flow(position)
        elif first == "*":
            position = self._alias(position)
        elif first in "\"'":
            end = self._quoted(position)
            yield from self._slot(position, end, self._names(), is_text=is_text)
            position = end
        else:
            end = self._plain(position, level.column)
            yield from self._slot(position, end, self._names(), is_text=is_text)
            position = end
        return self._ended(position)

    def _after_properties(self, position: int) -> tuple[int, bool]:
        """Return where the content begins behind anchors and tags, and whether its tag is that of a string."""
        is_text = True
        while found := _PROPERTY.match(self._source, position):
            is_text &= found[1].startswith("&") or found[1] in _STRING_TAGS
            position = found.end()
        return position, is_text

    def _alias(self, position: int) -> int:
        if (found := _ALIAS.match(self._source, position)) is None:
            raise self._error(position, "an alias has no name")
        return found.end()

    def _quoted(self, position: int) -> int:
        found = _STRING.match(self._source, position)
        if found is None:
            raise self._error(position, "a quotation has no end")
        if "\n" in found[0] and re.search(r"\n(?:---|\.\.\.)(?=[ \t\r\n])", found[0]):
            raise self._error(position, "a document ends within a quotation")
        return found.end()

    def _plain(self, position: int, parent: int) -> int:
        """Return the end of a plain scalar, with the lines that continue it."""
        found = _PLAIN.match(self._source, position)
        if found is None:
            raise self._error(position, "a value begins with a sign that needs quotes around it")
        end = found.end()
        while self._source.startswith("\n", self._bare_end(end)):
            start = self._bare_end(end) + 1
            while blank := _BLANK.match(self._source, start):
                start = blank.end() + 1
            content = start + self._indentation(start, " \t")
            if self._indentation(start) <= parent or self._source[content : content + 1] in ("#", ""):
                break
            if start == content and _MARKER.match(self._source, start):
                break
            more = _MORE.match(self._source, content)
            if more is None:
                raise self._error(content, "a value goes on with a sign that needs quotes around it")
            end = more.end()
            if self._source.startswith(":", end):
                break
        if self._source.startswith(":", end):
            raise self._error(end, "a value has a colon before a space, which needs quotes around it")
        return position + len(self._source[position:end].rstrip(" \t\r\n"))

    def _bare_end(self, position: int) -> int:
        """Return the position of the line feed if only white space is before it on this line."""
        end = position + self._indentation(position, " \t")
        return end + 1 if self._source.startswith("\r\n", end) else end

    def _block(self, position: int, parent: int, *, is_text: bool) -> Generator[Slot, None, int]:
        """Yield the text of a literal or folded block, and return where the line after it begins."""
        header = _HEADER.match(self._source, position)
        if header is None:
            raise self._error(position, "a block begins with an unknown sign")
        digits = re.sub("[^0-9]", "", header[0])
        self._ended(header.end())
        is_folded = header[0].startswith(">")
        indent = max(parent, 0) + int(digits) if digits else 0
        lines: list[str] = []
        start = end = 0
        line = following = self._next_line(position)
        while line < len(self._source):
            stop = self._next_line(line)
            text = self._source[line:stop].rstrip("\n").removesuffix("\r")
            found = self._indentation(line)
            if text.strip(" "):
                if not indent and found > parent:
                    indent = found
                if found < max(indent, parent + 1):
                    break
                if not lines:
                    start = line + indent
                end = line + len(text)
                following = stop
            elif not lines:
                line = stop
                continue
            lines.append(text[indent:])
            line = stop
        if not lines:
            return following
        while not lines[-1].strip(" "):
            lines.pop()
        is_folded &= not any(each.startswith((" ", "\t")) for each in lines)
        if is_text:
            ending = "\r\n" if self._source.startswith("\r\n", end) else "\n"
            write = functools.partial(yaml_scalars.write_block, " " * indent, ending, is_folded)
            yield from self._named(start, end, yaml_scalars.block(lines, is_folded=is_folded), write, self._names())
        return following

    def _flow(self, position: int) -> Generator[Slot, None, int]:
        """Yield the texts of a flow collection, and return its end."""
        start = position
        path: list[tuple[str, str]] = []  # the signs that end what is open, and the keys there
        names = self._names()
        is_after = False  # a value, so a comma or an end comes next
        is_text = True
        while position < len(self._source):
            position = _FLOW_SPACE.match(self._source, position).end()  # type: ignore[union-attr]  # it matches nothing
            sign = self._source[position : position + 1]
            if sign and sign in "[{" and not is_after:
                if len(path) == MAX_DEPTH:
                    raise self._error(position, f"it is nested more than {MAX_DEPTH} deep")
                path.append(("]" if sign == "[" else "}", ""))
                position, is_text = position + 1, True
            elif path and sign == path[-1][0]:
                path.pop()
                position, is_after = position + 1, True
                if not path:
                    return position
            elif sign == ",":
                position, is_after, is_text = position + 1, False, True
                path[-1] = path[-1][0], ""
            elif is_after or not sign:
                break
            elif sign == "*":
                position, is_after = self._alias(position), True
            elif sign in "&!":
                position, is_text = self._after_properties(position)
            else:
                plain = None if sign in "\"'" else _FLOW_PLAIN.match(self._source, position)
                if sign not in "\"'" and plain is None:
                    break
                end = plain.end() if plain else self._quoted(position)
                end = position + len(self._source[position:end].rstrip(" \t"))
                colon = end + self._indentation(end, " \t")
                if self._source.startswith(":", colon) and (
                    not plain or self._source[colon + 1 : colon + 2] in (*" \t\r\n,[]{}", "")
                ):
                    path[-1] = path[-1][0], self._source[position:end].strip("\"'")
                    position = colon + 1
                    continue
                keys = [key for _, key in path if key]
                yield from self._slot(position, end, [*names, *keys], is_text=is_text, is_flow=True)
                position, is_after = end, True
        raise self._error(min(position, len(self._source)) or start, "a list or mapping in brackets is not read")

    def _slot(
        self, start: int, end: int, names: Sequence[str], *, is_text: bool, is_flow: bool = False
    ) -> Iterator[Slot]:
        raw = self._source[start:end]
        content = raw[1:-1]
        write: Callable[[str], str]
        if raw.startswith('"'):
            value = yaml_scalars.double_quoted(content, self._lines.place(start))
            write = functools.partial(yaml_scalars.write_double, self._style)
        elif raw.startswith("'"):
            value = yaml_scalars.folded(content.replace("\\", "\\\\")).replace("\\\\", "\\").replace("''", "'")
            write = functools.partial(yaml_scalars.write_single, self._style)
        else:
            value = yaml_scalars.folded(raw.replace("\\", "\\\\")).replace("\\\\", "\\")
            is_text &= yaml_scalars.is_string(value)
            write = functools.partial(yaml_scalars.write_plain, self._style, is_flow)
        if is_text:
            yield from self._named(start, end, value, write, names)

    def _named(
        self, start: int, end: int, value: str, write: Callable[[str], str], names: Sequence[str]
    ) -> Iterator[Slot]:
        """Yield the slot of a value below `names`, unless it stays by convention."""
        if "formats" in names or ("number" in names and names[-1] == "format"):
            return
        is_html = bool(names) and (names[-1] == "html" or names[-1].endswith("_html"))
        kind = MimeType.HTML if is_html else MimeType.TEXT
        if slot := value_slot(start, end, value, self._lines.place(start), write, kind):
            yield slot

    def _names(self) -> list[str]:
        return [level.name for level in self._path if level.name is not None]

    def _indentation(self, position: int, signs: str = " ") -> int:
        """Return the number of spaces from a position on."""
        end = position
        while self._source[end : end + 1] and self._source[end] in signs:
            end += 1
        return end - position

    def _next_line(self, position: int) -> int:
        end = self._source.find("\n", position)
        return end + 1 if end >= 0 else len(self._source)

    def _ended(self, position: int) -> int:
        """Return where the next line begins if nothing but a comment is left of this one."""
        if not _REST.match(self._source, position):
            raise self._error(position, "something follows what is complete")
        return self._next_line(position)

    def _error(self, position: int, problem: str) -> DocumentError:
        return DocumentError(f"{problem}.", self._lines.place(position))


def read(data: bytes, options: DocumentOptions) -> Document:
    """Read YAML in UTF-8, or in UTF-16 with a byte order mark; a root that names the language gets `options.target`.

    Raises:
        DocumentError: it is not YAML, or has what is not read here.
    """
    source, encode = decoded(data)
    reader = _Reader(source)
    slots = list(reader.slots())
    edits: list[Edit] = []
    notes: list[str] = []
    if len(reader.roots) == 1 and reader.has_nested_root and options.target:
        start, end, written = reader.roots[0]
        name = written.strip("\"'")
        if _LANGUAGE.fullmatch(name):
            target = canonical(options.target)
            edits.append(Edit(start, end, written.replace(name, target)))
            notes.append(f"The root's key {name} was set to {target}.")
    return Spliced(source, slots, encode, notes, edits)
