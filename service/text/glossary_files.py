"""The files of callers' glossaries: how they are told from the operator's, and written.

Their first line is a comment that begins with `MARK` and says, in JSON, what the caller called the glossary, when it
was created and with which API key. The others are as `glossary.read_glossary` reads them.
"""

import json
import os
import tempfile
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from service.domain.errors import TooMany
from service.domain.translation import Term
from service.text.glossary import COMMENT

MARK = f"{COMMENT} dragoman-glossary "

_MAX_HEAD = 16_384  # characters of the first line
_MAX_BYTES = 16 * 2**20  # of all callers' files: their terms are held in memory, with an index


@dataclass(frozen=True, slots=True)
class Dictionary:
    """Terms from one language to another."""

    source_language_code: str
    target_language_code: str
    terms: tuple[Term, ...]


@dataclass(frozen=True, slots=True)
class Head:
    """The first line of a caller's file."""

    title: str
    created: datetime
    key_name: str

    def line(self) -> str:
        """Return it as it is in the file."""
        about = {"title": self.title, "created": self.created.isoformat(), "key": self.key_name}
        return f"{MARK}{json.dumps(about)}\n"


def head_of(path: Path) -> Head | None:
    """Return the first line of a caller's file; `None` if it is another file, or has gone."""
    try:
        with path.open(encoding="utf-8") as file:
            line = file.readline(_MAX_HEAD)
        if not line.startswith(MARK):
            return None
        about = json.loads(line.removeprefix(MARK))
        return Head(str(about["title"]), datetime.fromisoformat(about["created"]), str(about["key"]))
    except (OSError, ValueError, TypeError, KeyError):
        return None


def path_of(folder: Path, name: str, source: str, target: str) -> Path:
    """Return where the file of a dictionary is, from the code `source` to `target`."""
    return folder / f"{name}.{source.replace('-', '_')}-{target.replace('-', '_')}.tsv"


def write_dictionary(folder: Path, name: str, head: Head, dictionary: Dictionary) -> Path:
    """Write a file at once, and return where it is: whoever reads it sees all of it or what was there before.

    Raises:
        TooMany: callers' files would have more than 16 MiB.
    """
    path = path_of(folder, name, dictionary.source_language_code, dictionary.target_language_code)
    contents = (head.line() + "".join(map(_line, dictionary.terms))).encode("utf-8")
    total = sum(size for other, size in _callers_files(folder) if other != path)
    if total + len(contents) > _MAX_BYTES:
        raise TooMany(
            "the glossaries of callers would have {number} bytes",
            number=total + len(contents),
            allowed=str(_MAX_BYTES),
            advice="delete some",
        )
    descriptor, temporary = tempfile.mkstemp(suffix=".part", prefix=".", dir=folder)
    try:
        with os.fdopen(descriptor, "wb") as file:
            os.fchmod(descriptor, 0o644)
            file.write(contents)
            file.flush()
            os.fsync(descriptor)
        Path(temporary).replace(path)
    except BaseException:
        with suppress(OSError):
            Path(temporary).unlink()
        raise
    return path


def _callers_files(folder: Path) -> Iterable[tuple[Path, int]]:
    for path in folder.iterdir():
        if path.suffix == ".tsv" and head_of(path) is not None:
            with suppress(OSError):
                yield path, path.stat().st_size


def _line(term: Term) -> str:
    case = "\tcase" if term.is_case_sensitive else ""
    return f"{term.source}\t{term.target or ''}{case}\n"
