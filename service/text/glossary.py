"""Glossaries: files of terms, and folders of such files."""

import csv
import logging
import re
import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from service.domain.errors import NotFound, Public, listed
from service.domain.translation import Term
from service.text.languages import folded, language_of
from service.text.terms import TermIndex

_log = logging.getLogger(__name__)

COMMENT = "#"  # begins a line without a term

_CODE = "[A-Za-z]{2,8}(?:_[A-Za-z0-9]{1,8})*"
_FILE_NAME = re.compile(rf"([A-Za-z0-9][A-Za-z0-9_.-]{{0,63}})\.({_CODE})-({_CODE})\.(tsv|csv)")
MAX_TERM_LENGTH = 200
_MAX_SHOWN = 20
_CERTAIN_NS = 100_000_000  # file systems may give two changes within some milliseconds the same time


class GlossaryError(ValueError):
    """A glossary file can't be used; one line with the file, the line in it and the reason."""


@dataclass(frozen=True, slots=True)
class Glossary:
    """Terms from one language to another; `index` is for `find_terms`."""

    name: str
    source_language_code: str
    target_language_code: str
    terms: tuple[Term, ...]
    index: TermIndex = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "index", TermIndex(self.terms))


def read_glossary(path: Path) -> Glossary:
    """Read a file of terms: `<name>.<source>-<target>.tsv`, such as `products.en-de.tsv`, or the same with `.csv`.

    Codes in file names use `_` for `-`: `products.en-pt_BR.tsv`. A name consists of letters, digits, `_`, `-` and dots.
    The text is UTF-8, with or without a byte order mark. A line has the source term, the target term and, if the term
    is case-sensitive, the word `case`, separated by tabs (`.tsv`: no quoting) or commas (`.csv`: fields may be in
    quotation marks). If the target is empty or missing, the source term is not translated. Empty lines and lines that
    begin with `#` are skipped, white space around terms is stripped. A term has at most 200 characters.

    Raises:
        GlossaryError: the file can't be read, its name lacks the name or the languages, or lines are invalid: all of
            these are listed.
    """
    name = _FILE_NAME.fullmatch(path.name)
    if name is None:
        raise GlossaryError(f"{path}: the name must be <name>.<source>-<target>.tsv or .csv, as products.en-pt_BR.tsv.")
    if path.exists() and not path.is_file():  # reading a pipe would block, reading a device would never end
        raise GlossaryError(f"{path} is not a file; expected one with terms.")
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
        if not line.strip() or line.lstrip().startswith(COMMENT):
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
        raise ValueError(f"is not CSV: {error}") from error
    return fields


def _parse(fields: Sequence[str]) -> Term:
    if len(fields) > 3:
        raise ValueError(f"has {len(fields)} columns; allowed are source, target and 'case'")
    source, target, case = (field.strip() for field in (*fields, "", "")[:3])
    if not source:
        raise ValueError("has no source term")
    if max(len(source), len(target)) > MAX_TERM_LENGTH:
        raise ValueError(f"has a term of more than {MAX_TERM_LENGTH} characters")
    if case not in ("", "case"):
        raise ValueError(f"has {case!r:.40} in its third column; allowed is 'case' or nothing")
    return Term(source, target or None, is_case_sensitive=case == "case")


class Glossaries(Protocol):
    """The glossaries of a server."""

    @property
    def glossaries(self) -> Sequence[Glossary]:
        """Return all of them, by name and languages."""

    def find(self, name: str, source_language_code: str, target_language_code: str) -> Glossary | None:
        """Return the glossary with this name for a pair of languages."""

    def may_have_changed(self) -> bool:
        """Return whether callers may have changed the files since `refresh`, in this or another process."""

    def refresh(self) -> bool:
        """Check for changes; return whether the terms served have changed."""


