"""The rows' keys and values in device memory, moved within it by small graphs."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from service.bundle.graph_io import WORD_BYTES
from service.engine.runtime.block_memory import BlockMemory, Indices, open_copy_graph
from service.engine.runtime.kv_cache import CacheShape, SourceBucket
from service.engine.runtime.session import Array, Buffer, GraphSession, SessionConfig

BLOCK_TOKENS = 8  # of one head, part and row; source buckets are multiples of it

_GRAPHS = Path(__file__).parent / "graphs"  # written by export.graphs.memory_graphs


class DeviceCache:
    """Implements `kv_cache.KVCache` in blocks of `BLOCK_TOKENS` tokens.

    The self-attention arenas are one memory, (2 L, max_slots, H, C, D), with C rounded up to whole blocks. The
    cross-attention keys and values are another: 2 L parts of max_slots rows, laid out for S from each part's start,
    followed by the encoder's outputs, (2 L, B, H, width, D). So every change copies blocks within one memory: one small
    run, however many rows it affects.

    Moves are done together before the next operation. Copies are of whole blocks, as many as the row with the most live
    tokens has. A state is one block of each part; so is a list in its memory, where the encoder's follow those of rows.
    """

    def __init__(self, shape: CacheShape, config: SessionConfig) -> None:
        self.shape = shape
        past = dataclasses.replace(shape.past, capacity=_whole_blocks(shape.past.capacity))
        self._past = past
        self._self_row = past.num_heads * past.capacity // BLOCK_TOKENS  # blocks from a row to the next, in a part
        self._self_part = shape.max_slots * self._self_row
        self._cross_part = shape.max_slots * shape.num_heads * shape.longest_bucket // BLOCK_TOKENS
        self._staging = shape.num_parts * self._cross_part
        # Padding to whole blocks adds at most a block's tokens minus one to each source.
        widest = max(shape.max_encode_tokens + shape.max_slots * (BLOCK_TOKENS - 1), shape.longest_bucket)
        most_staged = shape.num_parts * shape.num_heads * _whole_blocks(widest) // BLOCK_TOKENS
        copy_graph = open_copy_graph(config)
        self._self, self._cross = (
            BlockMemory(
                copy_graph,
                config.device,
                num_blocks,
                BLOCK_TOKENS * head_size * shape.dtype.itemsize,
                most_rows=shape.max_slots,
                most_offsets=num_offsets,
            )
            for num_blocks, head_size, num_offsets in (
                (past.num_parts * self._self_part, past.head_size, past.num_parts * self._self_row),
                (
                    self._staging + most_staged,
                    shape.head_size,
                    shape.num_parts * shape.num_heads * shape.longest_bucket // BLOCK_TOKENS,
                ),
            )
        )
        self._lists = BlockMemory(
            copy_graph,
            config.device,
            2 * shape.max_slots,
            max(shape.listed_width, WORD_BYTES),
            most_rows=shape.max_slots,
            most_offsets=1,
        )
        self._list_offsets = _indices(range(shape.listed_width > 0))  # none: there is nothing to copy
        self._finite = GraphSession(_GRAPHS / f"zero_if_finite.{shape.dtype.name}.onnx", config, ["encoded"], ["sums"])
        self._encoded_shape = (0, 0)  # sources and width of the last encoder run
        self._bucket = SourceBucket(shape.max_source_tokens)
        self._moves: dict[int, tuple[int, int]] = {}  # target row -> (source row, live tokens)

    @property
    def source_bucket(self) -> int:
        return self._bucket.length

    def clear_all(self) -> None:
        """Zeroing goes row by row, as it temporarily needs as much memory."""
        self._moves.clear()
        self._bucket = SourceBucket(self.shape.max_source_tokens)
        longest = self.shape.longest_bucket
        offsets = self._cross_offsets(longest, 0, longest)
        for row in range(self.shape.max_slots):
            self._zero_self([row])
            self._cross.zero(_indices([row * self._cross_row(longest)]), offsets)

    def encoder_width(self, longest: int) -> int:
        return _whole_blocks(longest)

    def encoder_outputs(self, num_sources: int, width: int) -> list[Buffer]:
        self._encoded_shape = (num_sources, width)
        shape = (num_sources, self.shape.num_heads, width, self.shape.head_size)
        part = num_sources * self._cross_row(width)
        encoded = [
            self._cross.view(self._staging + index * part, self.shape.dtype, shape)
            for index in range(self.shape.num_parts)
        ]
        return [*encoded, *self._list_views(self.shape.max_slots, num_sources)]

    def store_sources(self, rows: Sequence[Sequence[int]], lengths: Sequence[int], num_live: int) -> list[bool]:
        """A source's own tokens are followed by the encoder's padding, then by zeros."""
        self._do_moves()
        num_sources, width = self._encoded_shape
        self._lay_out(self._bucket.after_join(width, num_live), num_live)
        bucket = self._bucket.length
        sources = _indices([source for source, own_rows in enumerate(rows) for _ in own_rows])
        own_rows = _indices([row for own_rows in rows for row in own_rows])
        offsets = self._list_offsets
        self._lists.copy(self.shape.max_slots + sources, offsets, own_rows, offsets)
        targets = own_rows * self._cross_row(bucket)
        self._cross.copy(
            self._staging + sources * self._cross_row(width),
            self._cross_offsets(width, 0, width, part=num_sources * self._cross_row(width)),
            targets,
            self._cross_offsets(bucket, 0, width),
        )
        self._cross.zero(targets, self._cross_offsets(bucket, width, bucket))
        return self._are_finite()

    def prepare_step(self, longest: int, num_live: int) -> None:
        self._do_moves()
        self._lay_out(self._bucket.for_step(longest), num_live)

    def past(self, num_rows: int) -> list[Buffer]:
        shape = self._past.rows(num_rows)
        return [
            self._self.view(part * self._self_part, self.shape.dtype, shape) for part in range(self._past.num_parts)
        ]

    def cross(self, num_rows: int) -> list[Buffer]:
        shape = (num_rows, self.shape.num_heads, self._bucket.length, self.shape.head_size)
        cross = [
            self._cross.view(part * self._cross_part, self.shape.dtype, shape) for part in range(self.shape.num_parts)
        ]
        return [*cross, *self._list_views(0, num_rows)]

    def move(self, source_row: int, target_row: int, length: int) -> None:
        """Postpone the move until the next step or other change."""
        origin, _ = self._moves.pop(source_row, (source_row, length))  # it may itself be the target of a postponed move
        self._moves[target_row] = (origin, length)

    def reorder(self, source_rows: Sequence[int], target_rows: Sequence[int], lengths: Sequence[int]) -> None:
        self._do_moves()
        self._copy_self(source_rows, target_rows, max(lengths, default=0))

    def clear(self, rows: Sequence[int]) -> None:
        self._do_moves()
        self._zero_self(rows)
        bucket = self._bucket.length
        bases = _indices(rows) * self._cross_row(bucket)
        self._cross.zero(bases, self._cross_offsets(bucket, 0, bucket))

    def _do_moves(self) -> None:
        if not self._moves:
            return
        targets = list(self._moves)
        sources = [origin for origin, _ in self._moves.values()]
        self._copy_self(sources, targets, max(length for _, length in self._moves.values()))
        bucket = self._bucket.length
        row, offsets = self._cross_row(bucket), self._cross_offsets(bucket, 0, bucket)
        self._cross.copy(_indices(sources) * row, offsets, _indices(targets) * row, offsets)
        self._lists.copy(_indices(sources), self._list_offsets, _indices(targets), self._list_offsets)
        self._moves.clear()

    def _copy_self(self, source_rows: Sequence[int], target_rows: Sequence[int], num_tokens: int) -> None:
        offsets = self._self_offsets(self._past.live(num_tokens))
        sources, targets = _indices(source_rows) * self._self_row, _indices(target_rows) * self._self_row
        self._self.copy(sources, offsets, targets, offsets)

    def _zero_self(self, rows: Sequence[int]) -> None:
        offsets = self._self_offsets(self._past.capacity)
        self._self.zero(_indices(rows) * self._self_row, offsets)

    def _lay_out(self, bucket: int, num_live: int) -> None:
        old = self._bucket.length
        if bucket == old:
            return
        rows, keep = np.arange(num_live), min(bucket, old)
        self._cross.copy(
            rows * self._cross_row(old),
            self._cross_offsets(old, 0, keep),
            rows * self._cross_row(bucket),
            self._cross_offsets(bucket, 0, keep),
        )
        self._cross.zero(rows * self._cross_row(bucket), self._cross_offsets(bucket, keep, bucket))
        self._bucket.length = bucket

    def _list_views(self, first: int, count: int) -> list[Buffer]:
        width = self.shape.listed_width
        return [self._lists.view(first, np.bool_, (count, width))] if width else []

    def _are_finite(self) -> list[bool]:
        num_sources, width = self._encoded_shape
        row_size = self.shape.num_heads * width * self.shape.head_size
        encoded = self._cross.view(self._staging, self.shape.dtype, (self.shape.num_parts, num_sources, row_size))
        sums: Array = np.empty(num_sources, self.shape.dtype)
        self._finite.run(self._finite.bind({"encoded": encoded}, {"sums": sums}))
        return [bool(is_finite) for is_finite in np.isfinite(sums)]

    def _cross_row(self, width: int) -> int:
        """Return the number of blocks from a row to the next in a part laid out for `width` source tokens."""
        return self.shape.num_heads * width // BLOCK_TOKENS

    def _cross_offsets(self, width: int, first: int, last: int, part: int | None = None) -> Indices:
        """Return the blocks of tokens [first, last) of a source laid out for `width` (`_offsets`)."""
        part = self._cross_part if part is None else part
        return _offsets(self.shape.num_parts, part, self.shape.num_heads, width, range(first, last))

    def _self_offsets(self, last: int) -> Indices:
        """Return the blocks of a row's own tokens before `last` (`_offsets`)."""
        past = self._past
        return _offsets(past.num_parts, self._self_part, past.num_heads, past.capacity, range(last))


def _offsets(num_parts: int, part: int, num_heads: int, width: int, tokens: range) -> Indices:
    """Return a row's blocks, relative to its first one, that hold these tokens of all heads and parts.

    `part` is the number of blocks from a part to the next, `width` the number of tokens that a head has room for.
    """
    assert tokens.stop <= width, f"{tokens.stop} tokens where there is room for {width}"
    parts = np.arange(num_parts)[:, None, None] * part
    heads = np.arange(num_heads)[:, None] * (width // BLOCK_TOKENS)
    blocks = np.arange(tokens.start // BLOCK_TOKENS, _whole_blocks(tokens.stop) // BLOCK_TOKENS)
    return (parts + heads + blocks).ravel()


def _whole_blocks(num_tokens: int) -> int:
    return -(-num_tokens // BLOCK_TOKENS) * BLOCK_TOKENS


def _indices(numbers: Sequence[int]) -> Indices:
    return np.array(numbers, np.int64)
