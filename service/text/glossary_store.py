"""Glossaries that callers create, change and remove: files in the server's folder of glossaries (`glossary_files`).

The other files there are the operator's: they can be read here, but not changed.

Several processes may serve the same folder, so what is there is looked up on each call, and changes exclude each other.
All methods block.
"""

import fcntl
import os
import re
import secrets
import threading
import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from service.domain.errors import NotFound, NotPossible, Public
from service.text.glossary import Glossaries, Glossary, Head
from service.text.glossary_files import Dictionary, check_share, contents_of, path_of, write
from service.text.glossary_folder import GlossaryFolder
from service.text.languages import folded

_NAMESPACE = uuid.UUID("a6f54bbf-0d4b-5a51-9f62-1f0f1d1f7c7e")  # of the ids, which follow from it and from names
_NOT_IN_NAMES = re.compile("[^A-Za-z0-9_-]+")
_MAX_NAME = 48  # characters, to which a random end may be added


@dataclass(frozen=True, slots=True)
class StoredGlossary:
    """The dictionaries of one name; `title` is what its caller called it."""

    id: str
    name: str
    title: str
    created: datetime
    dictionaries: tuple[Glossary, ...]
    is_operators: bool = False

    def dictionary(self, source_language_code: str, target_language_code: str) -> Glossary | None:
        """Return the dictionary of exactly these languages."""
        requested = folded(source_language_code), folded(target_language_code)
        return next((each for each in self.dictionaries if each.key[1:] == requested), None)


