"""Reads the files that several kinds of tokenizers share, and lists their problems."""

from pathlib import Path

from export.importers import stored_file
from export.importers.parts import read_part
from export.importers.sentencepiece_file import read_facts
from service.text.vocabulary import parse_vocabulary


def check_model(path: Path, problems: list[str]) -> None:
    """Load a SentencePiece model; if it is missing, damaged or truncated, add that to `problems`."""
    read_part(path.name, lambda: read_facts(path), problems)


def read_vocabulary(path: Path, problems: list[str]) -> dict[str, int]:
    """Return the pieces and ids of a `vocab.json`; if it is unusable, an empty map, and add that to `problems`."""
    return read_part(path.name, lambda: parse_vocabulary(stored_file.read(path)), problems) or {}
