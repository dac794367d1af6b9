"""The files of callers' glossaries: where they are, what is in them, and how many a key may have.

The first line is a `Head`, the others are as `glossary.read_glossary` reads them.
"""

import os
import tempfile
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from service.domain.errors import Public, TooMany
from service.domain.translation import Term
from service.text.glossary import Head
from service.text.glossary_folder import CallersFile

# Of all callers' dictionaries, which are files; their terms are held in memory, in up to four times the bytes.
MAX_DICTIONARIES = 4096
MAX_BYTES = 32 * 2**20
_SHARES = 16  # a key has at most 1/n of both; without keys callers are one, and may have all


@dataclass(frozen=True, slots=True)
class Dictionary:
    """Terms from one language to another."""

    source_language_code: str
    target_language_code: str
    terms: Sequence[Term]

    @property
    def codes(self) -> tuple[str, str]:
        return self.source_language_code, self.target_language_code


def path_of(folder: Path, name: str, source: str, target: str) -> Path:
    """Return where the file of a dictionary is, from the code `source` to `target`."""
    return folder / f"{name}.{source.replace('-', '_')}-{target.replace('-', '_')}.tsv"


def contents_of(head: Head, dictionary: Dictionary) -> bytes:
    """Return what is in a dictionary's file."""
    return (head.line() + "".join(map(_line, dictionary.terms))).encode("utf-8")


def check_share(held: Iterable[CallersFile], new: Iterable[tuple[Path, bytes]], key_name: str) -> None:
    """Check that callers together, and one of them, have no more than they may.

    `new` files replace those at their path.
    """
    written = {path: len(contents) for path, contents in new}
    others = [each for each in held if each.path not in written]
    own = [each.num_bytes for each in others if each.key_name == key_name] + list(written.values())
    shares = _SHARES if key_name else 1
    whose = f"of key {key_name}" if key_name else "of callers"
    _check(own, shares, whose, "delete some")
    _check([*(each.num_bytes for each in others), *written.values()], 1, "of all callers", "ask its operator for room")


def write(path: Path, contents: bytes) -> None:
    """Write a file at once: whoever reads it sees all of it or what was there before."""
    descriptor, temporary = tempfile.mkstemp(suffix=".part", prefix=".", dir=path.parent)
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


def _check(sizes: Sequence[int], shares: int, whose: str, advice: str) -> None:
    for number, most, what in (
        (len(sizes), MAX_DICTIONARIES // shares, "dictionaries"),
        (sum(sizes), MAX_BYTES // shares, "bytes"),
    ):
        if number > most:
            raise TooMany(
                "the glossaries {whose} would have {number} {what}",
                whose=Public(whose),
                number=number,
                what=Public(what),
                allowed=str(most),
                advice=advice,
            )


def _line(term: Term) -> str:
    case = "\tcase" if term.is_case_sensitive else ""
    return f"{term.source}\t{term.target or ''}{case}\n"
