"""Glossaries: files of terms, and the folder that they are in."""

import csv
import logging
import os
import re
from array import array
from bisect import insort
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from service.domain.errors import NotFound, Public, listed
from service.domain.grants import EVERYTHING, Grants
from service.domain.translation import Term
from service.text.languages import folded, language_of
from service.text.term_list import TermList
from service.text.terms import TermIndex

_log = logging.getLogger(__name__)

_CODE = "[A-Za-z]{2,8}(?:_[A-Za-z0-9]{1,8})*"
_FILE_NAME = re.compile(rf"([A-Za-z0-9][A-Za-z0-9_.-]{{0,63}})\.({_CODE})-({_CODE})\.(tsv|csv)")
MAX_TERM_LENGTH = 200
_MAX_LISTED = 20
_COMMENT = "#"  # begins a line without a term


class GlossaryError(ValueError):
    """A glossary file can't be used; one line with the file, the line in it and the reason."""


@dataclass(frozen=True, slots=True)
class Glossary:
    """Terms from one language to another; `index` is for `find_terms`. `modified_seconds` is the time of its file."""

    name: str
    source_language_code: str
    target_language_code: str
    terms: Sequence[Term]
    modified_seconds: float = field(default=0.0, compare=False)
    index: TermIndex = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.terms, TermList):
            object.__setattr__(self, "terms", TermList(self.terms))
        object.__setattr__(self, "index", TermIndex(self.terms))

    @property
    def codes(self) -> tuple[str, str]:
        return self.source_language_code, self.target_language_code

    @property
    def key(self) -> tuple[str, str, str]:
        return self.name, folded(self.source_language_code), folded(self.target_language_code)


def read_glossary(path: Path) -> Glossary:
    """Read a file of terms: `<name>.<source>-<target>.tsv`, such as `products.en-de.tsv`, or the same with `.csv`.

    Codes in file names use `_` for `-`: `products.en-pt_BR.tsv`. A name consists of letters, digits, `_`, `-` and dots.
    The text is UTF-8, with or without a byte order mark. A line has the source term, the target term and, if the term
    is case-sensitive, the word `case`, separated by tabs (`.tsv`: no quoting) or commas (`.csv`: fields may be in
    quotation marks). If the target is empty or missing, the source term is not translated. Empty lines and lines that
    begin with `#` are skipped, white space around terms is stripped. A term has at most 200 characters.
    """
    name = _FILE_NAME.fullmatch(path.name)
    if name is None:
        raise GlossaryError(f"{path}: the name must be <name>.<source>-<target>.tsv or .csv, as products.en-pt_BR.tsv.")
    if path.exists() and not path.is_file():  # reading a pipe would block, reading a device would never end
        raise GlossaryError(f"{path} is not a file; expected one with terms.")
    problems = _Problems()
    reading = _Reading(path.suffix == ".tsv", problems)
    try:
        with path.open("rb") as file:
            modified_seconds = os.fstat(file.fileno()).st_mtime
            terms = TermList(reading.terms(file))
    except UnicodeDecodeError as error:
        raise GlossaryError(f"{path}: line {reading.line} is not UTF-8; save the file as UTF-8.") from error
    except OSError as error:
        raise GlossaryError(f"{path} can't be read: {error.strerror}.") from error
    doubles = _doubles(terms, reading.lines, problems)
    if problems:
        raise GlossaryError(f"{path}: {problems}.")
    if doubles:
        terms = TermList(term for number, term in enumerate(terms) if number not in doubles)
    source, target = (code.replace("_", "-") for code in name.group(2, 3))
    return Glossary(name[1], source, target, terms, modified_seconds)


class _Problems:
    """Faults of a file, by line: the first of many, and the number of the others."""

    def __init__(self) -> None:
        self._first: list[tuple[int, str]] = []
        self._number = 0

    def add(self, line: int, problem: object) -> None:
        self._number += 1
        insort(self._first, (line, f"line {line} {problem}"))
        del self._first[_MAX_LISTED:]

    def __bool__(self) -> bool:
        return self._number > 0

    def __str__(self) -> str:
        more = f"; and {self._number - len(self._first)} more" if self._number > len(self._first) else ""
        return "; ".join(problem for _, problem in self._first) + more


class _Reading:
    """The reading of a file, line by line: a list of all lines would take several times the file's bytes."""

    def __init__(self, has_tabs: bool, problems: _Problems) -> None:
        self.line = 0
        self.lines = array("I")  # of the terms
        self._separated = _tab_separated if has_tabs else _comma_separated
        self._problems = problems

    def terms(self, file: Iterable[bytes]) -> Iterator[Term]:
        for number, encoded in enumerate(file, start=1):
            self.line = number
            line = encoded.decode("utf-8-sig" if number == 1 else "utf-8").removesuffix("\n")
            try:
                if not line.strip() or line.lstrip().startswith(_COMMENT):
                    continue
                term = _parse(self._separated(line))
            except ValueError as error:
                self._problems.add(number, error)
            else:
                self.lines.append(number)
                yield term


