"""YAML with the strings of a program, such as Rails' locales: the values that are strings.

This reads block mappings and sequences, flow collections and all kinds of scalars, where they are; what else there is
in YAML (keys of several lines or with `?`, text behind `---`) is refused. Keys, comments, anchors, aliases, numbers,
truth values and symbols stay, and so do the values of other tags than `!!str`. By Rails' conventions all below
`formats`, and `format` below `number`, stays; a value whose key ends in `_html` is HTML; and if the one key of the root
is a language code, as in `config/locales/en.yml`, it becomes that of the target.
"""

import functools
import re
from collections.abc import Generator, Iterator
from dataclasses import dataclass

from service.documents import yaml_scalars
from service.documents.document import Document, DocumentOptions, Edit, Slot, Spliced
from service.documents.encodings import decoded
from service.documents.yaml_values import MAX_DEPTH, REST, START, ValueReader
from service.text.languages import canonical, is_language

_PLAIN = re.compile(rf"(?:{START}|[-?:](?=\S))(?:[^:#\n\r]++|:(?=\S)|(?<=\S)#)*+")
_MORE = re.compile(r"(?:[^:#\n\r]++|:(?=\S)|(?<=\S)#)++")
_KEY = re.compile(
    rf""" (?:"(?:[^"\\\n]++|\\.)*+"|'(?:[^'\n]++|'')*+'|{_PLAIN.pattern})[ \t]*+:(?=[ \t\r\n]|\Z)""".strip()
)
_BLANK = re.compile(r"[ \t]*+\r?(?=\n)")
_HEADER = re.compile(r"[|>](?:[+-]?([1-9])?|[1-9]?[+-])[+-]?(?=[ \t\r\n]|\Z)")
_MARKER = re.compile(r"(?:---|\.\.\.)(?=[ \t\r\n]|\Z)")


@dataclass(slots=True)
class _Level:
    """A key, or the dash of an entry, at a column; its children's column and kind; whether it has its whole value."""

    column: int
    name: str | None
    inner: int | None = None
    has_keys: bool = False
    is_full: bool = False
    is_text: bool = True  # for all that its tag says


