"""reStructuredText, as docutils and Sphinx read it: https://docutils.sourceforge.io/docs/ref/rst/restructuredtext.html.

Titles, paragraphs, items, terms, notes and the texts of directives are texts; a paragraph becomes one line, and the
lines of a title get its length. What is not read exactly stays: tables, and unknown directives.
"""

import functools
import re
import unicodedata
from collections.abc import Callable, Generator, Iterator

from service.documents.directives import TEXT_OPTIONS, Directive, kind_of, unknown_directives
from service.documents.document import Document, DocumentOptions, Edit, Slot, Spliced, notes_on_left
from service.documents.encodings import decoded
from service.documents.inline import InlineText
from service.documents.lines import Line, lines
from service.documents.rst_text import named, pieces, references, targets, written
from service.documents.tables import read_records

_ADORNMENT = re.compile(r"([!-/:-@[-`{-~])\1*\Z")
_TABLE = re.compile(r"\+-[-+]*-\+\Z|=+(?: +=+)+\Z")
_ITEM = re.compile(r"(?:[-+*•‣⁃]|\(?(?:\d{1,9}|[A-Za-z]|[ivxlcdmIVXLCDM]{1,9}|#)[.)])(?:[ \t]+|\Z)")
_FIELD = re.compile(r":(?P<name>(?![: ])(?:[^:\\`]|\\.|:(?![ `]|\Z)){1,200}):(?:[ \t]+|\Z)")
_NO_TEXT = re.compile(  # fields
    r"(?:type|rtype|vartype|version|date|authors?|contact|address|organization|copyright|revision|status|id|orphan"
    r"|tocdepth|nosearch|nocomments|no-[a-z]+|og:\w+|Release|Last-Modified|Content-Type|PEP)\b.*",
    re.IGNORECASE,
)
_OPTION = re.compile(
    r"(?:(?:--?|/|\+)[\w?][\w-]{0,60}(?:[ =](?:<[^<>]{1,60}>|[\w.-]{1,60}))?(?:, |(?=[ ]{2}|\Z))){1,9}(?:[ ]{2,}|\Z)"
)
_VERSE = re.compile(r"\|(?:[ \t]+|\Z)")
_NOTE = re.compile(r"\.\.[ \t]+\[[^\[\]]{1,60}\](?:[ \t]+|\Z)")
_DIRECTIVE = re.compile(
    r"\.\.[ \t]+(?:\|[^|]{1,200}\|[ \t]+)?(?P<name>[A-Za-z0-9][\w:.+-]{0,60}?)[ \t]?::(?:[ \t]+(?P<text>.*)|\Z)"
)
_TARGET = re.compile(r"\.\.[ \t]+_(`[^`]+`|(?:[^:\\]|\\.|:(?! |\Z))+):")
_KEPT = re.compile(r"\.\.(?:\s|\Z)|__[ \t]|>>>[ ]")
_BLOCK = re.compile("|".join(each.pattern for each in (_KEPT, _ITEM, _VERSE, _FIELD, _TABLE)))
_WITH_BLOCKS = (Directive.PROSE, Directive.TITLED, Directive.VERSION)
_DIALECT = frozenset({"delim", "quote", "escape"})  # options of a `csv-table` that is not written as others are

_MAX_COLUMN = 400  # of blocks in blocks on one line


