"""Glossaries: files of terms, and a folder of such files."""

import csv
import logging
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from service.domain.translation import Term
from service.text.languages import folded, language_of
from service.text.terms import TermIndex

_log = logging.getLogger(__name__)

_CODE = "[A-Za-z]{2,8}(?:_[A-Za-z0-9]{1,8})*"
_FILE_NAME = re.compile(rf"([A-Za-z0-9][A-Za-z0-9_.-]{{0,63}})\.({_CODE})-({_CODE})\.(tsv|csv)")
_MAX_TERM_LENGTH = 200
_MAX_SHOWN = 20


class GlossaryError(ValueError):
    """A glossary's file can't be used; one line that says which file, which of its lines, and why."""


@dataclass(frozen=True, slots=True)
class Glossary:
    """Terms from one language to another; `index` is what `find_terms` takes."""

    name: str
    source_language_code: str
    target_language_code: str
    terms: tuple[Term, ...]
    index: TermIndex = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "index", TermIndex(self.terms))


def read_glossary(path: Path) -> Glossary:
    """Read a file of terms: `<name>.<source>-<target>.tsv`, such as `products.en-de.tsv`, or the same with `.csv`.

    Codes in file names hold `_` for `-`: `products.en-pt_BR.tsv`. A name has letters, digits, `_`, `-` and dots. The
    text is UTF-8, with or without a byte order mark. A line has the source term, the target term and, where upper and
    lower case matter, the word `case`, apart by tabs (`.tsv`: no quoting) or commas (`.csv`: fields may be in quotation
    marks). A target that is empty or left out means that the source term is not translated. Empty lines and lines that
    begin with `#` are skipped, white space around terms is left out. A term has at most 200 characters.

    Raises:
        GlossaryError: the file can't be read, its name does not tell name and languages, or lines are bad: all of these
            are listed.
    """
    name = _FILE_NAME.fullmatch(path.name)
    if name is None:
        raise GlossaryError(f"{path}: the name must be <name>.<source>-<target>.tsv or .csv, as products.en-pt_BR.tsv.")
    if path.exists() and not path.is_file():  # a pipe would be waited for, a device read for good
        raise GlossaryError(f"{path} is no file; expected one with terms.")
    try:
        lines = path.read_bytes().decode("utf-8-sig").split("\n")
    except UnicodeDecodeError as error:
        bad_line = error.object[: error.start].count(b"\n") + 1
        raise GlossaryError(f"{path}: line {bad_line} is not UTF-8; save the file as UTF-8.") from error
    except OSError as error:
        raise GlossaryError(f"{path} can't be read: {error.strerror}.") from error
    terms: dict[tuple[str, bool], tuple[int, Term]] = {}
    problems = []
    for number, line in enumerate(lines, start=1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        try:
            term = _parse(line.split("\t") if path.suffix == ".tsv" else _comma_separated(line))
        except ValueError as error:
            problems.append(f"line {number} {error}")
            continue
        key = (term.source if term.is_case_sensitive else term.source.lower(), term.is_case_sensitive)
        first, earlier = terms.setdefault(key, (number, term))
        if earlier.target != term.target:
            problems.append(f"line {number} gives {term.source!r:.60} another target than line {first}")
    if problems:
        more = f"; and {len(problems) - _MAX_SHOWN} more" if len(problems) > _MAX_SHOWN else ""
        raise GlossaryError(f"{path}: {'; '.join(problems[:_MAX_SHOWN])}{more}.")
    source, target = (code.replace("_", "-") for code in name.group(2, 3))
    return Glossary(name[1], source, target, tuple(term for _, term in terms.values()))


def _comma_separated(line: str) -> Sequence[str]:
    try:
        (fields,) = csv.reader([line.rstrip()], strict=True)
    except csv.Error as error:
        raise ValueError(f"is no CSV: {error}") from error
    return fields


def _parse(fields: Sequence[str]) -> Term:
    if len(fields) > 3:
        raise ValueError(f"has {len(fields)} columns; allowed are source, target and 'case'")
    source, target, case = (field.strip() for field in (*fields, "", "")[:3])
    if not source:
        raise ValueError("has no source term")
    if max(len(source), len(target)) > _MAX_TERM_LENGTH:
        raise ValueError(f"has a term of more than {_MAX_TERM_LENGTH} characters")
    if case not in ("", "case"):
        raise ValueError(f"has {case!r:.40} in its third column; allowed is 'case' or nothing")
    return Term(source, target or None, is_case_sensitive=case == "case")


class Glossaries(Protocol):
    """What a server holds."""

    @property
    def glossaries(self) -> Sequence[Glossary]:
        """All of them, by name and languages."""

    def find(self, name: str, source_language_code: str, target_language_code: str) -> Glossary | None:
        """The glossary of a name for a pair of languages."""

    def refresh(self) -> bool:
        """Look for changes; says whether other terms are served now than before."""


class NoGlossaries:
    """What a server without glossaries holds."""

    glossaries: tuple[Glossary, ...] = ()

    def find(self, name: str, source_language_code: str, target_language_code: str) -> None:
        """None."""

    def refresh(self) -> bool:
        """Nothing changes."""
        return False


class GlossaryFolder:
    """The glossaries of a folder's files, kept up to date. Safe to read while another thread refreshes it."""

    def __init__(self, path: Path) -> None:
        """Load every `.tsv` and `.csv` file of the folder; those that are bad are logged and left out.

        Raises:
            GlossaryError: there is no such folder.
        """
        if not path.is_dir():
            raise GlossaryError(f"{path} is no folder; expected one with glossaries such as products.en-de.tsv.")
        self._path = path
        self._stamps: dict[Path, tuple[int, int]] = {}
        self._files: dict[Path, Glossary] = {}
        self._served: dict[tuple[str, str, str], Glossary] = {}
        self.refresh()

    @property
    def glossaries(self) -> tuple[Glossary, ...]:
        """What is served, by name and languages."""
        served = self._served
        return tuple(served[key] for key in sorted(served))

    def find(self, name: str, source_language_code: str, target_language_code: str) -> Glossary | None:
        """The glossary of a name for a pair of codes, else the first of that name for the same languages."""
        exact = self._served.get((name, folded(source_language_code), folded(target_language_code)))
        languages = language_of(source_language_code), language_of(target_language_code)
        alike = (each for each in self.glossaries if each.name == name and _languages(each) == languages)
        return exact or next(alike, None)

    def refresh(self) -> bool:
        """Read the files whose time or size has changed; says whether other terms are served now than before.

        A file that has become bad is logged once, and what it held before stays. A file that is gone is not served.
        """
        before = dict(self._files)
        try:
            paths = sorted(path for path in self._path.iterdir() if path.suffix in (".tsv", ".csv"))
        except OSError as error:
            _log.warning("%s can't be read: %s. Its glossaries stay as they are.", self._path, error.strerror)
            return False
        for path in self._stamps.keys() - set(paths):
            del self._stamps[path]
            self._files.pop(path, None)
        for path in paths:
            self._read(path)
        self._served = {_key(glossary): glossary for glossary in self._files.values()}
        return self._files != before

    def _read(self, path: Path) -> None:
        try:
            status = path.stat()
        except OSError:
            return  # gone since it was listed: the next time it is not listed
        stamp = (status.st_mtime_ns, status.st_size)
        if self._stamps.get(path) == stamp:
            return
        self._stamps[path] = stamp
        try:
            glossary = read_glossary(path)
            _check_alone(path, glossary, self._files.items())
        except GlossaryError as error:
            kept = " What it held before stays." if path in self._files else ""
            _log.warning("Glossary left out: %s%s", error, kept)
        else:
            self._files[path] = glossary


def _check_alone(path: Path, glossary: Glossary, others: Iterable[tuple[Path, Glossary]]) -> None:
    for other_path, other in others:
        if other_path != path and _key(other) == _key(glossary):
            raise GlossaryError(f"{path} has the same name and languages as {other_path.name}; rename one of them.")


def _languages(glossary: Glossary) -> tuple[str, str]:
    return language_of(glossary.source_language_code), language_of(glossary.target_language_code)


def _key(glossary: Glossary) -> tuple[str, str, str]:
    return glossary.name, folded(glossary.source_language_code), folded(glossary.target_language_code)
