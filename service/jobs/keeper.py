"""The keeper of documents that callers fetch later: what is known of each in memory, each translation in a file.

A file, for this user only and in the server's temporary folder, is a line of JSON and the translated document.
"""

import asyncio
import json
import logging
import os
import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from service.calls.turns import current_caller, share_of
from service.documents.opening import MAX_BYTES as MAX_DOCUMENT_BYTES
from service.domain.errors import NotFound, Overloaded, Public, ServiceError, Unavailable
from service.jobs.translation import DOCUMENT_SECONDS, TranslatedDocument

KEPT_SECONDS = DOCUMENT_SECONDS

MAX_DOCUMENTS = 256
MAX_BYTES = 4 * MAX_DOCUMENT_BYTES

_LOG = logging.getLogger(__name__)

_PLACEHOLDER = bytes(4096)  # of a translation: a full disk is told before a document is translated

T = TypeVar("T")


@dataclass(slots=True, eq=False)
class KeptDocument:
    """A document that is being translated, or its translation, or why there is none.

    Only its `api` finds it, by id and key, with the API key of its `owner`, which is empty where none is required. It
    counts as one of its `caller`. `num_characters` are those of its texts, `None` until it is translated.
    """

    api: str
    owner: str
    caller: str
    num_bytes: int
    until_seconds: float
    id: str = field(default_factory=lambda: secrets.token_hex(16).upper())
    key: str = field(default_factory=lambda: secrets.token_hex(32).upper())
    num_characters: int | None = None
    was_fetched: bool = False
    _failure: ServiceError | None = field(default=None, init=False)

    @property
    def failure(self) -> ServiceError | None:
        """Return why there is no translation. Its traceback begins anew, as many calls may raise it."""
        return self._failure and self._failure.with_traceback(None)

    @property
    def is_in_work(self) -> bool:
        return self._failure is None and self.num_characters is None

    @property
    def is_wanted(self) -> bool:
        """Return whether somebody still waits for its translation; one that is not wanted makes room for any other."""
        return self._failure is None and not self.was_fetched

    def translated(self, translation: TranslatedDocument, now_seconds: float) -> None:
        self.num_characters = translation.num_characters
        self.num_bytes = len(translation.data)
        self.until_seconds = now_seconds + KEPT_SECONDS

    def failed(self, failure: ServiceError, now_seconds: float) -> None:
        self._failure = failure
        self.num_bytes = 0
        self.until_seconds = now_seconds + KEPT_SECONDS


def making_room(kept: Sequence[KeptDocument], caller: str, num_bytes: int) -> list[KeptDocument]:
    """Return those that make room for a new document of a caller: as few as possible, the oldest first.

    A caller has half of what others' wanted documents leave, in number and in bytes; beyond that, its own translated
    ones make room. Documents that nobody waits for take what is left over, and the caller's own go first.
    """
    oldest_first = sorted(kept, key=lambda each: each.until_seconds)
    wanted = [each for each in oldest_first if each.is_wanted]
    own = [each for each in wanted if each.caller == caller]
    others = [each for each in wanted if each.caller != caller]
    most = share_of(MAX_DOCUMENTS, len(others))
    most_bytes = share_of(MAX_BYTES, _size(others))
    leaving = []
    while len(own) >= most or _size(own) + num_bytes > most_bytes:
        done = next((each for each in own if not each.is_in_work), None)
        if done is None:
            raise Overloaded(
                "your documents being translated: {number}, {size} MiB in total",
                number=len(own),
                size=_size(own) >> 20,
                allowed=f"{most} of {most_bytes >> 20} MiB",
                advice="try again later",
            )
        own.remove(done)
        leaving.append(done)
    left = [each for each in oldest_first if not each.is_wanted]
    left.sort(key=lambda each: each.caller != caller)
    held = len(own) + len(others), _size(own) + _size(others)
    while left and (held[0] + len(left) >= MAX_DOCUMENTS or held[1] + _size(left) + num_bytes > MAX_BYTES):
        leaving.append(left.pop(0))
    return leaving


def not_kept(document_id: str) -> NotFound:
    return NotFound(
        "there is no such document; translations are kept for {minutes:.0f} minutes",
        "document",
        document_id,
        minutes=KEPT_SECONDS / 60,
    )


