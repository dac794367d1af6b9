"""The memory of the running rows: self-attention arenas and cross-attention keys and values."""

from collections.abc import Sequence

import numpy as np
from numpy import typing as npt

Array = npt.NDArray[np.generic]

_SHRINK_AFTER_STEPS = 16


def source_buckets(max_source_tokens: int) -> list[int]:
    """The source lengths that cross-attention is laid out for: 8, 16, 24, 32, 48, 64, 96, 128, 192, ..."""
    buckets = [8, 16, 24, 32]
    while buckets[-1] < max_source_tokens:
        buckets.append(buckets[-1] * 3 // 2)
        buckets.append(buckets[-2] * 2)
    return [bucket for bucket in buckets if bucket < max_source_tokens] + [
        next(bucket for bucket in buckets if bucket >= max_source_tokens)
    ]


class KVCache:
    """Keys and values of up to `max_slots` rows; the live ones are always the rows [0, n).

    L = decoder layers, H = heads, D = head size, C = capacity, S = the current source bucket.

    `self_arenas` (2 L, max_slots, H, C, D): each of its 2 L entries is one layer's keys or values, contiguous, so that
    a prefix of rows can be bound as it lies. Reserved once; a step's cost does not depend on C.

    `cross_views` (2 L, max_slots, H, S, D): a view of a flat buffer laid out for S. Its cost does grow with S, so S
    follows the longest live source: up at once, down when a smaller bucket was enough for a while (re-laying live
    rows costs a copy). Everything that the graph can read is finite: masked positions are still multiplied.
    """

    def __init__(
        self,
        num_layers: int,
        num_heads: int,
        head_size: int,
        max_slots: int,
        kv_capacity: int,
        max_source_tokens: int,
        dtype: npt.DTypeLike = np.float32,
    ) -> None:
        self.max_slots = max_slots
        self.kv_capacity = kv_capacity
        self._buckets = source_buckets(max_source_tokens)
        self.num_layers = num_layers
        self.row_shape = (num_heads, head_size)
        self._num_parts = 2 * num_layers
        self._dtype = dtype
        self.self_arenas: Array
        self.cross_views: Array
        self.clear_all()

    def clear_all(self) -> None:
        """Start afresh with all rows zero. Whatever points to the old memory must be let go."""
        num_heads, head_size = self.row_shape
        row_size = num_heads * self._buckets[-1] * head_size
        arena_shape = (self._num_parts, self.max_slots, num_heads, self.kv_capacity, head_size)
        self.self_arenas = np.zeros(arena_shape, self._dtype)  # pages that no row ever uses cost nothing
        self._cross_flat: Array = np.zeros((self._num_parts, self.max_slots * row_size), self._dtype)
        self.source_bucket = self._buckets[0]
        self.cross_views = self._cross_layout(self.source_bucket)
        self._steps_too_wide = 0

    def write_cross(self, rows: Sequence[int], cross: Sequence[Array], index: int, source_length: int) -> None:
        """Store one source's cross-attention keys and values in each of a sequence's rows.

        `cross` are the encoder's 2 L outputs, each (B, H, S', D), `index` the source's place in B. `source_length`
        must fit the current bucket: call `reserve_source` first.
        """
        target = self.cross_views
        for row in rows:
            for part in range(self._num_parts):
                target[part, row, :, :source_length] = cross[part][index, :, :source_length]
            target[:, row, :, source_length:] = 0

    def reserve_source(self, source_length: int, num_live: int) -> None:
        """Make the bucket at least as long as a source that is about to join `num_live` rows."""
        bucket = self._bucket_for(source_length)
        if bucket > self.source_bucket or not num_live:
            self._lay_out(bucket, num_live)

    def fit_source(self, longest: int, num_live: int) -> None:
        """Before a step: shrink the bucket if a smaller one has been enough for the `longest` source for a while."""
        bucket = self._bucket_for(longest)
        if bucket == self.source_bucket:
            self._steps_too_wide = 0
            return
        assert bucket < self.source_bucket, "a source longer than the bucket is live"
        self._steps_too_wide += 1
        if self._steps_too_wide > _SHRINK_AFTER_STEPS:
            self._lay_out(bucket, num_live)

    def move(self, source_row: int, target_row: int, length: int) -> None:
        """Copy a row's live tokens and its source to another row, as the last row does when it closes a gap."""
        self.self_arenas[:, target_row, :, :length] = self.self_arenas[:, source_row, :, :length]
        self.cross_views[:, target_row] = self.cross_views[:, source_row]

    def reorder(self, source_rows: Sequence[int], target_rows: Sequence[int], lengths: Sequence[int]) -> None:
        """Let beams go on from other beams of the same sequence: copies live tokens; their source is the same.

        No row may be both a source and a target.
        """
        arenas = self.self_arenas
        for source, target, length in zip(source_rows, target_rows, lengths, strict=True):
            arenas[:, target, :, :length] = arenas[:, source, :, :length]

    def clear(self, rows: Sequence[int]) -> None:
        """Zero rows whose sequence failed: what is not a number there would reach the next owner through the mask."""
        for row in rows:
            self.self_arenas[:, row] = 0
            self.cross_views[:, row] = 0

    def _bucket_for(self, source_length: int) -> int:
        return next(bucket for bucket in self._buckets if bucket >= source_length)

    def _lay_out(self, bucket: int, num_live: int) -> None:
        keep = min(bucket, self.source_bucket)
        if bucket != self.source_bucket:
            live = self.cross_views[:, :num_live, :, :keep].copy()  # the two layouts overlap
            self.cross_views = self._cross_layout(bucket)
            self.cross_views[:, :num_live, :, :keep] = live
            self.cross_views[:, :num_live, :, keep:] = 0
            self.source_bucket = bucket
        self._steps_too_wide = 0

    def _cross_layout(self, bucket: int) -> Array:
        num_heads, head_size = self.row_shape
        used = self._cross_flat[:, : self.max_slots * num_heads * bucket * head_size]
        return used.reshape(self._num_parts, self.max_slots, num_heads, bucket, head_size)
