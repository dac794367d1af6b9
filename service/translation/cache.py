"""What was decoded for segments, kept for those who ask for the same again."""

import sys
from dataclasses import dataclass
from typing import NamedTuple

from cachetools import LRUCache

from service.bundle.manifest import LanguagePair
from service.domain.options import DecodingOptions
from service.engine.sequence import DecodedHypothesis

_ENTRY_BYTES = 600  # the objects of an entry, its key and its place in the table, text and token ids excluded
_HYPOTHESIS_BYTES = 150
_TOKEN_BYTES = 36  # a number, and its place in a tuple

Decoded = tuple[DecodedHypothesis, ...]


@dataclass(frozen=True, slots=True)
class CacheKey:
    """All that a segment's translation depends on. `fingerprint` is the model's bundle's, `text` what it reads."""

    fingerprint: str
    pair: LanguagePair
    options: DecodingOptions
    text: str
    output_prefix_ids: tuple[int, ...] = ()


class _Entry(NamedTuple):
    decoded: Decoded
    num_bytes: int


class TranslationCache:
    """The most recently used segments' hypotheses, within about `max_bytes` of memory; with 0 there are none."""

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self._entries: LRUCache[CacheKey, _Entry] = LRUCache(max_bytes, getsizeof=lambda entry: entry.num_bytes)

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def num_bytes(self) -> int:
        """About what the kept segments take."""
        return int(self._entries.currsize)

    def get(self, key: CacheKey) -> Decoded | None:
        """What was decoded, which counts as used now; `None` if it is not kept."""
        entry = self._entries.get(key)
        return None if entry is None else entry.decoded

    def put(self, key: CacheKey, decoded: Decoded) -> None:
        """Keep a segment, in place of those used least recently. One that is larger than all may be is not kept."""
        num_tokens = len(key.output_prefix_ids) + sum(len(hypothesis.token_ids) for hypothesis in decoded)
        num_bytes = (
            _ENTRY_BYTES + sys.getsizeof(key.text) + _HYPOTHESIS_BYTES * len(decoded) + _TOKEN_BYTES * num_tokens
        )
        if num_bytes <= self.max_bytes:
            self._entries[key] = _Entry(decoded, num_bytes)
