"""YAML (https://yaml.org/spec/1.2.2) with the strings of a program, such as Rails' locales.

Texts are the values that are strings, where libyaml finds them, written in their own style. Keys, comments, anchors,
aliases, numbers, truth values, symbols, and values of tags other than `!!str` stay. By Rails' conventions, so does all
below `formats`, and `format` below `number`; a value whose key ends in `_html` is HTML; and if the one key of the root
is a language code, as in `config/locales/en.yml`, it becomes the target's.
"""

import functools
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import yaml

from service.documents.document import Document, DocumentOptions, Edit, MimeType, Slot, Spliced
from service.documents.encodings import decoded
from service.documents.errors import DocumentError
from service.documents.keyed_values import KeyedValues
from service.documents.lines import Lines
from service.documents.values import EscapeStyle, as_escape
from service.text.languages import canonical, is_language

# Plain words that are no strings, in YAML 1.1 or 1.2, and Ruby's symbols.
_NO_STRING = re.compile(
    r"(?i:y|n|yes|no|on|off|true|false|null|~|[-+]?\.inf|\.nan)|[-+]?[.\d][\d_.,:]*(?:[eE][-+]?\d+)?|0[xob][\da-fA-F_]+"
    r"|\d{4}-\d\d?-\d\d?(?:[Tt]|[ \t]+)\d[\d:. \tZz+-]*|:[\w\"].*|=|<<",
    re.ASCII | re.DOTALL,
)
_SAFE = re.compile(r"[^\W_](?:[^:#]|:(?=[^\s,\[\]{}])|(?<!\s)#)*+")
_WRITTEN = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": "\\r"}
_MAX_DEPTH = 100
# In Python, which is slower and stricter about tabs, where PyYAML was built without libyaml.
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_OTHER_LINE_END = re.compile("\r(?!\n)|[\x85\u2028\u2029]")
# Anchors and tags before a value, and what may be between.
_PROPERTIES = re.compile(r"(?:!<[^>]*+>|[&!][^\s,\[\]{}]*+|[ \t\r\n]++|(?<=\s)#[^\n]*+)*+")
_EMPTY_LINES = re.compile(r"(?: *+\r?\n)*+")
# The colon of a symbol of Ruby, which begins no value in brackets for libyaml: it is given another sign.
_SYMBOL = re.compile(r"([\[{,]\s*|:\s+):(?=\w)")
_STAND_IN = "\ue000"
_STRING_TAGS = (None, "!", "tag:yaml.org,2002:str")


def is_string(plain: str) -> bool:
    """Return whether a plain scalar is a string: no number, date, truth value, null, or symbol of Ruby."""
    return not _NO_STRING.fullmatch(plain)


def folded(lines: Sequence[str]) -> str:
    """Join the lines of one text: each line break is a space, and each empty line a line feed."""
    text = lines[0].rstrip(" \t")
    num_empty = 0
    for line in lines[1:]:
        words = line.strip(" \t")
        if words:
            text += ("\n" * num_empty or " ") + words
            num_empty = 0
        else:
            num_empty += 1
    return text


def write_block(indent: str, ending: str, is_folded: bool, text: str) -> str:
    """Return the lines of a block scalar, but for the indentation of the first."""
    if is_folded:
        text = re.sub(r"\n+", lambda match: match[0] + "\n", text)
        lines = [line.lstrip(" \t") for line in text.split("\n")]
    else:
        lines = text.split("\n")
    return ending.join(lines[:1] + [indent + line if line.strip() else "" for line in lines[1:]])


def write_plain(style: EscapeStyle, is_flow: bool, text: str) -> str:
    """Return a plain scalar; one in double quotes if it would not say the same."""
    is_safe = _SAFE.fullmatch(text) and text.isprintable() and is_string(text) and not text.endswith((" ", ":"))
    return text if is_safe and not (is_flow and re.search(r"[,\[\]{}]", text)) else write_double(style, text)


def write_single(style: EscapeStyle, text: str) -> str:
    """Return a scalar in single quotes; in double ones, if it has what can't be in these."""
    if all(each.isprintable() or each == "\xa0" for each in text):
        return "'" + text.replace("'", "''") + "'"
    return write_double(style, text)


def write_double(style: Callable[[str], str], text: str) -> str:
    output = []
    for each in text:
        if each in _WRITTEN:
            output.append(_WRITTEN[each])
        elif each.isprintable() or each == "\xa0":
            output.append(style(each))
        else:
            output.append(as_escape(each) if each <= "\uffff" else f"\\U{ord(each):08x}")
    return '"' + "".join(output) + '"'


