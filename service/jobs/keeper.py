"""The keeper of documents that callers fetch later, in files that several processes share: whichever is asked finds
them.

Each is one file, which only this user may read: a byte that says whether it was fetched, a line of JSON, and the
translation. It is written beside its place and renamed, so whoever reads it sees all of it. The process that translates
a document holds a lock on its file; one that is neither translated nor locked is lost: that process has ended, or the
disk is full.
"""

import asyncio
import fcntl
import json
import logging
import os
import re
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

from service.domain.errors import Public, ServiceError, Unavailable
from service.jobs.failures import failure_from, failure_to_json
from service.jobs.kept import KEPT_SECONDS, KeptDocument, making_room, not_kept
from service.jobs.translation import TranslatedDocument
from service.jobs.turns import current_caller

_LOG = logging.getLogger(__name__)

_ID = re.compile("[0-9A-F]{32}")
_NEW, _FETCHED = b"-", b"+"
_LOCK = "lock"
_PART = ".part"
_LOOK_SECONDS = KEPT_SECONDS / 10  # how often calls look for those whose time is over

T = TypeVar("T")


class DocumentKeeper:
    """Keeps documents in a folder, within the limits of `kept`, which are those of all its processes together.

    All methods belong to the event loop's thread. Each one but `close` raises `Unavailable` if the folder can't be
    used, for example because the disk is full.
    """

    def __init__(self, folder: Callable[[], Path], clock: Callable[[], float] = time.monotonic) -> None:
        """Use a folder that is for this user only, and a clock that is the same in all processes.

        `folder` returns it, always the same, and makes it when it is called first.
        """
        self._folder = folder
        self._clock = clock
        self._held: dict[str, int] = {}  # descriptors of files that are locked
        self._looked_seconds = clock()

    async def add(self, api: str, owner: str, num_bytes: int, most_seconds: float) -> KeptDocument:
        """Return a new entry for a document of the current caller of this size, whose translation takes at most
        `most_seconds`.
        """
        kept = KeptDocument(api, owner, current_caller(), num_bytes, self._clock() + most_seconds + KEPT_SECONDS)
        await self._run(self._add, kept)
        return kept

    async def done(self, kept: KeptDocument, translation: TranslatedDocument) -> None:
        """Keep the translation from now on, for `KEPT_SECONDS`."""
        about = {
            "name": translation.name,
            "content_type": translation.content_type,
            "notes": list(translation.notes),
            "num_characters": translation.num_characters,
            "report": translation.report,
        }
        await self._run(self._done, kept, translation, about)

    async def failed(self, kept: KeptDocument, failure: ServiceError) -> None:
        """Keep why there is no translation."""
        kept.failed(failure, self._clock())
        await self._run(self._failed, kept)

    async def find(self, api: str, document_id: str, owner: str = "") -> KeptDocument:
        """Return an entry."""
        if not _ID.fullmatch(document_id):
            raise not_kept(document_id)
        return await self._run(self._find, api, document_id, owner)

    async def fetch(self, kept: KeptDocument) -> TranslatedDocument:
        """Return the translation of one that has one; it can be fetched again as long as there is room."""
        return await self._run(self._fetch, kept)

    async def take(self, kept: KeptDocument) -> TranslatedDocument:
        """Return the translation of one that has one, and keep it no longer: of several takers one gets it."""
        return await self._run(self._take, kept)

    async def forget(self, kept: KeptDocument) -> None:
        await self._run(self._forget, kept)

    async def _run(self, work: Callable[..., T], *args: Any) -> T:
        try:
            return await asyncio.to_thread(work, *args)
        except OSError as error:
            _LOG.error("documents can't be kept in the folder for temporary files: %s; see TMPDIR", error.strerror)
            raise Unavailable(
                "the server can't keep documents: {reason}",
                advice="its operator has to see to the folder for temporary files; try again later",
                reason=Public(error.strerror),
            ) from None

    def _add(self, kept: KeptDocument) -> None:
        with self._locked():
            for leaving in making_room(self._all(), kept.caller, kept.num_bytes):
                self._path(leaving.id).unlink(missing_ok=True)
            self._held[kept.id] = self._write(kept, {}, b"")

    def _done(self, kept: KeptDocument, translation: TranslatedDocument, about: dict[str, Any]) -> None:
        kept.translated(translation, self._clock())
        os.close(self._write(kept, about, translation.data))
        self._release(kept)

    def _failed(self, kept: KeptDocument) -> None:
        try:
            os.close(self._write(kept, {}, b""))
        finally:
            self._release(kept)  # without a failure it is lost

    def _find(self, api: str, document_id: str, owner: str) -> KeptDocument:
        if self._clock() - self._looked_seconds > _LOOK_SECONDS:
            with self._locked():
                self._all()
        found = None
        while found is None:
            with self._opened(document_id) as file:
                found, _ = _read(file)
                if found.is_in_work and _locks(file):
                    if not self._is_current(document_id, file):
                        found = None  # what it has become since it was opened is another file
                    else:
                        found.failed(_lost(), self._clock())
                        with suppress(OSError):  # whoever asks next finds out, too
                            os.close(self._write(found, {}, b""))
        if (found.api, found.owner) != (api, owner) or found.until_seconds <= self._clock():
            raise not_kept(document_id)
        return found

    def _fetch(self, kept: KeptDocument) -> TranslatedDocument:
        with self._opened(kept.id) as file:
            _, translation = _read(file)
            os.pwrite(file.fileno(), _FETCHED, 0)
            return translation()

    def _take(self, kept: KeptDocument) -> TranslatedDocument:
        with self._opened(kept.id) as file:
            translation = _read(file)[1]()
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
    def _locked(self) -> Iterator[None]:
        """Keep other threads and processes from adding documents during the `with` block."""
        lock = os.open(self._folder() / _LOCK, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
        finally:
            os.close(lock)

    def _all(self) -> list[KeptDocument]:
        """Return all documents, and remove those whose time is over."""
        self._looked_seconds = now = self._clock()
        found = []
        for path in self._folder().iterdir():
            with suppress(FileNotFoundError):  # fetched in the meantime
                if path.suffix == _PART and time.time() - path.stat().st_mtime > KEPT_SECONDS:
                    path.unlink()  # of a process that was killed
                if not _ID.fullmatch(path.name):
                    continue
                with path.open("rb") as file:
                    kept, _ = _read(file)
                if kept.until_seconds <= now:
                    path.unlink()
                else:
                    found.append(kept)
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
            "api": kept.api,
            "owner": kept.owner,
            "caller": kept.caller,
            "num_bytes": kept.num_bytes,
            "until_seconds": kept.until_seconds,
            "id": kept.id,
            "key": kept.key,
            "failure": failure_to_json(kept.failure) if kept.failure else None,
            "about": about,
        }
        descriptor, temporary = tempfile.mkstemp(suffix=_PART, dir=self._folder())
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
        return self._folder() / document_id


def _read(file: BinaryIO) -> tuple[KeptDocument, Callable[[], TranslatedDocument]]:
    """Return the entry of a file, and what reads its translation, if it has one."""
    was_fetched = file.read(1) == _FETCHED
    line = json.loads(file.readline())
    about, failure = line.pop("about"), line.pop("failure")
    kept = KeptDocument(
        **line,
        num_characters=about.get("num_characters"),
        failure=failure_from(failure) if failure else None,
        was_fetched=was_fetched,
    )
    return kept, lambda: TranslatedDocument(data=file.read(), **about)


def _lost() -> Unavailable:
    problem = "its translation is lost: the process that made it has ended, or there is no space for it"
    return Unavailable(problem, advice="send it again")


def _locks(file: BinaryIO) -> bool:
    """Return whether no other process, nor another part of this one, held the lock; now this file does."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
