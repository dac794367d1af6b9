"""Translated documents that their callers fetch later, for a while: what keeps them, and how in memory."""

import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from service.domain.errors import NotFound, Overloaded, ServiceError
from service.faces.http.documents.translation import TranslatedDocument

KEPT_SECONDS = 600.0

MAX_DOCUMENTS = 256
MAX_BYTES = 128 * 2**20
_PAUSE_SECONDS = 10.0  # it is unknown when others will be fetched


@dataclass(slots=True, eq=False)
class KeptDocument:
    """A document that is being translated, or its translation, or why there is none.

    Whoever fetches it needs the id, the key, and the API key of the `owner`, which is empty where none is required.
    `num_characters` are those of its texts, and `None` until it is translated.
    """

    owner: str
    num_bytes: int
    until_seconds: float
    id: str = field(default_factory=lambda: secrets.token_hex(16).upper())
    key: str = field(default_factory=lambda: secrets.token_hex(32).upper())
    num_characters: int | None = None
    failure: ServiceError | None = None

    def translated(self, translation: TranslatedDocument, now_seconds: float) -> None:
        """Record that it has been translated, and is to be kept for `KEPT_SECONDS`."""
        self.num_characters = translation.num_characters
        self.num_bytes = len(translation.data)
        self.until_seconds = now_seconds + KEPT_SECONDS

    def failed(self, failure: ServiceError, now_seconds: float) -> None:
        """Record why there is no translation, to be kept for as long."""
        self.failure = failure
        self.num_bytes = 0
        self.until_seconds = now_seconds + KEPT_SECONDS


class DocumentKeeper(Protocol):
    """What keeps documents, at most `MAX_DOCUMENTS` of `MAX_BYTES` in all. For the event loop's thread only."""

    async def add(self, owner: str, num_bytes: int, most_seconds: float) -> KeptDocument:
        """Return a new entry for a document of this size, whose translation takes at most `most_seconds`.

        Those that have been fetched make room for it, the oldest first.

        Raises:
            Overloaded: too many are kept that have not been.
        """
        ...

    async def done(self, kept: KeptDocument, translation: TranslatedDocument) -> None:
        """Keep the translation from now on, for `KEPT_SECONDS`."""
        ...

    async def failed(self, kept: KeptDocument, failure: ServiceError) -> None:
        """Keep why there is none."""
        ...

    async def find(self, document_id: str, owner: str = "") -> KeptDocument:
        """Return an entry.

        Raises:
            NotFound: there is none of this id and owner, or not any more.
        """
        ...

    async def fetch(self, kept: KeptDocument) -> TranslatedDocument:
        """Return the translation of one that has one; it can be fetched again as long as there is room.

        Raises:
            NotFound: it is not kept any more.
        """
        ...

    async def take(self, kept: KeptDocument) -> TranslatedDocument:
        """Return the translation of one that has one, and keep it no longer: of several takers one gets it.

        Raises:
            NotFound: it is not kept any more.
        """
        ...

    async def forget(self, kept: KeptDocument) -> None:
        """Keep an entry no longer. Idempotent."""
        ...


@dataclass(slots=True)
class _Entry:
    kept: KeptDocument
    translation: TranslatedDocument | None = None
    was_fetched: bool = False


class DocumentsInMemory:
    """Keeps documents in this process; see `DocumentKeeper`."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._entries: dict[str, _Entry] = {}

    async def add(self, owner: str, num_bytes: int, most_seconds: float) -> KeptDocument:
        """See `DocumentKeeper.add`."""
        self._forget_old()
        for fetched in sorted(
            (each.kept for each in self._entries.values() if each.was_fetched), key=lambda kept: kept.until_seconds
        ):
            if self._has_room(num_bytes):
                break
            await self.forget(fetched)
        if not self._has_room(num_bytes):
            raise no_room(len(self._entries), self._num_bytes())
        kept = KeptDocument(owner, num_bytes, self._clock() + most_seconds + KEPT_SECONDS)
        self._entries[kept.id] = _Entry(kept)
        return kept

    async def done(self, kept: KeptDocument, translation: TranslatedDocument) -> None:
        """See `DocumentKeeper.done`."""
        kept.translated(translation, self._clock())
        if kept.id in self._entries:
            self._entries[kept.id].translation = translation

    async def failed(self, kept: KeptDocument, failure: ServiceError) -> None:
        """See `DocumentKeeper.failed`."""
        kept.failed(failure, self._clock())

    async def find(self, document_id: str, owner: str = "") -> KeptDocument:
        """See `DocumentKeeper.find`."""
        self._forget_old()
        entry = self._entries.get(document_id)
        if entry is None or entry.kept.owner != owner:
            raise not_kept(document_id)
        return entry.kept

    async def fetch(self, kept: KeptDocument) -> TranslatedDocument:
        """See `DocumentKeeper.fetch`."""
        entry = self._entries.get(kept.id)
        if entry is None or entry.translation is None:
            raise not_kept(kept.id)
        entry.was_fetched = True
        return entry.translation

    async def take(self, kept: KeptDocument) -> TranslatedDocument:
        """See `DocumentKeeper.take`."""
        translation = await self.fetch(kept)
        await self.forget(kept)
        return translation

    async def forget(self, kept: KeptDocument) -> None:
        """See `DocumentKeeper.forget`."""
        self._entries.pop(kept.id, None)

    def _has_room(self, num_bytes: int) -> bool:
        return has_room(len(self._entries), self._num_bytes() + num_bytes)

    def _num_bytes(self) -> int:
        return sum(each.kept.num_bytes for each in self._entries.values())

    def _forget_old(self) -> None:
        now = self._clock()
        self._entries = {key: each for key, each in self._entries.items() if each.kept.until_seconds > now}


def has_room(number: int, num_bytes: int) -> bool:
    """Return whether there is room for one more document beside this number, if it makes them this large."""
    return number < MAX_DOCUMENTS and num_bytes <= MAX_BYTES


def no_room(number: int, num_bytes: int) -> Overloaded:
    """Return the error of a document for which there is no room beside others."""
    return Overloaded(
        "{number} documents of {size} MiB wait to be fetched",
        _PAUSE_SECONDS,
        number=number,
        size=num_bytes >> 20,
        allowed=f"{MAX_DOCUMENTS} of {MAX_BYTES >> 20} MiB",
        advice="fetch yours, or try again later",
    )


def not_kept(document_id: str) -> NotFound:
    """Return the error of a document that is not kept, or not any more."""
    return NotFound(
        "there is no such document; translations are kept for {minutes:.0f} minutes",
        "document",
        document_id,
        minutes=KEPT_SECONDS / 60,
    )
