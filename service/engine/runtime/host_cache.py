"""The rows' keys and values in host memory, which the CPU provider reads and writes in place."""

from collections.abc import Sequence

import numpy as np

from service.engine.runtime.kv_cache import CacheShape, SourceBucket
from service.engine.runtime.session import Array, Buffer


class HostCache:
    """Implements `kv_cache.KVCache` with NumPy.

    `self_arenas` (2 L, max_slots, H, C, D): each of the 2 L entries is one contiguous part, so that a prefix of rows
    can be bound without copying. Reserved once; a step's cost does not depend on C, and pages that no row ever uses
    cost nothing. Of recurrent layers, these are the states: `PastShape`.

    `cross_views` (2 L, max_slots, H, S, D): a view of a flat buffer laid out for S.

    `lists` (max_slots, W).
    """

    def __init__(self, shape: CacheShape) -> None:
        self.shape = shape
        most_tokens = max(shape.max_encode_tokens, shape.max_source_tokens)
        encoded_shape = (shape.num_parts, most_tokens * shape.num_heads * shape.head_size)
        self._encoded_flat: Array = np.zeros(encoded_shape, shape.dtype)
        self._encoded = self._encoded_flat  # the part used by the last encoder run, (2 L, B, H, width, D)
        self.lists, self._encoded_lists = np.zeros((2, shape.max_slots, shape.listed_width), np.bool_)
        self.self_arenas: Array
        self.cross_views: Array
        self.clear_all()

    @property
    def source_bucket(self) -> int:
        return self._bucket.length

    def clear_all(self) -> None:
        shape = self.shape
        row_size = shape.num_heads * shape.longest_bucket * shape.head_size
        past = self._past = shape.past
        arena_shape = (past.num_parts, shape.max_slots, past.num_heads, past.capacity, past.head_size)
        self.self_arenas = np.zeros(arena_shape, shape.dtype)
        self._cross_flat: Array = np.zeros((shape.num_parts, shape.max_slots * row_size), shape.dtype)
        self._bucket = SourceBucket(shape.max_source_tokens)
        self.cross_views = self._cross_layout(self._bucket.length)

    def encoder_width(self, longest: int) -> int:
        return longest

    def encoder_outputs(self, num_sources: int, width: int) -> list[Buffer]:
        heads, size = self.shape.num_heads, self.shape.head_size
        used = self._encoded_flat[:, : num_sources * heads * width * size]
        self._encoded = used.reshape(self.shape.num_parts, num_sources, heads, width, size)
        return self._buffers(self._encoded, self._encoded_lists[:num_sources])

    def store_sources(self, rows: Sequence[Sequence[int]], lengths: Sequence[int], num_live: int) -> list[bool]:
        width = self._encoded.shape[3]
        bucket = self._bucket.after_join(width, num_live)
        if bucket != self._bucket.length:
            self._lay_out(bucket, num_live)
        target = self.cross_views
        for source, own_rows in enumerate(rows):
            length = lengths[source]
            for row in own_rows:
                target[:, row, :, :length] = self._encoded[:, source, :, :length]
                target[:, row, :, length:] = 0
            self.lists[list(own_rows)] = self._encoded_lists[source]
        return self._are_finite()

    def prepare_step(self, longest: int, num_live: int) -> None:
        bucket = self._bucket.for_step(longest)
        if bucket != self._bucket.length:
            self._lay_out(bucket, num_live)

    def past(self, num_rows: int) -> list[Buffer]:
        return [Buffer.of(part[:num_rows].reshape(self._past.rows(num_rows))) for part in self.self_arenas]

    def cross(self, num_rows: int) -> list[Buffer]:
        return self._buffers(self.cross_views[:, :num_rows], self.lists[:num_rows])

    def move(self, source_row: int, target_row: int, length: int) -> None:
        self.reorder([source_row], [target_row], [length])
        self.cross_views[:, target_row] = self.cross_views[:, source_row]
        self.lists[target_row] = self.lists[source_row]

    def reorder(self, source_rows: Sequence[int], target_rows: Sequence[int], lengths: Sequence[int]) -> None:
        arenas = self.self_arenas
        for source, target, length in zip(source_rows, target_rows, lengths, strict=True):
            live = self._past.live(length)
            arenas[:, target, :, :live] = arenas[:, source, :, :live]

    def clear(self, rows: Sequence[int]) -> None:
        for row in rows:
            self.self_arenas[:, row] = 0
            self.cross_views[:, row] = 0

    def _buffers(self, parts: Array, lists: Array) -> list[Buffer]:
        return [*map(Buffer.of, parts), *([Buffer.of(lists)] if self.shape.listed_width else [])]

    def _are_finite(self) -> list[bool]:
        """Return, per source of the last encoder run, whether its keys and values are finite, usually by one sum."""
        num_parts, num_sources = self._encoded.shape[:2]
        with np.errstate(over="ignore", invalid="ignore"):
            sums = self._encoded.reshape(num_parts, num_sources, -1).sum(axis=2)
        are_finite = np.isfinite(sums).all(axis=0)
        for source in np.flatnonzero(~are_finite):  # unless only the sum overflowed
            are_finite[source] = np.isfinite(self._encoded[:, source]).all()
        return [bool(is_finite) for is_finite in are_finite]

    def _lay_out(self, bucket: int, num_live: int) -> None:
        keep = min(bucket, self._bucket.length)
        live = self.cross_views[:, :num_live, :, :keep].copy()  # the two layouts overlap
        self.cross_views = self._cross_layout(bucket)
        self.cross_views[:, :num_live, :, :keep] = live
        self.cross_views[:, :num_live, :, keep:] = 0
        self._bucket.length = bucket

    def _cross_layout(self, bucket: int) -> Array:
        shape = self.shape
        used = self._cross_flat[:, : shape.max_slots * shape.num_heads * bucket * shape.head_size]
        return used.reshape(shape.num_parts, shape.max_slots, shape.num_heads, bucket, shape.head_size)
