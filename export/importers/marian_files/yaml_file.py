"""Reads Marian's YAML: settings, and vocabularies, whose pieces are text whatever they look like."""

import re
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import yaml

from service.text.vocabulary import parse_vocabulary

_MOST_SETTINGS_BYTES = 2**20
# A line that needs no YAML: its piece has nothing that is quoted, or begins something else. Most lines are such.
_PLAIN = re.compile(r"([^\s\-?:,\[\]{}#&*!|>'\"%@`~][^:#\s]*): ([0-9]+)")
_MOST_DIGITS = 9
_DOCUMENT = ("", "---", "...")  # lines that hold no piece


def parse_settings(text: bytes) -> Mapping[str, Any]:
    """Return settings, which end with NULs in archives of some versions.

    Raises:
        ValueError: it is no YAML, or holds no settings.
    """
    if len(text) > _MOST_SETTINGS_BYTES:
        raise ValueError(f"it has more than {_MOST_SETTINGS_BYTES} bytes")
    settings = _parsed(text.rstrip(b"\0"), yaml.safe_load)
    if not isinstance(settings, dict):
        raise ValueError("it holds no settings")
    return settings


def parse_pieces(name: str, text: bytes) -> dict[str, int]:
    """Return pieces and ids of a vocabulary that is no SentencePiece model: by its name YAML, JSON, or a list.

    YAML has a line for each piece. A list's pieces are numbered from 0.

    Raises:
        ValueError: it is anything else, or has a piece or an id twice.
    """
    if name.endswith(".json"):
        return parse_vocabulary(text)
    try:
        lines = text.decode().split("\n")
    except UnicodeDecodeError as error:
        raise ValueError(f"it is no text in UTF-8: {error}") from error
    is_yaml = name.endswith((".yml", ".yaml"))
    entries = _entries(lines) if is_yaml else [(piece, index) for index, piece in enumerate(lines) if piece]
    vocabulary = dict(entries)
    if len(vocabulary) < len(entries):
        repeated = next(piece for piece, number in Counter(piece for piece, _ in entries).items() if number > 1)
        raise ValueError(f"{repeated[:40]!r} stands in it twice")
    if not vocabulary:
        raise ValueError("it holds no pieces")
    if len(set(vocabulary.values())) < len(vocabulary):
        raise ValueError("two of its pieces have the same id")
    return vocabulary


def _entries(lines: list[str]) -> list[tuple[str, int]]:
    """Return what each line has; YAML that has more lines than that takes seconds, and is read as a whole."""
    try:
        return [entry for line in lines for entry in _of_line(line)]
    except ValueError:
        return _of_document("\n".join(lines))


def _of_line(line: str) -> list[tuple[str, int]]:
    if plain := _PLAIN.fullmatch(line):
        return [(plain[1], int(plain[2]))]
    return [] if line.rstrip() in _DOCUMENT else _of_document(line)


def _of_document(text: str) -> list[tuple[str, int]]:
    document = _parsed(text.encode(), _as_text)
    if not isinstance(document, dict):
        raise ValueError(f"it holds {text[:60]!r}, expected pieces and ids")
    for piece, index in document.items():
        if not isinstance(index, str) or not index.isascii() or not index.isdigit() or len(index) > _MOST_DIGITS:
            raise ValueError(f"the id of {str(piece)[:40]!r} is {str(index)[:40]!r}, expected a number")
    return [(str(piece), int(index)) for piece, index in document.items()]


def _as_text(document: str) -> Any:
    """Return a document whose scalars are all text, even `no` and `1`, as Marian reads it."""
    return yaml.load(document, yaml.BaseLoader)  # noqa: S506  # it makes nothing but text, lists and maps


def _parsed(text: bytes, parse: Callable[[str], Any]) -> Any:
    try:
        return parse(text.decode())
    except (ValueError, RecursionError, yaml.YAMLError) as error:
        raise ValueError(f"it is no YAML: {' '.join(str(error).split())[:200]}") from error
