"""The keeper of documents that callers fetch later: what is known of each in memory, each translation in a file.

A file, which only this user may read, is a line of JSON and the translated document. It lies in the server's folder for
temporary files, which goes with the server.
"""

import asyncio
import json
import logging
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, TypeVar

from service.calls.turns import current_caller
from service.domain.errors import Public, ServiceError, Unavailable
from service.jobs.kept import KEPT_SECONDS, KeptDocument, making_room, not_kept
from service.jobs.translation import TranslatedDocument

_LOG = logging.getLogger(__name__)

_PLACEHOLDER = bytes(4096)  # of a translation: a full disk is told before a document is translated

T = TypeVar("T")


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
        """Return a new entry for a document of the current caller of this size, whose translation takes at most
        `most_seconds`.
        """
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
        """Keep why there is no translation."""
        kept.failed(failure, self._clock())
        await self._run(self._delete, [kept])

    async def find(self, api: str, document_id: str, owner: str = "") -> KeptDocument:
        """Return an entry."""
        await self._remove_expired()
        kept = self._kept.get(document_id)
        if kept is None or (kept.api, kept.owner) != (api, owner):
            raise not_kept(document_id)
        return kept

    async def fetch(self, kept: KeptDocument) -> TranslatedDocument:
        """Return the translation of one that has one; it can be fetched again as long as there is room."""
        translation = await self._run(self._read, kept)
        kept.was_fetched = True
        return translation

    async def take(self, kept: KeptDocument) -> TranslatedDocument:
        """Return the translation of one that has one, and keep it no longer: of several takers one gets it."""
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
                advice="its operator has to see to the folder for temporary files; try again later",
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