class Reader:
    """Reads a document; positions are in its text. `slots_of` is like `KeyedValues.slots`."""

    def __init__(self, source: str, slots_of: Callable[..., Iterator[Slot]]) -> None:
        self._source = source
        self._slots_of = slots_of
        self._lines = Lines(source)
        self._style = EscapeStyle(source)
        self._events: Iterator[Any] = iter(())
        self.roots: list[tuple[int, int]] = []  # where the keys of the root are, with quotes
        self.has_nested_keys = False

    def slots(self) -> Iterator[Slot]:
        if found := _OTHER_LINE_END.search(self._source):
            raise self._error(
                found.start(), "a line ends with another character than a line feed; write it as an escape"
            )
        try:
            source = _SYMBOL.sub(rf"\1{_STAND_IN}", self._source) if _STAND_IN not in self._source else self._source
            self._events = yaml.parse(source, Loader=_LOADER)
            for event in self._events:
                if isinstance(event, yaml.NodeEvent):  # the root of a document
                    yield from self._node(event, (), 1)
        except yaml.MarkedYAMLError as error:
            raise self._error(_index(error.problem_mark or error.context_mark), str(error.problem)) from None
        except yaml.reader.ReaderError as error:  # a character that YAML does not have
            raise self._error(self._source.find(chr(error.character)), error.reason) from None

    def _node(
        self, event: yaml.NodeEvent, names: tuple[str, ...], depth: int, *, is_flow: bool = False
    ) -> Iterator[Slot]:
        match event:
            case yaml.ScalarEvent():
                yield from self._scalar(event, names, is_flow=is_flow)
            case yaml.CollectionStartEvent() if depth > _MAX_DEPTH:
                raise self._error(_index(event.start_mark), f"it is nested more than {_MAX_DEPTH} deep")
            case yaml.SequenceStartEvent():
                while not isinstance(item := next(self._events), yaml.SequenceEndEvent):
                    yield from self._node(item, names, depth + 1, is_flow=bool(event.flow_style))
            case yaml.MappingStartEvent():
                while not isinstance(key := next(self._events), yaml.MappingEndEvent):
                    name = self._key(key, depth, is_flow=bool(event.flow_style))
                    value = next(self._events)
                    yield from self._node(value, (*names, name), depth + 1, is_flow=bool(event.flow_style))

    def _key(self, event: yaml.NodeEvent, depth: int, *, is_flow: bool) -> str:
        """Return the name of a key of any kind; record those of the root and of blocks below it."""
        if not is_flow:
            self.has_nested_keys |= depth > 1
            if depth == 1:
                self.roots.append((self._start(event), _index(event.end_mark)))
        if isinstance(event, yaml.ScalarEvent):
            return event.value.replace(_STAND_IN, ":")
        for _ in self._node(event, (), depth + 1):  # a collection, which stays
            pass
        return ""

    def _scalar(self, event: yaml.ScalarEvent, names: tuple[str, ...], *, is_flow: bool) -> Iterator[Slot]:
        """Yield the text of a scalar, unless it is no string, or stays by convention."""
        value = event.value.replace(_STAND_IN, ":")
        is_other = not event.style and not is_string(value)
        if is_other or event.tag not in _STRING_TAGS or not value.strip():
            return
        if "formats" in names or ("number" in names and names[-1] == "format"):
            return
        start, end = self._start(event), _index(event.end_mark)
        write: Callable[[str], str]
        if event.style in ("|", ">"):
            start, end, value, write = self._block(start, event)
        elif event.style == '"':
            write = functools.partial(write_double, self._style)
        elif event.style == "'":
            write = functools.partial(write_single, self._style)
        else:
            write = functools.partial(write_plain, self._style, is_flow)
        is_html = bool(names) and (names[-1] == "html" or names[-1].endswith("_html"))
        kind = MimeType.HTML if is_html else MimeType.TEXT
        yield from self._slots_of(names, start, end, value, self._lines.place(start), write, kind)

    def _start(self, event: yaml.NodeEvent) -> int:
        found = _PROPERTIES.match(self._source, _index(event.start_mark))
        assert found is not None  # it matches nothing, too
        return found.end()

    def _block(self, header: int, event: yaml.ScalarEvent) -> tuple[int, int, str, Callable[[str], str]]:
        """Return the start of a block's text after its indentation, the end, and how a translation is written.

        A folded block with lines that begin with white space is written as it is.
        """
        line = self._source.find("\n", header) + 1
        start = _EMPTY_LINES.match(self._source, line).end()  # type: ignore[union-attr]  # it matches nothing, too
        end = start + len(self._source[start : _index(event.end_mark)].rstrip())
        first = next(filter(str.strip, event.value.split("\n")), "")
        indent = _indentation(self._source[start:end]) - _indentation(first)
        lines = [each.removesuffix("\r")[indent:] for each in self._source[start:end].split("\n")]
        is_folded = event.style == ">" and not any(each.startswith((" ", "\t")) for each in lines)
        text = folded(lines) if is_folded else "\n".join(lines)
        ending = "\r\n" if self._source.endswith("\r\n", 0, line) else "\n"
        return start + indent, end, text, functools.partial(write_block, " " * indent, ending, is_folded)

    def _error(self, position: int, problem: str) -> DocumentError:
        return DocumentError(f"{problem}.", self._lines.place(position))


def _index(mark: Any) -> int:
    return int(mark.index)


def _indentation(text: str) -> int:
    return len(text) - len(text.lstrip(" "))


def read(data: bytes, options: DocumentOptions) -> Document:
    """Read YAML in UTF-8, or in UTF-16 with a byte order mark; a root that names the language gets `options.target`."""
    source, encode = decoded(data)
    values = KeyedValues(options)
    reader = Reader(source, values.slots)
    slots = list(reader.slots())
    edits: list[Edit] = []
    notes = values.notes
    if len(reader.roots) == 1 and reader.has_nested_keys and options.target and slots:
        start, end = reader.roots[0]
        written = source[start:end]
        name = written.strip("\"'")
        if is_language(name):
            target = canonical(options.target)
            edits.append(Edit(start, end, written.replace(name, target)))
            notes.append(f"The root's key {name} was set to {target}.")
    return Spliced(source, slots, encode, notes, edits)
