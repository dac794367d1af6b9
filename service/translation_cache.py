"""Finished translations, kept for those who ask for the same again."""

import sys
from dataclasses import dataclass
from typing import NamedTuple

from cachetools import LRUCache

from service.bundle.manifest import LanguagePair
from service.translation import DecodingOptions, Translation

_ENTRY_BYTES = 600  # the objects of an entry, its key and its place in the table, texts excluded


@dataclass(frozen=True, slots=True)
class CacheKey:
    """All that a translation depends on. `fingerprint` is that of the model's bundle."""

    fingerprint: str
    pair: LanguagePair
    options: DecodingOptions
    text: str


class _Entry(NamedTuple):
    translation: Translation
    num_bytes: int


class TranslationCache:
    """The most recently used translations, within about `max_bytes` of memory; with 0 there are none."""

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self._entries: LRUCache[CacheKey, _Entry] = LRUCache(max_bytes, getsizeof=lambda entry: entry.num_bytes)

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def num_bytes(self) -> int:
        """About what the kept translations take."""
        return int(self._entries.currsize)

    def get(self, key: CacheKey) -> Translation | None:
        """The translation, which counts as used now; `None` if it is not kept."""
        entry = self._entries.get(key)
        return None if entry is None else entry.translation

    def put(self, key: CacheKey, translation: Translation) -> None:
        """Keep a translation, in place of those used least recently. One that is larger than all may be is not kept."""
        texts = (key.text, translation.text, *(hypothesis.text for hypothesis in translation.hypotheses))
        num_bytes = _ENTRY_BYTES + sum(map(sys.getsizeof, texts))
        if num_bytes <= self.max_bytes:
            self._entries[key] = _Entry(translation, num_bytes)
