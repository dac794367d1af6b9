"""Documents that callers fetch later, in files that several processes share: whichever is asked finds them.

Each is one file, which only this user may read: a byte that says whether it was fetched, a line of JSON, and the
translation. It is written beside its place and renamed, so whoever reads it sees all of it. The process that translates
a document holds a lock on its file; one that is neither translated nor locked has lost its process.
"""

import asyncio
import fcntl
import json
import os
import re
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from service.domain.errors import ServiceError, Unavailable
from service.faces.http.documents.failures import failure_from, failure_to_json
from service.faces.http.documents.kept import KEPT_SECONDS, KeptDocument, has_room, no_room, not_kept
from service.faces.http.documents.translation import TranslatedDocument

_ID = re.compile("[0-9A-F]{32}")
_NEW, _FETCHED = b"-", b"+"
_LOCK = "lock"
_PART = ".part"
_LOOK_SECONDS = 60.0  # how often calls look for those whose time is over


@dataclass(frozen=True, slots=True)
class _Read:
    """What a file says; `about` are the fields of `TranslatedDocument` but the data, empty until there is one."""

    kept: KeptDocument
    about: dict[str, Any]
    was_fetched: bool


class SharedDocuments:
    """Keeps documents in a folder; see `DocumentKeeper`, whose limits are those of all its processes together."""

    def __init__(self, folder: Path, clock: Callable[[], float] = time.monotonic) -> None:
        """Use a folder that is for this user only, and a clock that is the same in all processes."""
        self._folder = folder
        self._clock = clock
        self._held: dict[str, int] = {}  # descriptors of files that are locked
        self._looked_seconds = clock()

    async def add(self, owner: str, num_bytes: int, most_seconds: float) -> KeptDocument:
        """See `DocumentKeeper.add`."""
        return await asyncio.to_thread(self._add, owner, num_bytes, most_seconds)

    async def done(self, kept: KeptDocument, translation: TranslatedDocument) -> None:
        """See `DocumentKeeper.done`."""
        kept.translated(translation, self._clock())
        about = {
            "name": translation.name,
            "content_type": translation.content_type,
            "notes": list(translation.notes),
            "num_characters": translation.num_characters,
        }
        await asyncio.to_thread(self._settle, kept, about, translation.data)

    async def failed(self, kept: KeptDocument, failure: ServiceError) -> None:
        """See `DocumentKeeper.failed`."""
        kept.failed(failure, self._clock())
        await asyncio.to_thread(self._settle, kept, {}, b"")

    async def find(self, document_id: str, owner: str = "") -> KeptDocument:
        """See `DocumentKeeper.find`."""
        if not _ID.fullmatch(document_id):
            raise not_kept(document_id)
        return await asyncio.to_thread(self._find, document_id, owner)

    async def fetch(self, kept: KeptDocument) -> TranslatedDocument:
        """See `DocumentKeeper.fetch`."""
        return await asyncio.to_thread(self._fetch, kept)

    async def take(self, kept: KeptDocument) -> TranslatedDocument:
        """See `DocumentKeeper.take`."""
        return await asyncio.to_thread(self._take, kept)

    async def forget(self, kept: KeptDocument) -> None:
        """See `DocumentKeeper.forget`."""
        await asyncio.to_thread(self._forget, kept)

    def _add(self, owner: str, num_bytes: int, most_seconds: float) -> KeptDocument:
        with self._alone():
            kept_ones = sorted(self._all(), key=lambda each: each.kept.until_seconds)
            number, total = len(kept_ones), sum(each.kept.num_bytes for each in kept_ones)
            for each in kept_ones:
                if has_room(number, total + num_bytes):
                    break
                if each.was_fetched:
                    self._path(each.kept.id).unlink(missing_ok=True)
                    number, total = number - 1, total - each.kept.num_bytes
            if not has_room(number, total + num_bytes):
                raise no_room(number, total)
            kept = KeptDocument(owner, num_bytes, self._clock() + most_seconds + KEPT_SECONDS)
            self._held[kept.id] = self._write(kept, {}, b"")
            return kept

    def _settle(self, kept: KeptDocument, about: dict[str, Any], data: bytes) -> None:
        os.close(self._write(kept, about, data))
        self._release(kept)

    def _find(self, document_id: str, owner: str) -> KeptDocument:
        if self._clock() - self._looked_seconds > _LOOK_SECONDS:
            with self._alone():
                self._all()
        found = None
        while found is None:
            with self._opened(document_id) as file:
                found = _read(file)
                if _is_in_work(found.kept) and _locks(file):
                    if not self._is_current(document_id, file):
                        found = None  # what it has become since it was opened is another file
                    else:
                        failure = Unavailable("the process that translated it has ended", advice="send it again")
                        found.kept.failed(failure, self._clock())
                        os.close(self._write(found.kept, {}, b""))
        if found.kept.owner != owner or found.kept.until_seconds <= self._clock():
            raise not_kept(document_id)
        return found.kept

    def _fetch(self, kept: KeptDocument) -> TranslatedDocument:
        with self._opened(kept.id) as file:
            translation = _translation(file)
            os.pwrite(file.fileno(), _FETCHED, 0)
            return translation

    def _take(self, kept: KeptDocument) -> TranslatedDocument:
        with self._opened(kept.id) as file:
            translation = _translation(file)
        try:
            self._path(kept.id).unlink()
        except FileNotFoundError:  # another call was faster
            raise not_kept(kept.id) from None
        return translation

    def _forget(self, kept: KeptDocument) -> None:
        self._path(kept.id).unlink(missing_ok=True)
        self._release(kept)

    def _release(self, kept: KeptDocument) -> None:
        held = self._held.pop(kept.id, None)
        if held is not None:
            os.close(held)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Keep other threads and processes from adding documents during the `with` block."""
        with (self._folder / _LOCK).open("ab") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def _all(self) -> list[_Read]:
        """Return all documents, and remove those whose time is over."""
        self._looked_seconds = now = self._clock()
        found = []
        for path in self._folder.iterdir():
            with suppress(FileNotFoundError):  # fetched in the meantime
                if path.suffix == _PART and time.time() - path.stat().st_mtime > KEPT_SECONDS:
                    path.unlink()  # of a process that was killed
                if not _ID.fullmatch(path.name):
                    continue
                with path.open("rb") as file:
                    read = _read(file)
                if read.kept.until_seconds <= now:
                    path.unlink()
                else:
                    found.append(read)
        return found

    @contextmanager
    def _opened(self, document_id: str) -> Iterator[BinaryIO]:
        try:
            file = self._path(document_id).open("r+b")
        except FileNotFoundError:
            raise not_kept(document_id) from None
        with file:
            yield file

    def _is_current(self, document_id: str, file: BinaryIO) -> bool:
        try:
            return os.path.samestat(self._path(document_id).stat(), os.fstat(file.fileno()))
        except FileNotFoundError:
            return False

    def _write(self, kept: KeptDocument, about: dict[str, Any], data: bytes) -> int:
        """Put a document's file into its place, locked, and return its descriptor, which the caller closes."""
        line = {
            "owner": kept.owner,
            "num_bytes": kept.num_bytes,
            "until_seconds": kept.until_seconds,
            "id": kept.id,
            "key": kept.key,
            "failure": failure_to_json(kept.failure) if kept.failure else None,
            "about": about,
        }
        descriptor, temporary = tempfile.mkstemp(suffix=_PART, dir=self._folder)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            with os.fdopen(descriptor, "wb", closefd=False) as file:
                file.write(_NEW + json.dumps(line).encode() + b"\n" + data)
            Path(temporary).replace(self._path(kept.id))
        except BaseException:
            os.close(descriptor)
            Path(temporary).unlink(missing_ok=True)
            raise
        return descriptor

    def _path(self, document_id: str) -> Path:
        return self._folder / document_id


def _read(file: BinaryIO) -> _Read:
    """Read all but the translation, which is left to read."""
    was_fetched = file.read(1) == _FETCHED
    line = json.loads(file.readline())
    about, failure = line.pop("about"), line.pop("failure")
    kept = KeptDocument(
        **line,
        num_characters=about.get("num_characters"),
        failure=failure_from(failure) if failure else None,
    )
    return _Read(kept, about, was_fetched)


def _translation(file: BinaryIO) -> TranslatedDocument:
    about = _read(file).about
    return TranslatedDocument(data=file.read(), **about)


def _is_in_work(kept: KeptDocument) -> bool:
    return kept.failure is None and kept.num_characters is None


def _locks(file: BinaryIO) -> bool:
    """Return whether no other process, nor another part of this one, held the lock; now this file does."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
