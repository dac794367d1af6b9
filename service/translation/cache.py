"""Cache of decoded segments for repeated requests."""

import sys
from dataclasses import dataclass
from typing import NamedTuple

from cachetools import LRUCache

from service.bundle.manifest_parts import LanguagePair
from service.domain.options import DecodingOptions
from service.engine.sequence import DecodedHypothesis

_ENTRY_BYTES = 600  # objects of an entry, its key and its table slot, without text and token ids
_HYPOTHESIS_BYTES = _ENTRY_BYTES // 4
_TOKEN_BYTES = 36  # a number, and its slot in a tuple

Decoded = tuple[DecodedHypothesis, ...]


@dataclass(frozen=True, slots=True)
class CacheKey:
    """Everything a segment's translation depends on. `fingerprint` is the bundle's, `text` is fed to the model."""

    fingerprint: str
    pair: LanguagePair
    options: DecodingOptions
    text: str
    output_prefix_ids: tuple[int, ...] = ()


class _Entry(NamedTuple):
    decoded: Decoded
    num_bytes: int


class TranslationCache:
    """LRU cache of segments' hypotheses within about `max_bytes` of memory; 0 disables it."""

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self._entries: LRUCache[CacheKey, _Entry] = LRUCache(max_bytes, getsizeof=lambda entry: entry.num_bytes)

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def num_bytes(self) -> int:
        return int(self._entries.currsize)

    def get(self, key: CacheKey) -> Decoded | None:
        entry = self._entries.get(key)
        return None if entry is None else entry.decoded

    def put(self, key: CacheKey, decoded: Decoded) -> None:
        """Cache a segment, evicting the least recently used ones. One larger than the whole cache is not cached."""
        num_tokens = len(key.output_prefix_ids) + sum(len(hypothesis.token_ids) for hypothesis in decoded)
        num_bytes = (
            _ENTRY_BYTES + sys.getsizeof(key.text) + _HYPOTHESIS_BYTES * len(decoded) + _TOKEN_BYTES * num_tokens
        )
        num_bytes += sum(each.attention.nbytes for each in decoded if each.attention is not None)
        if num_bytes <= self.max_bytes:
            self._entries[key] = _Entry(decoded, num_bytes)
