"""The interface of the rows' memory: keys and values, or states, of their tokens; keys, values and lists of sources."""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from service.bundle.manifest_parts import STATE_MULTIPLE
from service.engine.runtime.session import Buffer


def source_buckets(max_source_tokens: int) -> list[int]:
    """Return the source lengths that cross-attention is laid out for: 8, 16, 24, 32, 48, 64, 96, 128, 192, ..."""
    buckets = [8, 16, 24, 32]
    while buckets[-1] < max_source_tokens:
        buckets.append(buckets[-1] * 3 // 2)
        buckets.append(buckets[-2] * 2)
    return [bucket for bucket in buckets if bucket < max_source_tokens] + [
        next(bucket for bucket in buckets if bucket >= max_source_tokens)
    ]


@dataclass(frozen=True, slots=True)
class CacheShape:
    """Sizes of the keys and values of up to `max_slots` rows.

    A row of recurrent layers has a state of `state_size` numbers for each, instead of keys and values. `kv_capacity` is
    the maximum number of target tokens of a row, `max_encode_tokens` the largest padded area (sources times the
    longest) of one encoder run. `listed_width` is `graph_io.listed_width`, of the lists of allowed tokens; 0: there are
    none.
    """

    num_layers: int
    num_heads: int
    head_size: int
    max_slots: int
    kv_capacity: int
    max_source_tokens: int
    max_encode_tokens: int
    dtype: np.dtype[Any]
    state_size: int = 0
    listed_width: int = 0

    @property
    def num_parts(self) -> int:
        return 2 * self.num_layers

    @property
    def past(self) -> "PastShape":
        if self.state_size:
            return PastShape(self.num_layers, 1, STATE_MULTIPLE, self.state_size // STATE_MULTIPLE, is_state=True)
        return PastShape(self.num_parts, self.num_heads, self.kv_capacity, self.head_size)

    @property
    def longest_bucket(self) -> int:
        return source_buckets(self.max_source_tokens)[-1]

    @property
    def bytes_per_slot(self) -> int:
        """Return the device memory reserved per row for its longest source and whole capacity."""
        past = self.past
        own = past.num_parts * past.num_heads * past.capacity * past.head_size
        source = self.num_parts * self.num_heads * self.longest_bucket * self.head_size
        return (own + source) * self.dtype.itemsize + self.listed_width


@dataclass(frozen=True, slots=True)
class PastShape:
    """Parts of a row's own memory, each (H, C, D): of `capacity` tokens, of which the live ones are copied.

    A state is laid out in the same way, as some tokens of one head that are all live from the first step on.
    """

    num_parts: int
    num_heads: int
    capacity: int
    head_size: int
    is_state: bool = False

    def rows(self, num_rows: int) -> tuple[int, ...]:
        if self.is_state:
            return num_rows, self.capacity * self.head_size
        return num_rows, self.num_heads, self.capacity, self.head_size

    def live(self, length: int) -> int:
        """Return how many tokens of a row are to be copied after `length` steps."""
        return self.capacity if self.is_state else length


class SourceBucket:
    """The source length S that the rows are currently laid out for.

    A step's cost grows with S, which follows the longest live source: up immediately, down after a while, as it copies
    rows.
    """

    def __init__(self, max_source_tokens: int) -> None:
        self._buckets = source_buckets(max_source_tokens)
        self._steps_too_wide = 0
        self.length = self._buckets[0]

    def after_join(self, source_length: int, num_live: int) -> int:
        wanted = self._fitting(source_length)
        if wanted > self.length or not num_live:
            self._steps_too_wide = 0
            return wanted
        return self.length

    def for_step(self, longest: int) -> int:
        """Return the bucket for a step whose longest source is `longest`; call it once per step."""
        wanted = self._fitting(longest)
        assert wanted <= self.length, "a source longer than the bucket is live"
        self._steps_too_wide = self._steps_too_wide + 1 if wanted < self.length else 0
        if self._steps_too_wide <= 16:
            return self.length
        self._steps_too_wide = 0
        return wanted

    def _fitting(self, source_length: int) -> int:
        return self._buckets[bisect_left(self._buckets, source_length)]


class KVCache(Protocol):
    """The memory of the running rows; the live ones are always the rows [0, n).

    L = layers, H = heads, D = head size, C = capacity, S = the current source bucket, W = the width of lists; 2 L
    parts: keys and values of each layer. The buffers of `past` and `cross` stay valid until the bucket changes or
    everything is cleared. Everything that a graph can read is finite, as masked positions are multiplied, too.
    """

    shape: CacheShape

    @property
    def source_bucket(self) -> int: ...

    def clear_all(self) -> None: ...

    def encoder_width(self, longest: int) -> int:
        """Return the width to which to pad an encoder run whose longest source is `longest`."""
        ...

    def encoder_outputs(self, num_sources: int, width: int) -> list[Buffer]:
        """Return the next encoder run's buffers: 2 L of (num_sources, H, width, D), and any lists (num_sources, W)."""
        ...

    def store_sources(self, rows: Sequence[Sequence[int]], lengths: Sequence[int], num_live: int) -> list[bool]:
        """Store each source of the last encoder run in its rows, which follow the first `num_live` rows.

        Return per source whether the encoder's output is finite; if not, its rows are unusable until cleared.
        """
        ...

    def prepare_step(self, longest: int, num_live: int) -> None:
        """Apply all postponed changes before a step, and shrink S if a smaller one has been enough for a while."""
        ...

    def past(self, num_rows: int) -> list[Buffer]:
        """Return the 2 L self-attention arenas of the first rows, each (num_rows, H, C, D), or their L states."""
        ...

    def cross(self, num_rows: int) -> list[Buffer]:
        """Return first rows' 2 L cross-attention keys and values (num_rows, H, S, D), and any lists (num_rows, W)."""
        ...

    def move(self, source_row: int, target_row: int, length: int) -> None:
        """Move a row's `length` live tokens and its source to another row, such as a gap; the old row is then free."""
        ...

    def reorder(self, source_rows: Sequence[int], target_rows: Sequence[int], lengths: Sequence[int]) -> None:
        """Copy live tokens of beams to other beams of the same sequence; no row may be both source and target."""
        ...

    def clear(self, rows: Sequence[int]) -> None:
        """Zero rows whose sequence failed: NaN left there would reach the next owner through the mask."""
        ...