class _Reader(ValueReader):
    def __init__(self, source: str) -> None:
        super().__init__(source)
        self._path = [_Level(-1, None)]
        self.roots: list[tuple[int, int, str]] = []  # keys of the root, with quotes, where they are
        self.has_nested_root = False

    def slots(self) -> Iterator[Slot]:
        """Yield the texts in order."""
        if found := re.search("\r(?!\n)|[\x85\u2028\u2029]", self.source):
            raise self.error(found.start(), "a line ends in another sign than a line feed; write it as an escape")
        position = 0
        while position < len(self.source):
            start = position + self.indentation(position)
            if REST.match(self.source, start) or self.source.startswith("#", start):
                position = self.next_line(start)
            elif self.source.startswith("\t", start):
                raise self.error(start, "a tab is no indentation; use spaces")
            elif start == position and _MARKER.match(self.source, start):
                position = self.ended(start + 3)
                self._path = [_Level(-1, None)]
            elif start == position and self.source.startswith("%", start) and self._path[0].inner is None:
                position = self.next_line(start)
            else:
                position = yield from self._line(position, start)

    def _line(self, line: int, position: int) -> Generator[Slot, None, int]:
        """Yield the texts of what begins on a line, and return where the line after it begins."""
        while self.source.startswith("-", position) and self.source[position + 1 : position + 2] in (*" \t\r\n", ""):
            self._enter(_Level(position - line, None), position)
            if REST.match(self.source, position + 1):
                return self.next_line(position)
            position += 1 + self.indentation(position + 1)
        column = position - line
        if key := _KEY.match(self.source, position):
            name = key[0][:-1].rstrip()
            self._enter(_Level(column, name.strip("\"'")), position)
            if len(self._path) == 2:
                self.roots.append((position, position + len(name), name))
            self.has_nested_root |= len(self._path) > 2
            position = key.end()
            position += self.indentation(position, " \t")
            if REST.match(self.source, position) or self.source.startswith("#", position):
                return self.next_line(position)
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
            raise self.error(position, "its indentation fits no line before")
        if len(self._path) > MAX_DEPTH:
            raise self.error(position, f"it is nested more than {MAX_DEPTH} deep")
        parent.inner, parent.has_keys = level.column, has_key
        self._path.append(level)

    def _value(self, position: int) -> Generator[Slot, None, int]:
        """Yield the texts of a value, which is that of the innermost level, and return where the next line begins."""
        level = self._path[-1]
        if level.is_full or level.inner is not None:
            raise self.error(position, "a text follows what is complete")
        position, is_text = self.after_properties(position)
        is_text &= level.is_text
        if REST.match(self.source, position):
            level.is_text = is_text
            return self.next_line(position)
        level.is_full = True
        first = self.source[position]
        if first in "|>":
            return (yield from self._block(position, level.column, is_text=is_text))
        if first in "[{":
            position = yield from self.flow(position, self._names())
        elif first == "*":
            position = self.alias(position)
        else:
            end = self.quoted(position) if first in "\"'" else self._plain(position, level.column)
            yield from self.slot(position, end, self._names(), is_text=is_text)
            position = end
        return self.ended(position)

    def _plain(self, position: int, parent: int) -> int:
        """Return the end of a plain scalar, with the lines that continue it."""
        found = _PLAIN.match(self.source, position)
        if found is None:
            raise self.error(position, "a value begins with a sign that needs quotes around it")
        end = found.end()
        while self.source.startswith("\n", self._bare_end(end)):
            start = self._bare_end(end) + 1
            while blank := _BLANK.match(self.source, start):
                start = blank.end() + 1
            content = start + self.indentation(start, " \t")
            if self.indentation(start) <= parent or self.source[content : content + 1] in ("#", ""):
                break
            if start == content and _MARKER.match(self.source, start):
                break
            more = _MORE.match(self.source, content)
            if more is None:
                raise self.error(content, "a value goes on with a sign that needs quotes around it")
            end = more.end()
            if self.source.startswith(":", end):
                break
        if self.source.startswith(":", end):
            raise self.error(end, "a value has a colon before a space, which needs quotes around it")
        return position + len(self.source[position:end].rstrip(" \t\r\n"))

    def _bare_end(self, position: int) -> int:
        """Return the position of the line feed if only white space is before it on this line."""
        end = position + self.indentation(position, " \t")
        return end + 1 if self.source.startswith("\r\n", end) else end

    def _block(self, position: int, parent: int, *, is_text: bool) -> Generator[Slot, None, int]:
        """Yield the text of a literal or folded block, and return where the line after it begins."""
        header = _HEADER.match(self.source, position)
        if header is None:
            raise self.error(position, "a block begins with an unknown sign")
        digits = re.sub("[^0-9]", "", header[0])
        self.ended(header.end())
        is_folded = header[0].startswith(">")
        indent = max(parent, 0) + int(digits) if digits else 0
        lines: list[str] = []
        start = end = 0
        line = following = self.next_line(position)
        while line < len(self.source):
            stop = self.next_line(line)
            text = self.source[line:stop].rstrip("\n").removesuffix("\r")
            found = self.indentation(line)
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
            ending = "\r\n" if self.source.startswith("\r\n", end) else "\n"
            write = functools.partial(yaml_scalars.write_block, " " * indent, ending, is_folded)
            text = yaml_scalars.folded("\n".join(lines)) if is_folded else "\n".join(lines)
            yield from self.named(start, end, text, write, self._names())
        return following

    def _names(self) -> list[str]:
        return [level.name for level in self._path if level.name is not None]


def read(data: bytes, options: DocumentOptions) -> Document:
    """Read YAML in UTF-8, or in UTF-16 with a byte order mark; a root that names the language gets `options.target`."""
    source, encode = decoded(data)
    reader = _Reader(source)
    slots = list(reader.slots())
    edits: list[Edit] = []
    notes: list[str] = []
    if len(reader.roots) == 1 and reader.has_nested_root and options.target and slots:
        start, end, written = reader.roots[0]
        name = written.strip("\"'")
        if is_language(name):
            target = canonical(options.target)
            edits.append(Edit(start, end, written.replace(name, target)))
            notes.append(f"The root's key {name} was set to {target}.")
    return Spliced(source, slots, encode, notes, edits)
