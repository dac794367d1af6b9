"""Reads Marian's YAML: settings, and vocabularies, whose pieces are text whatever they look like.

Only what Marian writes is read: a tree without aliases, merges and tags, so that no file holds more than it has bytes.
"""

import re
from collections import Counter
from collections.abc import Hashable, Mapping
from typing import Any

import yaml
from yaml.composer import Composer
from yaml.constructor import SafeConstructor
from yaml.parser import Parser
from yaml.reader import Reader
from yaml.resolver import BaseResolver
from yaml.scanner import Scanner

from service.bundle.fields import is_unicode
from service.domain.errors import shown
from service.text.vocabulary import parse_vocabulary

_MOST_SETTINGS_BYTES = 2**17
_MOST_DOCUMENT_CHARACTERS = 2**22  # of a vocabulary that is read as a whole, a megabyte in half a minute
_MOST_DEPTH = 20
_TEXT, _OTHER = "tag:yaml.org,2002:str", "!"  # the tags that a value may have
# What a value without quotes is that is no text. Numbers of other bases would take quadratic time.
_KINDS = {
    "bool": r"true|True|TRUE|false|False|FALSE|yes|Yes|YES|no|No|NO|on|On|ON|off|Off|OFF",
    "int": r"[-+]?(?:0|[1-9][0-9]{0,17})",
    "float": r"[-+]?(?:[0-9]{1,99}\.?[0-9]{0,99}|\.[0-9]{1,99})(?:[eE][-+]?[0-9]{1,3})?",
    "null": r"~|null|Null|NULL|",
}
# A line that needs no YAML: its piece has nothing that is quoted, or begins something else. Most lines are such.
_PLAIN = re.compile(r"([^\s\-?:,\[\]{}#&*!|>'\"%@`~][^:#\s]*): ([0-9]+)")
_MOST_DIGITS = 9
_DOCUMENT = ("", "---", "...")  # lines that hold no piece


def parse_settings(text: bytes) -> Mapping[str, Any]:
    """Return settings, which end with NULs in archives of some versions."""
    if len(text) > _MOST_SETTINGS_BYTES:
        raise ValueError(f"it has more than {_MOST_SETTINGS_BYTES} bytes")
    settings = _parsed(text.rstrip(b"\0"), _SettingsLoader)
    if not isinstance(settings, dict):
        raise ValueError("it holds no settings")
    return settings


def parse_pieces(name: str, text: bytes) -> dict[str, int]:
    """Return pieces and ids of a vocabulary that is no SentencePiece model: by its name YAML, JSON, or a list.

    YAML has a line for each piece. A list's pieces are numbered from 0.
    """
    vocabulary = parse_vocabulary(text) if name.endswith(".json") else _vocabulary(name, text)
    if not is_unicode("".join(vocabulary)):
        raise ValueError("its pieces are not text: one has half of a surrogate pair")
    return vocabulary


def _vocabulary(name: str, text: bytes) -> dict[str, int]:
    try:
        lines = text.decode().split("\n")
    except UnicodeDecodeError as error:
        raise ValueError(f"it is not UTF-8 text: {error}") from error
    is_yaml = name.endswith((".yml", ".yaml"))
    entries = _entries(lines) if is_yaml else [(piece, index) for index, piece in enumerate(lines) if piece]
    vocabulary = dict(entries)
    if len(vocabulary) < len(entries):
        repeated = next(piece for piece, number in Counter(piece for piece, _ in entries).items() if number > 1)
        raise ValueError(f"it has {repeated[:40]!r} twice")
    if not vocabulary:
        raise ValueError("it holds no pieces")
    if len(set(vocabulary.values())) < len(vocabulary):
        raise ValueError("two of its pieces have the same id")
    return vocabulary


def _entries(lines: list[str]) -> list[tuple[str, int]]:
    """Return the entries of lines of YAML; other YAML is read as a whole document, which takes seconds."""
    try:
        return [entry for line in lines for entry in _of_line(line)]
    except ValueError:
        return _of_document("\n".join(lines))


def _of_line(line: str) -> list[tuple[str, int]]:
    if plain := _PLAIN.fullmatch(line):
        return [(plain[1], int(plain[2]))]
    return [] if line.rstrip() in _DOCUMENT else _of_document(line)


def _of_document(text: str) -> list[tuple[str, int]]:
    if len(text) > _MOST_DOCUMENT_CHARACTERS:
        raise ValueError(f"it has other lines than one for each piece, and more than {_MOST_DOCUMENT_CHARACTERS} bytes")
    document = _parsed(text.encode(), _TextLoader)
    if not isinstance(document, dict):
        raise ValueError(f"it holds {text[:60]!r}, expected pieces and ids")
    for piece, index in document.items():
        if not isinstance(index, str) or not index.isascii() or not index.isdigit() or len(index) > _MOST_DIGITS:
            raise ValueError(f"the id of {piece[:40]!r} is {shown(index)}, expected a number")
    return [(piece, int(index)) for piece, index in document.items()]


class _TextLoader(Reader, Scanner, Parser, Composer, SafeConstructor, BaseResolver):
    """Makes trees of lists, maps with distinct keys, and text, even of `no` and `1`, as Marian reads vocabularies."""

    def __init__(self, text: str) -> None:
        Reader.__init__(self, text)
        for base in (Scanner, Parser, Composer, SafeConstructor, BaseResolver):
            base.__init__(self)
        self._depth = 0

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        """Compose the next node, which is no alias, has no kind of its own, and lies not too deep."""
        event = self.peek_event()  # type: ignore[no-untyped-call]
        if isinstance(event, yaml.AliasEvent):
            raise _refused(event, "an alias (*), which is not supported")
        if getattr(event, "tag", None) not in (None, _TEXT, _OTHER):
            raise _refused(event, "a tag (!), which is not supported")
        self._depth += 1
        if self._depth > _MOST_DEPTH:
            raise _refused(event, f"more than {_MOST_DEPTH} lists or maps in each other")
        try:
            return super().compose_node(parent, index)
        finally:
            self._depth -= 1

    def construct_mapping(self, node: yaml.Node, deep: bool = False) -> dict[Hashable, Any]:
        assert isinstance(node, yaml.MappingNode)
        pairs = [(self._key(key), self.construct_object(value, deep=True)) for key, value in node.value]
        made: dict[Hashable, Any] = dict(pairs)
        if len(made) < len(pairs):
            repeated = next(name for name, number in Counter(name for name, _ in pairs).items() if number > 1)
            raise ValueError(f"it has {repeated[:40]!r} twice")
        return made

    def _key(self, node: yaml.Node) -> str:
        if not isinstance(node, yaml.ScalarNode):
            raise _refused(node, "a list or map in place of a name")
        return str(node.value)


class _SettingsLoader(_TextLoader):
    """Makes numbers, truth values and nothing of what looks like these and has no quotes, too."""


for _kind, _pattern in _KINDS.items():
    _SettingsLoader.add_implicit_resolver(f"tag:yaml.org,2002:{_kind}", re.compile(rf"(?:{_pattern})\Z"), None)


def _refused(place: yaml.Event | yaml.Node, what: str) -> ValueError:
    line = "" if place.start_mark is None else f"line {place.start_mark.line + 1}: "
    return ValueError(f"{line}{what}")


def _parsed(text: bytes, loader: type[_TextLoader]) -> Any:
    try:
        return loader(text.decode()).get_single_data()
    except (ArithmeticError, ValueError, RecursionError, yaml.YAMLError) as error:
        raise ValueError(f"it is not supported YAML: {' '.join(str(error).split())[:200]}") from error
