"""Reads Marian's YAML: settings, and vocabularies, whose pieces are text whatever they look like."""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import yaml

from service.text.vocabulary import parse_vocabulary

_MOST_SETTINGS_BYTES = 2**20
# A line that needs no YAML: its piece has nothing that is quoted, or begins something else. Most lines are such.
_PLAIN = re.compile(r"([^\s\-?:,\[\]{}#&*!|>'\"%@`~][^:#\s]*): ([0-9]+)")
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
    is_yaml = name.endswith((".yml", ".yaml"))
    try:
        lines = text.decode().split("\n")
    except UnicodeDecodeError as error:
        raise ValueError(f"it is no text in UTF-8: {error}") from error
    vocabulary: dict[str, int] = {}
    entries = _entries(lines) if is_yaml else ((piece, index) for index, piece in enumerate(lines) if piece)
    for piece, index in entries:
        if piece in vocabulary:
            raise ValueError(f"{piece[:40]!r} stands in it twice")
        vocabulary[piece] = index
    if not vocabulary:
        raise ValueError("it holds no pieces")
    if len(set(vocabulary.values())) < len(vocabulary):
        raise ValueError("two of its pieces have the same id")
    return vocabulary


def _entries(lines: list[str]) -> Iterator[tuple[str, int]]:
    for line in lines:
        if plain := _PLAIN.fullmatch(line):
            yield plain[1], int(plain[2])
        elif line.rstrip() not in _DOCUMENT:
            entry = _parsed(line.encode(), _as_text)
            match list(entry.items()) if isinstance(entry, dict) else []:
                case [(str(piece), str(index))] if index.isascii() and index.isdigit() and len(index) < 10:
                    yield piece, int(index)
                case _:
                    raise ValueError(f"it has the line {line[:60]!r}, expected a piece and its id")


def _as_text(document: str) -> Any:
    """Return a document whose scalars are all text, even `no` and `1`, as Marian reads it."""
    return yaml.load(document, yaml.BaseLoader)  # noqa: S506  # it makes nothing but text, lists and maps


def _parsed(text: bytes, parse: Callable[[str], Any]) -> Any:
    try:
        return parse(text.decode())
    except (ValueError, RecursionError, yaml.YAMLError) as error:
        raise ValueError(f"it is no YAML: {' '.join(str(error).split())[:200]}") from error