def find_glossary(glossaries: Glossaries, name: str, source_language_code: str, target_language_code: str) -> Glossary:
    """Return the glossary that a call names, for its languages.

    Raises:
        NotFound: there is none; lists those that there are.
    """
    found = glossaries.find(name, source_language_code, target_language_code)
    if found is not None:
        return found
    held = glossaries.glossaries
    there = (f"{each.name} from {each.source_language_code} into {each.target_language_code}" for each in held)
    raise NotFound(
        "there is no glossary {glossary} from {source} into {target}; there are {there}",
        "glossary",
        name,
        glossary=name,
        source=Public(source_language_code),
        target=Public(target_language_code),
        there=Public(listed(there)),
    )


class NoGlossaries:
    """The glossaries of a server that has none."""

    glossaries: tuple[Glossary, ...] = ()

    def find(self, name: str, source_language_code: str, target_language_code: str) -> None:
        """Return `None`."""

    def may_have_changed(self) -> bool:
        """Return `False`."""
        return False

    def refresh(self) -> bool:
        """Return `False`: nothing changes."""
        return False


class GlossaryFolder:
    """The glossaries of a folder's files, kept up to date. Safe to read while another thread refreshes it."""

    def __init__(self, path: Path, *, is_changed_by_callers: bool = False) -> None:
        """Load every `.tsv` and `.csv` file of the folder; invalid ones are logged and skipped.

        What callers change, by `GlossaryStore` here or in another process, has an effect on the next call;
        what operators change, once they ask for it.

        Raises:
            GlossaryError: the folder does not exist.
        """
        if not path.is_dir():
            raise GlossaryError(f"{path} is not a folder; expected one with glossaries such as products.en-de.tsv.")
        self.path = path
        self._is_changed_by_callers = is_changed_by_callers
        self._folder_ns: int | None = None  # when files were last added, replaced or removed; `None` if uncertain
        self._refreshing = threading.Lock()
        self._stamps: dict[Path, tuple[int, int, int]] = {}
        self._files: dict[Path, Glossary] = {}
        self._served: dict[tuple[str, str, str], Glossary] = {}
        self.refresh()

    @property
    def glossaries(self) -> tuple[Glossary, ...]:
        """Return the glossaries served, by name and languages."""
        served = self._served
        return tuple(served[key] for key in sorted(served))

    def find(self, name: str, source_language_code: str, target_language_code: str) -> Glossary | None:
        """Return the glossary of this name for a pair of codes, else the first of that name for the same languages."""
        exact = self._served.get((name, folded(source_language_code), folded(target_language_code)))
        languages = language_of(source_language_code), language_of(target_language_code)
        alike = (each for each in self.glossaries if each.name == name and _languages(each) == languages)
        return exact or next(alike, None)

    def may_have_changed(self) -> bool:
        """See `Glossaries.may_have_changed`. This takes microseconds: it looks at the folder only."""
        return self._is_changed_by_callers and (self._folder_ns is None or self._folder_ns != self._changed_ns())

    def refresh(self) -> bool:
        """Read the files that were changed or replaced; return whether the terms served have changed.

        A file that has become invalid is logged once, and its previous terms stay. A file that was removed is not
        served. May be called by several threads.
        """
        with self._refreshing:
            return self._refresh()

    def _refresh(self) -> bool:
        before = dict(self._files)
        changed_ns = self._changed_ns()  # before they are read: a later change is seen the next time
        self._folder_ns = changed_ns if time.time_ns() - changed_ns > _CERTAIN_NS else None
        try:
            paths = sorted(path for path in self.path.iterdir() if path.suffix in (".tsv", ".csv"))
        except OSError as error:
            _log.warning("%s can't be read: %s. Its glossaries stay as they are.", self.path, error.strerror)
            return False
        for path in self._stamps.keys() - set(paths):
            del self._stamps[path]
            self._files.pop(path, None)
        for path in paths:
            self._read(path)
        self._served = {_key(glossary): glossary for glossary in self._files.values()}
        return self._files != before

    def _changed_ns(self) -> int:
        try:
            return self.path.stat().st_mtime_ns
        except OSError:
            return 0  # `refresh` logs why

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
            _check_alone(path, glossary, self._files.items())
        except GlossaryError as error:
            kept = " Its previous contents stay in use." if path in self._files else ""
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
