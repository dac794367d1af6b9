"""The glossaries of a folder's files."""

import logging
from collections.abc import Iterable
from pathlib import Path

from service.text.glossary import Glossaries, Glossary, GlossaryError, read_glossary
from service.text.languages import folded, language_of

_log = logging.getLogger(__name__)


class GlossaryFolder(Glossaries):
    """The glossaries of a folder's files, kept up to date. Safe to read while another thread refreshes it."""

    def __init__(self, path: Path) -> None:
        """Load every `.tsv` and `.csv` file of the folder; invalid ones are logged and skipped."""
        if not path.is_dir():
            raise GlossaryError(f"{path} is not a folder; expected one with glossaries such as products.en-de.tsv.")
        self.path = path
        self._stamps: dict[Path, tuple[int, int, int]] = {}
        self._files: dict[Path, Glossary] = {}
        self._served: dict[tuple[str, str, str], Glossary] = {}  # by name and languages, in their order
        self.refresh()

    def all(self) -> tuple[Glossary, ...]:
        return tuple(self._served.values())

    def find(self, name: str, source_language_code: str, target_language_code: str) -> Glossary | None:
        """Return the glossary of this name for a pair of codes, else the first of that name for the same languages."""
        exact = self._served.get((name, folded(source_language_code), folded(target_language_code)))
        if exact is not None:
            return exact
        languages = language_of(source_language_code), language_of(target_language_code)
        alike = (each for each in self.all() if each.name == name and tuple(map(language_of, each.codes)) == languages)
        return next(alike, None)

    def refresh(self) -> bool:
        """Read the files that were changed or replaced; return whether the terms served have changed.

        A file that has become invalid is logged once, and its previous terms stay. A file that was removed is not
        served. Not for several threads at a time.
        """
        before = dict(self._files)
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