class _Reader:
    """The lines of a document, which are read one after another: a block within another is indented, that is all."""

    def __init__(self, source: str) -> None:
        self._lines = [*lines(source), *[Line(0, "", len(source), "")] * 3]
        self._literal = -1  # the indentation of the paragraph that a literal block follows
        self._source = source
        self._names: list[tuple[str, int, str, str]] = []  # of titles and links: where targets of these may be written
        self._targets: set[str] = set()
        self._references = references(source)
        self._unknown: list[str] = []
        self._num_tables = self._num_left = 0

    def slots(self) -> Iterator[Slot]:
        return self._blocks(0, len(self._lines) - 3)

    def _blocks(self, line: int, end: int, terms: int = -1) -> Iterator[Slot]:
        """Yield the texts of some lines; those in the column `terms` are kept."""
        while line < end:
            text = self._lines[line].text
            start = len(text) - len(text.lstrip())
            if start == len(text):
                line += 1
                continue
            indent, literal = self._column(line, start), self._literal
            self._literal = -1
            if indent > literal >= 0:
                line = self._after(line, literal)
            elif indent == literal and _ADORNMENT.match(text[start]):  # each line has this sign
                line = self._last(line, indent, f"(?!{re.escape(text[start])})") + 1
            elif indent == terms and not _KEPT.match(text, start):
                line += 1
            else:
                line = yield from self._block(line, start)

    @property
    def notes(self) -> Iterator[str]:
        yield from notes_on_left(self._num_tables, "table")
        yield from unknown_directives(self._unknown)
        yield from notes_on_left(self._num_left, "text", why="lines are indented in an unusual way")

    @property
    def edits(self) -> Iterator[Edit]:
        """Yield the names that sections and links keep, as something refers to them."""
        for name, place, before, after in self._names:
            if named(name) in self._references - self._targets:
                self._targets.add(named(name))
                yield Edit(place, place, f"{before}.. _{name.replace(':', chr(92) + ':')}:{after}")

    def _block(self, line: int, start: int) -> Generator[Slot, None, int]:
        """Yield the texts of the block that begins in a line; return the line after what is read of it."""
        text, indent = self._lines[line].text[start:].rstrip(), self._column(line, start)
        following = self._lines[line + 1].text.rstrip()
        if start > _MAX_COLUMN:
            self._num_left += 1
        elif text == "::":
            self._literal = indent
        elif _TABLE.fullmatch(text):
            self._num_tables += 1
            return self._after_table(line, text[0])
        elif _ADORNMENT.fullmatch(text) and not _ITEM.match(text) and text != "..":
            if self._lines[line + 2].text.rstrip() == text and following and start == 0:
                yield from self._title(line + 1, text)
                return line + 3
        elif match := _DIRECTIVE.fullmatch(text):
            return (yield from self._directive(match, line, start))
        elif text.startswith(">>> "):
            return self._last(line, None, marker=indent - 1) + 1
        elif _KEPT.match(text) and not _NOTE.match(text):
            if match := _TARGET.match(text):
                self._targets.add(named(match[1].strip("`")))
            return self._after(line, indent) if text != ".." or following else line + 1
        elif start == 0 and _ADORNMENT.fullmatch(following) and len(following) >= min(4, _width(text)):
            yield from self._title(line, "")
            return line + 2
        elif (match := _ITEM.match(text)) and self._is_item(line, start, match):
            return (yield from self._block(line, start + match.end())) if match.end() < len(text) else line + 1
        elif match := next(filter(None, (each.match(text) for each in (_FIELD, _OPTION, _VERSE, _NOTE))), None):
            if _NO_TEXT.fullmatch(match.groupdict().get("name", "")):
                return self._after(line, indent)
            rest = text[match.end() :]
            if _BLOCK.match(rest):
                return (yield from self._block(line, start + match.end()))
            if rest:
                return (yield from self._paragraph(line, start + match.end(), indent))
        else:
            return (yield from self._paragraph(line, start))
        return line + 1

    def _is_item(self, line: int, start: int, match: re.Match[str]) -> bool:
        """Return whether it is an item, not a sentence that begins with such a letter or number."""
        text = self._lines[line + 1].text
        begin = len(text) - len(text.lstrip())
        return (
            not match[0][:-1].rstrip(".)")[-1:].isalnum()
            or begin == len(text)
            or self._column(line + 1, begin) > self._column(line, start)
            or bool(_ITEM.match(text.lstrip()))
        )

    def _directive(self, match: re.Match[str], line: int, start: int) -> Generator[Slot, None, int]:
        kind, indent, begin = kind_of(match["name"]), self._column(line, start), match.start("text")
        following = line + 1
        if kind is Directive.VERSION:
            begin += len((match["text"] or "").split(" ")[0]) + 1
        if kind is Directive.PROSE:
            following = self._last(line, None, _FIELD.pattern, indent) + 1
        elif (
            kind in (Directive.TITLED, Directive.VERSION, Directive.CELLS)
            and begin < match.end("text")
            and not _FIELD.match(match["text"])
        ):
            following = yield from self._paragraph(line, start + begin, indent)
        names: set[str] = set()
        while (option := _FIELD.match(self._lines[following].text.strip())) and self._indent(following) > indent:
            text = self._lines[following].text
            begin = len(text) - len(text.lstrip()) + option.end()
            names.add(option["name"])
            if option["name"] in TEXT_OPTIONS and option.end() < len(text.strip()):
                following = yield from self._paragraph(following, begin, self._indent(following))
                continue
            last = self._last(following, None, "(?!)", self._indent(following))
            if kind is Directive.CELLS and option["name"] == "header":
                yield from self._cells(following, last, begin)
            following = last + 1
        end = self._after(line, indent)
        if kind is Directive.GLOSSARY:
            yield from self._blocks(following, end, self._next_indent(following - 1))
        elif kind is Directive.CELLS and names.isdisjoint(_DIALECT):
            yield from self._cells(following, end - 1)
        elif kind is Directive.CELLS:
            self._num_tables += 1
        elif kind is Directive.UNKNOWN:
            self._unknown.append(match["name"])
        return following if kind in _WITH_BLOCKS else end

    def _cells(self, first: int, last: int, begin: int = 0) -> Iterator[Slot]:
        """Yield the cells of comma-separated values; all are kept if a record may have several lines."""
        every = self._lines[first : last + 1]
        if any(line.text.count('"') % 2 for line in every):
            self._num_tables += 1
            return
        for line in every:
            start = begin or len(line.text) - len(line.text.lstrip())
            begin = 0
            cells = (cell for record in read_records(line.text, start, ",", is_strict=False) for cell in record.cells)
            for cell in cells:
                text = cell.text(line.text).strip()
                inline = self._inline(text)
                if _BLOCK.match(text):
                    self._num_left += inline.has_words
                    continue
                found = line.start + line.text.index(line.text[cell.start : cell.end].strip(), cell.start)
                write = functools.partial(_cell_written, inline)
                yield from _slots(inline, line.number, found, line.start + cell.end, write)

    def _title(self, line: int, overline: str) -> Iterator[Slot]:
        """Yield the text of a section's title, with the lines above and below it, which are as long as it."""
        title, under = self._lines[line], self._lines[line + 1]
        text = title.text.strip()
        first = self._lines[line - 1] if overline else title
        lead = title.text[: title.text.index(text)]
        length = len(under.text.rstrip())
        more = length - _width(text)
        inline = self._inline(text)

        def write(translation: str) -> str:
            new = written(inline, translation)
            size = _width(new) + more if 0 <= more <= 2 else max(length, _width(lead + new))
            lines_ = [f"{lead}{new}", under.text[0] * size]
            return title.ending.join([under.text[0] * size, *lines_] if overline else lines_)

        name = "".join(piece.text for piece in pieces(text))
        self._names.append((name, first.start, "", title.ending * 2))
        yield from _slots(inline, title.number, first.start, under.start + length, write)

    def _paragraph(self, line: int, start: int, marker: int = -1) -> Generator[Slot, None, int]:
        """Yield the text of a paragraph; behind a marker in this column its other lines are just indented more."""
        column = self._column(line, start) if marker < 0 else self._indent(line + 1)
        last = self._last(line, column, _FIELD.pattern if marker >= 0 else "(?!)", marker)
        following = self._lines[last + 1].text
        is_term = bool(following.strip()) and self._indent(last + 1) > max(
            column if last > line or marker < 0 else 0, marker
        )
        if is_term and (last > line or marker >= 0) and not _FIELD.match(following.strip()):
            self._num_left += 1
            return last + 1
        end = self._lines[last].start + len(self._lines[last].text.rstrip())
        first = self._lines[line].start + start
        text = " ".join(each.text.strip() for each in self._lines[line + 1 : last + 1])
        text = f"{self._lines[line].text[start:].strip()} {text}".rstrip()
        ending = ""
        if is_term and marker < 0 and " : " in text:
            text = text[: text.index(" : ")].rstrip()
            end = first + len(text)
        elif text.endswith("::"):
            self._literal = column if marker < 0 or last > line else marker
            ending = " ::" if text.endswith(" ::") else "::"
            text = text.removesuffix(" ::").removesuffix(":")
        inline = self._inline(text)
        # The first line after the one with the marker says how far all others are indented. Numbers are those of a list
        # only if the next line is indented, or such a number and a text.
        is_split = marker >= 0 and self._next_indent(last) > column
        is_split = last > line and (is_split or _ITEM.fullmatch(following.strip()) is not None)
        between = f"{self._lines[line].ending}{' ' * column}" if is_split else " "
        write = functools.partial(_with_ending, inline, ending, between)
        yield from _slots(inline, self._lines[line].number, first, end, write)
        return last + 1

    def _inline(self, text: str) -> InlineText:
        for name, address in targets(text):
            self._names.append((name, len(self._source), "\n\n", f" {address}\n"))
        return InlineText(pieces(text))

    def _column(self, line: int, position: int) -> int:
        return len(self._lines[line].text[:position].expandtabs())

    def _indent(self, line: int) -> int:
        text = self._lines[line].text
        return self._column(line, len(text) - len(text.lstrip()))

    def _next_indent(self, line: int) -> int:
        line += 1
        while line < len(self._lines) - 3 and not self._lines[line].text.strip():
            line += 1
        return self._indent(line)

    def _last(self, line: int, column: int | None, stop: str = "(?!)", marker: int = -1) -> int:
        """Return the last line of those that follow without an empty one, in this column, or behind a marker."""
        pattern = re.compile(stop)
        while (text := self._lines[line + 1].text.strip()) and not pattern.match(text):
            indent = self._indent(line + 1)
            if indent <= marker or (column is not None and indent != column):
                break
            line += 1
        return line

    def _after(self, line: int, indent: int) -> int:
        line += 1
        while line < len(self._lines) - 3 and (not self._lines[line].text.strip() or self._indent(line) > indent):
            line += 1
        return line

    def _after_table(self, line: int, sign: str) -> int:
        """Return the line after a table, of `+` and `|`, or one that ends with a line of `=` before an empty one."""
        if sign == "+":
            return self._last(line, None, r"[^+|]") + 1
        line += 1
        while line < len(self._lines) - 3 and (
            self._lines[line + 1].text.strip() or not _TABLE.fullmatch(self._lines[line].text.strip())
        ):
            line += 1
        return line + 1


def read(data: bytes, _: DocumentOptions) -> Document:
    source, encode = decoded(data)
    reader = _Reader(source)
    slots = [*reader.slots()]
    return Spliced(source, slots, encode, [*reader.notes], reader.edits)


def _slots(inline: InlineText, line: int, start: int, end: int, write: Callable[[str], str]) -> Iterator[Slot]:
    if inline.has_words:
        yield Slot(start, end, inline.document_text(f"line {line}"), write)


def _with_ending(inline: InlineText, ending: str, between: str, translation: str) -> str:
    text = written(inline, translation).replace(" ", between, 1)
    if ending == "::":
        return text.rstrip(": \u00a0") + ending
    return f"{text[:-1]}\\:" if text.endswith("::") else text + ending


def _cell_written(inline: InlineText, translation: str) -> str:
    text = written(inline, translation).replace('"', '""')
    return f'"{text}"'


def _width(text: str) -> int:
    """Return the width of a text as docutils measures it."""
    wide = sum(unicodedata.east_asian_width(character) in "WF" for character in text)
    return len(text) + wide - sum(map(bool, map(unicodedata.combining, text)))