def _doubles(terms: TermList, lines: Sequence[int], problems: _Problems) -> set[int]:
    """Return the indices of terms that repeat an earlier one; those with another target than it are problems."""
    keys = np.fromiter((hash(_key(term)) for term in terms), np.int64, len(terms))
    order = np.argsort(keys, kind="stable")
    doubles: set[int] = set()
    firsts: dict[tuple[str, bool], int] = {}
    alike = np.flatnonzero(np.diff(keys[order]) == 0)
    for number in sorted({*order[alike].tolist(), *order[alike + 1].tolist()}):
        term = terms[number]
        first = firsts.setdefault(_key(term), number)
        if first != number:
            doubles.add(number)
            if terms[first].target != term.target:
                problem = f"gives {term.source!r:.60} another target than line {lines[first]}"
                problems.add(lines[number], problem)
    return doubles


def _key(term: Term) -> tuple[str, bool]:
    return (term.source if term.is_case_sensitive else term.source.lower(), term.is_case_sensitive)


def _tab_separated(line: str) -> Sequence[str]:
    return line.split("\t")


def _comma_separated(line: str) -> Sequence[str]:
    try:
        (fields,) = csv.reader([line.rstrip()], strict=True)
    except csv.Error as error:
        raise ValueError(f"is not CSV: {error}") from error
    return fields


def _parse(fields: Sequence[str]) -> Term:
    if len(fields) > 3:
        raise ValueError(f"has {len(fields)} columns; allowed: source, target and 'case'")
    source, target, case = (field.strip() for field in (*fields, "", "")[:3])
    if not source:
        raise ValueError("has no source term")
    if max(len(source), len(target)) > MAX_TERM_LENGTH:
        raise ValueError(f"has a term of more than {MAX_TERM_LENGTH} characters")
    if case not in ("", "case"):
        raise ValueError(f"has {case!r:.40} in its third column; allowed: 'case' or nothing")
    return Term(source, target or None, is_case_sensitive=case == "case")


class Glossaries:
    """The glossaries of a folder's files, kept up to date. Safe to read while another thread refreshes it."""

    def __init__(self, folder: Path | None = None) -> None:
        """Load every `.tsv` and `.csv` file of the folder, if there is one; invalid ones are logged and skipped."""
        if folder is not None and not folder.is_dir():
            raise GlossaryError(f"{folder} is not a folder; expected one with glossaries such as products.en-de.tsv.")
        self._folder = folder
        self._stamps: dict[Path, tuple[int, int, int]] = {}
        self._files: dict[Path, Glossary] = {}
        self._served: dict[tuple[str, str, str], Glossary] = {}  # by name and languages, in their order
        self.refresh()

    def all(self, grants: Grants = EVERYTHING) -> tuple[Glossary, ...]:
        return tuple([each for each in self._served.values() if grants.allows_glossary(each.name)])

    def find(self, name: str, source_language_code: str, target_language_code: str) -> Glossary | None:
        """Return the glossary of this name for a pair of codes, else the first of that name for the same languages."""
        exact = self._served.get((name, folded(source_language_code), folded(target_language_code)))
        if exact is not None:
            return exact
        languages = language_of(source_language_code), language_of(target_language_code)
        alike = (each for each in self.all() if each.name == name and tuple(map(language_of, each.codes)) == languages)
        return next(alike, None)

    def get(
        self, name: str, source_language_code: str, target_language_code: str, grants: Grants = EVERYTHING
    ) -> Glossary:
        grants.check_glossary(name)
        found = self.find(name, source_language_code, target_language_code)
        if found is not None:
            return found
        there = (
            f"{each.name} from {each.source_language_code} into {each.target_language_code}"
            for each in self.all(grants)
        )
        raise NotFound(
            "there is no glossary {glossary} from {source} into {target}; there are {there}",
            "glossary",
            name,
            glossary=name,
            source=Public(source_language_code),
            target=Public(target_language_code),
            there=Public(listed(there)),
        )

    def refresh(self) -> bool:
        """Read the files that were changed or replaced; return whether the terms served have changed.

        Invalid files are logged once, and keep their terms; removed ones are not served. Not for several threads at a
        time.
        """
        if self._folder is None:
            return False
        before = dict(self._files)
        try:
            paths = sorted(path for path in self._folder.iterdir() if path.suffix in (".tsv", ".csv"))
        except OSError as error:
            _log.warning("%s can't be read: %s. Its glossaries stay as they are.", self._folder, error.strerror)
            return False
        for path in self._stamps.keys() - set(paths):
            del self._stamps[path]
            self._files.pop(path, None)
        for path in paths:
            self._read(path)
        self._served = dict(sorted(((each.key, each) for each in self._files.values()), key=lambda pair: pair[0]))
        return self._files != before

    def _read(self, path: Path) -> None:
        try:
            status = path.stat()
        except OSError:
            return  # removed since it was listed: it will be missing from the next listing
        stamp = (status.st_mtime_ns, status.st_size, status.st_ino)  # replaced twice within a tick: the inode differs
        if self._stamps.get(path) == stamp:
            return
        self._stamps[path] = stamp
        try:
            glossary = read_glossary(path)
            _check_unique(path, glossary, self._files.items())
        except GlossaryError as error:
            kept = " Its previous contents stay in use." if path in self._files else ""
            _log.warning("Glossary left out: %s%s", error, kept)
        else:
            self._files[path] = glossary


def _check_unique(path: Path, glossary: Glossary, others: Iterable[tuple[Path, Glossary]]) -> None:
    for other_path, other in others:
        if other_path != path and other.key == glossary.key:
            raise GlossaryError(f"{path} has the same name and languages as {other_path.name}; rename one of them.")
