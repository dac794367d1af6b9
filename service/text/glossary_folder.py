"""The glossaries of a folder's files."""

import logging
import threading
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from service.text.glossary import Glossaries, Glossary, GlossaryError, read_glossary
from service.text.languages import folded, language_of

_log = logging.getLogger(__name__)

_CERTAIN_NS = 100_000_000  # file systems may give two changes within some milliseconds the same time


@dataclass(frozen=True, slots=True)
class CallersFile:
    """A file that a caller has created."""

    path: Path
    key_name: str
    num_bytes: int


class GlossaryFolder(Glossaries):
    """The glossaries of a folder's files, kept up to date. Safe to read while another thread refreshes it."""

    def __init__(self, path: Path, *, is_changed_by_callers: bool = False) -> None:
        """Load every `.tsv` and `.csv` file of the folder; invalid ones are logged and skipped.

        What callers change, by `GlossaryStore` here or in another process, has an effect on the next call;
        what operators change, once they ask for it.
        """
        if not path.is_dir():
            raise GlossaryError(f"{path} is not a folder; expected one with glossaries such as products.en-de.tsv.")
        self.path = path
        self._is_changed_by_callers = is_changed_by_callers
        self._folder_ns: int | None = None  # when files were last added, replaced or removed; `None` if uncertain
        self._refreshing = threading.Lock()
        self._stamps: dict[Path, tuple[int, int, int]] = {}
        self._files: dict[Path, Glossary] = {}
        self._served: dict[tuple[str, str, str], Glossary] = {}  # by name and languages, in their order
        self.refresh()

    @property
    def names(self) -> set[str]:
        return {name for name, *_ in self._served}

    @property
    def callers_files(self) -> Iterator[CallersFile]:
        for path, glossary in self._files.items():
            if glossary.head is not None:
                yield CallersFile(path, glossary.head.key_name, self._stamps[path][1])

    def of(self, key_name: str) -> tuple[Glossary, ...]:
        return tuple(each for each in self._served.values() if each.is_for(key_name))

    def find(self, name: str, source_language_code: str, target_language_code: str, key_name: str) -> Glossary | None:
        """Return the glossary of this name for a pair of codes, else the first of that name for the same languages."""
        exact = self._served.get((name, folded(source_language_code), folded(target_language_code)))
        if exact is not None and exact.is_for(key_name):
            return exact
        languages = language_of(source_language_code), language_of(target_language_code)
        alike = (
            each for each in self.of(key_name) if each.name == name and tuple(map(language_of, each.codes)) == languages
        )
        return next(alike, None)

    def may_have_changed(self) -> bool:
        """See `Glossaries.may_have_changed`. This is quick: it looks at the folder only."""
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
        self._served = dict(sorted(((each.key, each) for each in self._files.values()), key=lambda pair: pair[0]))
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