class GlossaryStore:
    """The glossaries of a server, as callers manage them.

    `key_name` is that of the caller's API key, or empty: callers see the operator's and those of their own key.
    """

    def __init__(self, glossaries: Glossaries, *, takes_changes: bool) -> None:
        """Manage the files of these glossaries, if they are those of a folder and callers may change it."""
        self._glossaries = glossaries
        self._takes_changes = takes_changes
        self._folder = glossaries if isinstance(glossaries, GlossaryFolder) else None
        self._lock = threading.Lock()

    def all(self, key_name: str) -> list[StoredGlossary]:
        """Return all glossaries that a caller may use, by name."""
        self._glossaries.refresh()
        held = self._glossaries.of(key_name)
        return [self._stored(name, held) for name in dict.fromkeys(each.name for each in held)]

    def find(self, glossary_id: str, key_name: str) -> StoredGlossary:
        """Return the glossary with this id."""
        name = self.name_of(glossary_id, key_name)
        return self._stored(name, self._glossaries.of(key_name))

    def name_of(self, glossary_id: str, key_name: str) -> str:
        """Return the name, as translations use it, of the glossary with this id."""
        self._glossaries.refresh()
        requested = glossary_id.lower()
        for name in dict.fromkeys(each.name for each in self._glossaries.of(key_name)):
            if id_of(name) == requested:
                return name
        raise NotFound("there is no glossary {id}", "glossary", glossary_id, id=glossary_id)

    def create(self, title: str, dictionaries: Sequence[Dictionary], key_name: str) -> StoredGlossary:
        """Create a glossary, whose dictionaries are of different languages."""
        with self._changing() as folder:
            name = _free_name(folder, title)
            self._write(folder, name, Head(title, datetime.now(UTC), key_name), dictionaries)
            return self._stored(name, folder.of(key_name))

    def rename(self, glossary_id: str, title: str, key_name: str) -> None:
        """Give a glossary another title; its id and its name stay."""
        with self._changing() as folder:
            glossary = self._own(glossary_id, key_name)
            dictionaries = [Dictionary(*each.codes, each.terms) for each in glossary.dictionaries]
            self._write(folder, glossary.name, Head(title, glossary.created, key_name), dictionaries)

    def put(self, glossary_id: str, dictionary: Dictionary, key_name: str, *, merges: bool = False) -> None:
        """Replace a glossary's dictionary for two languages, or add one.

        If it `merges`, terms that the new dictionary lacks stay.
        """
        with self._changing() as folder:
            glossary = self._own(glossary_id, key_name)
            codes = dictionary.source_language_code, dictionary.target_language_code
            earlier = glossary.dictionary(*codes)
            if merges and earlier is not None:
                new = {each.source.lower() for each in dictionary.terms}
                kept = (each for each in earlier.terms if each.source.lower() not in new)
                dictionary = Dictionary(*codes, (*kept, *dictionary.terms))
            self._write(folder, glossary.name, Head(glossary.title, glossary.created, key_name), [dictionary])

    def remove(self, glossary_id: str, key_name: str) -> None:
        """Remove a glossary."""
        with self._changing() as folder:
            glossary = self._own(glossary_id, key_name)
            for each in glossary.dictionaries:
                path_of(folder.path, glossary.name, *each.codes).unlink(missing_ok=True)
            folder.refresh()

    def remove_dictionary(self, glossary_id: str, source: str, target: str, key_name: str) -> None:
        """Remove a glossary's dictionary for two languages; a glossary without any ceases to exist."""
        with self._changing() as folder:
            glossary = self._own(glossary_id, key_name)
            found = found_dictionary(glossary, source, target)
            path_of(folder.path, glossary.name, *found.codes).unlink(missing_ok=True)
            folder.refresh()

    def _write(self, folder: GlossaryFolder, name: str, head: Head, dictionaries: Sequence[Dictionary]) -> None:
        """Write all files of these dictionaries, or none."""
        files = [(path_of(folder.path, name, *each.codes), contents_of(head, each)) for each in dictionaries]
        check_share(folder.callers_files, files, head.key_name)
        there = {path for path, _ in files if path.exists()}
        try:
            for path, contents in files:
                write(path, contents)
        except BaseException:
            for path, _ in files:
                if path not in there:
                    path.unlink(missing_ok=True)
            raise
        finally:
            folder.refresh()

    @contextmanager
    def _changing(self) -> Iterator[GlossaryFolder]:
        """Keep others, in this and in other processes, from changing the folder's files in the `with` block."""
        if not self._takes_changes:
            raise NotPossible(
                "callers can't change this server's glossaries", advice="ask its operator to set caller_glossaries"
            )
        if self._folder is None:
            raise NotPossible(
                "this server has no folder of glossaries", advice="start it with --glossaries and a writable folder"
            )
        folder = self._folder
        try:
            with self._lock:
                descriptor = os.open(folder.path, os.O_RDONLY)
                try:
                    fcntl.flock(descriptor, fcntl.LOCK_EX)
                    folder.refresh()
                    yield folder
                finally:
                    os.close(descriptor)
        except OSError as error:
            raise NotPossible(
                "glossaries can't be changed on this server: {reason}",
                reason=Public(error.strerror or type(error).__name__),
                advice="its folder of glossaries must be writable",
            ) from error

    def _own(self, glossary_id: str, key_name: str) -> StoredGlossary:
        glossary = self.find(glossary_id, key_name)
        if glossary.is_operators:
            raise NotPossible(
                "glossary {name} is a file of the server's operator, and can't be changed here",
                name=Public(glossary.name),
            )
        return glossary

    def _stored(self, name: str, held: Iterable[Glossary]) -> StoredGlossary:
        dictionaries = tuple(each for each in held if each.name == name)
        if not dictionaries or self._folder is None:
            raise NotFound("there is no glossary {name}", "glossary", name, name=name)
        heads = [each.head for each in dictionaries]
        first = heads[0]
        if first is None or None in heads:
            created = datetime.fromtimestamp(min(_seconds(self._folder.path, dictionaries), default=0.0), UTC)
            return StoredGlossary(id_of(name), name, name, created, dictionaries, is_operators=True)
        return StoredGlossary(id_of(name), name, first.title, first.created, dictionaries)


def _seconds(folder: Path, dictionaries: Iterable[Glossary]) -> Iterator[float]:
    """Yield when the operator's files were changed."""
    for each in dictionaries:
        path = path_of(folder, each.name, *each.codes)
        with suppress(OSError):
            yield (path if path.exists() else path.with_suffix(".csv")).stat().st_mtime


def _free_name(folder: GlossaryFolder, title: str) -> str:
    """Return a name for a new glossary: its title, as far as names can be like it."""
    name = _NOT_IN_NAMES.sub("-", title).strip("-_")[:_MAX_NAME] or "glossary"
    begins = f"{name.lower()}."
    is_free = name.lower() not in {each.lower() for each in folder.names} and not any(
        each.name.lower().startswith(begins) for each in folder.path.iterdir()
    )
    return name if is_free else f"{name}-{secrets.token_hex(4)}"


def id_of(name: str) -> str:
    """Return the id of the glossary with this name; the same on every server."""
    return str(uuid.uuid5(_NAMESPACE, name))


def found_dictionary(glossary: StoredGlossary, source: str, target: str) -> Glossary:
    """Return a glossary's dictionary for exactly these languages."""
    found = glossary.dictionary(source, target)
    if found is None:
        raise NotFound(
            "glossary {id} has no dictionary from {source} into {target}",
            "glossary",
            glossary.id,
            id=Public(glossary.id),
            source=source,
            target=target,
        )
    return found
