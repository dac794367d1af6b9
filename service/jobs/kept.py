"""Translated documents that their callers fetch later, for a while: what is known of each, and how many may be kept."""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field

from service.calls.turns import share_of
from service.documents.opening import MAX_BYTES as MAX_DOCUMENT_BYTES
from service.domain.errors import NotFound, Overloaded, ServiceError
from service.jobs.translation import DOCUMENT_SECONDS, TranslatedDocument

KEPT_SECONDS = DOCUMENT_SECONDS

MAX_DOCUMENTS = 256
MAX_BYTES = 4 * MAX_DOCUMENT_BYTES


@dataclass(slots=True, eq=False)
class KeptDocument:
    """A document that is being translated, or its translation, or why there is none.

    It is of one `api`, and no other finds it. Whoever fetches it needs the id, the key, and the API key of the `owner`,
    which is empty where none is required. It counts as one of its `caller`. `num_characters` are those of its texts,
    and `None` until it is translated.
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
        """Record that it has been translated, and is to be kept for `KEPT_SECONDS`."""
        self.num_characters = translation.num_characters
        self.num_bytes = len(translation.data)
        self.until_seconds = now_seconds + KEPT_SECONDS

    def failed(self, failure: ServiceError, now_seconds: float) -> None:
        """Record why there is no translation, to be kept for as long."""
        self._failure = failure
        self.num_bytes = 0
        self.until_seconds = now_seconds + KEPT_SECONDS


def making_room(kept: Sequence[KeptDocument], caller: str, num_bytes: int) -> list[KeptDocument]:
    """Return those that make room for a new document of a caller: as few as possible, the oldest first.

    A caller has half of what the wanted documents of others leave, in number and in bytes; beyond that, its own that
    have been translated make room. Documents that nobody waits for any more take what is left over, and the caller's
    own go first.
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
                "{number} documents of yours, of {size} MiB, are being translated",
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
    """Return the error of a document that is not kept, or not any more."""
    return NotFound(
        "there is no such document; translations are kept for {minutes:.0f} minutes",
        "document",
        document_id,
        minutes=KEPT_SECONDS / 60,
    )


def _size(kept: Sequence[KeptDocument]) -> int:
    return sum(each.num_bytes for each in kept)
