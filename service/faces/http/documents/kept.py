"""Translated documents that their callers fetch later, in memory, for a while."""

import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from service.domain.errors import NotFound, Overloaded, ServiceError
from service.faces.http.documents.translation import TranslatedDocument

KEPT_SECONDS = 600.0

_MAX_DOCUMENTS = 256
_MAX_BYTES = 128 * 2**20
_PAUSE_SECONDS = 10.0  # it is unknown when others will be fetched


@dataclass(slots=True, eq=False)
class KeptDocument:
    """A document that is being translated, or its translation, or why there is none.

    Whoever fetches it needs the id, the key, and the API key of the `owner`, which is empty where none is required.
    """

    owner: str
    num_bytes: int
    until_seconds: float
    id: str = field(default_factory=lambda: secrets.token_hex(16).upper())
    key: str = field(default_factory=lambda: secrets.token_hex(32).upper())
    translated: TranslatedDocument | None = None
    failure: ServiceError | None = None
    was_fetched: bool = False


class KeptDocuments:
    """All of them. For the event loop's thread only."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._documents: dict[str, KeptDocument] = {}

    def add(self, owner: str, num_bytes: int, most_seconds: float) -> KeptDocument:
        """Return a new entry for a document of this size, whose translation takes at most `most_seconds`.

        Those that have been fetched make room for it, the oldest first.

        Raises:
            Overloaded: too many are kept that have not been.
        """
        self._forget_old()
        for fetched in [each for each in self._documents.values() if each.was_fetched]:
            if self._has_room(num_bytes):
                break
            self.forget(fetched)
        if not self._has_room(num_bytes):
            raise Overloaded(
                "{number} documents of {size} MiB wait to be fetched",
                _PAUSE_SECONDS,
                number=len(self._documents),
                size=self._num_bytes() >> 20,
                allowed=f"{_MAX_DOCUMENTS} of {_MAX_BYTES >> 20} MiB",
                advice="fetch yours, or try again later",
            )
        kept = KeptDocument(owner, num_bytes, self._clock() + most_seconds + KEPT_SECONDS)
        self._documents[kept.id] = kept
        return kept

    def done(self, kept: KeptDocument, translated: TranslatedDocument) -> None:
        """Keep the translation from now on, for `KEPT_SECONDS`."""
        kept.translated = translated
        kept.num_bytes = len(translated.data)
        kept.until_seconds = self._clock() + KEPT_SECONDS

    def failed(self, kept: KeptDocument, failure: ServiceError) -> None:
        """Keep why there is none."""
        kept.failure = failure
        kept.num_bytes = 0
        kept.until_seconds = self._clock() + KEPT_SECONDS

    def find(self, document_id: str, owner: str = "") -> KeptDocument:
        """Return an entry.

        Raises:
            NotFound: there is none of this id and owner, or not any more.
        """
        self._forget_old()
        kept = self._documents.get(document_id)
        if kept is None or kept.owner != owner:
            raise NotFound(
                "there is no such document; translations are kept for {minutes:.0f} minutes",
                "document",
                document_id,
                minutes=KEPT_SECONDS / 60,
            )
        return kept

    def fetched(self, kept: KeptDocument) -> None:
        """Learn that an entry's document has been fetched, and may be again as long as there is room."""
        kept.was_fetched = True

    def forget(self, kept: KeptDocument) -> None:
        """Keep an entry no longer. Idempotent."""
        self._documents.pop(kept.id, None)

    def _has_room(self, num_bytes: int) -> bool:
        return len(self._documents) < _MAX_DOCUMENTS and self._num_bytes() + num_bytes <= _MAX_BYTES

    def _num_bytes(self) -> int:
        return sum(each.num_bytes for each in self._documents.values())

    def _forget_old(self) -> None:
        now = self._clock()
        self._documents = {key: each for key, each in self._documents.items() if each.until_seconds > now}