def _size(kept: Sequence[KeptDocument]) -> int:
    return sum(each.num_bytes for each in kept)


class DocumentKeeper:
    """Keeps documents in a folder, within the limits of `kept`.

    All methods belong to the event loop's thread. Each one raises `Unavailable` if the folder can't be used, for
    example because the disk is full.
    """

    def __init__(self, folder: Callable[[], Path], clock: Callable[[], float] = time.monotonic) -> None:
        """Use a folder that is for this user only; `folder` returns it, always the same, and makes it at first."""
        self._folder = folder
        self._clock = clock
        self._kept: dict[str, KeptDocument] = {}

    async def add(self, api: str, owner: str, num_bytes: int, most_seconds: float) -> KeptDocument:
        """Return a new entry for the current caller's document, whose translation takes at most `most_seconds`."""
        await self._remove_expired()
        kept = KeptDocument(api, owner, current_caller(), num_bytes, self._clock() + most_seconds + KEPT_SECONDS)
        leaving = making_room(list(self._kept.values()), kept.caller, kept.num_bytes)
        self._kept[kept.id] = kept
        await self._remove(leaving)
        try:
            await self._run(self._write, kept, _PLACEHOLDER)
        except Unavailable:
            await self.forget(kept)
            raise
        return kept

    async def done(self, kept: KeptDocument, translation: TranslatedDocument) -> None:
        """Keep the translation from now on, for `KEPT_SECONDS`."""
        about = asdict(replace(translation, data=b""))
        del about["data"]
        await self._run(self._write, kept, json.dumps(about).encode() + b"\n", translation.data)
        kept.translated(translation, self._clock())

    async def failed(self, kept: KeptDocument, failure: ServiceError) -> None:
        kept.failed(failure, self._clock())
        await self._run(self._delete, [kept])

    async def find(self, api: str, document_id: str, owner: str = "") -> KeptDocument:
        await self._remove_expired()
        kept = self._kept.get(document_id)
        if kept is None or (kept.api, kept.owner) != (api, owner):
            raise not_kept(document_id)
        return kept

    async def fetch(self, kept: KeptDocument) -> TranslatedDocument:
        """Return a finished translation; it can be fetched again as long as there is room."""
        translation = await self._run(self._read, kept)
        kept.was_fetched = True
        return translation

    async def take(self, kept: KeptDocument) -> TranslatedDocument:
        """Return a finished translation and drop it: of several takers one gets it."""
        if self._kept.pop(kept.id, None) is None:  # another call was faster
            raise not_kept(kept.id)
        translation = await self._run(self._read, kept)
        await self.forget(kept)
        return translation

    async def forget(self, kept: KeptDocument) -> None:
        await self._remove([kept])

    async def _remove_expired(self) -> None:
        now = self._clock()
        await self._remove([kept for kept in self._kept.values() if kept.until_seconds <= now])

    async def _remove(self, leaving: Sequence[KeptDocument]) -> None:
        for kept in leaving:
            self._kept.pop(kept.id, None)
        if leaving:
            await self._run(self._delete, leaving)

    async def _run(self, work: Callable[..., T], *args: Any) -> T:
        try:
            return await asyncio.to_thread(work, *args)
        except OSError as error:
            _LOG.error("documents can't be kept in the folder for temporary files: %s; see TMPDIR", error.strerror)
            raise Unavailable(
                "the server can't keep documents: {reason}",
                advice="its operator has to free or repair the folder for temporary files; try again later",
                reason=Public(error.strerror),
            ) from None

    def _write(self, kept: KeptDocument, *parts: bytes) -> None:
        descriptor = os.open(self._path(kept), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.writelines(parts)

    def _read(self, kept: KeptDocument) -> TranslatedDocument:
        try:
            with self._path(kept).open("rb") as file:
                return TranslatedDocument(**json.loads(file.readline()), data=file.read())
        except FileNotFoundError:  # it has made room for another in the meantime
            raise not_kept(kept.id) from None

    def _delete(self, leaving: Sequence[KeptDocument]) -> None:
        for kept in leaving:
            self._path(kept).unlink(missing_ok=True)

    def _path(self, kept: KeptDocument) -> Path:
        return self._folder() / kept.id
