"""Texts of 1 to 30 words in twelve languages, written for these tests, and what becomes of each without a source.

The columns `en`, `de` and `hi` of the table are targets, and the shipped models are served (`SOURCES`). A text is
`translated`, `unchanged`, or refused as one in the language that is named. Texts of up to three words in a language
that is not served may be any of these.
"""

import csv
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

SOURCES: Mapping[str, tuple[str, ...]] = MappingProxyType({"en": ("de",), "de": ("en",), "hi": ("de", "en")})

_TABLE = Path(__file__).with_suffix(".tsv")


class Row(NamedTuple):
    """A text in `language`, and what becomes of it on the way into `target`."""

    language: str
    target: str
    outcome: str
    text: str


def rows() -> Iterator[Row]:
    """Yield each text with each target."""
    for row in table(_TABLE):
        for target in SOURCES:
            yield Row(row["language"], target, row[target], row["text"])


def table(path: Path) -> Iterator[dict[str, str]]:
    """Yield the rows of a table of texts, by column; no sign in them has a meaning but the tab."""
    with path.open(encoding="utf-8", newline="") as lines:
        yield from csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)
