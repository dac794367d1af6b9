"""The memory of the running rows, changed in place by the search in C++."""

import struct
from dataclasses import dataclass
from operator import attrgetter

import numpy as np
from numpy import typing as npt

from service.bundle import fused_io
from service.domain.options import LONGEST_REPEAT, MAX_BEAM_SIZE, ROW_OPTIONS
from service.engine.sequence import Sequence

Records = npt.NDArray[np.void]

_row_options = attrgetter(*ROW_OPTIONS)
_NO_BEAM = (0,) * (MAX_BEAM_SIZE - 1)
_NO_RUNS = (0,) * LONGEST_REPEAT


def _packing(kind: np.dtype[np.void]) -> struct.Struct:
    """Return what packs the fields of a structure, which is several times faster than NumPy's own assignment."""
    characters = {np.dtype(np.int64): "q", np.dtype(np.uint64): "Q", np.dtype(np.int32): "i", np.dtype(np.float32): "f"}
    fields = [kind[name] for name in kind.names or ()]
    packing = struct.Struct("=" + "".join(f"{int(np.prod(each.shape))}{characters[each.base]}" for each in fields))
    assert packing.size == kind.itemsize, "fields are not next to each other"
    return packing


_ROW_PACKING = _packing(fused_io.ROW)


@dataclass(frozen=True, slots=True, eq=False)
class SearchState:
    """Arrays of `bundle.fused_io`, whose `ROW` has one entry per row. Only beams use the last four.

    A row's `slot` says which row of a fused graph's caches is its own: these never move, so when a row moves, the two
    rows swap their slots, and slots are always a permutation. The sources of a sequence's rows are in the slot that its
    first row had when it joined.
    """

    rows: Records  # (N,) of `ROW`
    raw_rows: npt.NDArray[np.uint8]  # (N, 208): the same memory, as structures are slow to copy
    row_bytes: memoryview  # the same memory again
    slots: npt.NDArray[np.int32]  # (N,): the field `slot`
    lengths: memoryview  # (N,): the field `length`; single values of a view are read faster than those of an array
    output_ids: npt.NDArray[np.int64]  # (N, C)
    output_view: memoryview  # (N C,): the same memory
    history: npt.NDArray[np.int32]  # (3 N, C): of rows, then of `hypotheses`
    cache_ranks: npt.NDArray[np.int32]  # (N,): with a plain graph, the rank whose row has a row's caches
    hypotheses: Records  # (2 N,) of `HYPOTHESIS`
    hypothesis_ids: npt.NDArray[np.int64]  # (2 N, C)

    @classmethod
    def empty(cls, max_slots: int, kv_capacity: int) -> "SearchState":
        """Return the state of `max_slots` free rows of `kv_capacity` tokens."""
        rows = np.zeros(max_slots, fused_io.ROW)
        rows["slot"] = np.arange(max_slots)
        raw_rows = rows.view(np.uint8).reshape(max_slots, -1)
        output_ids = np.zeros((max_slots, kv_capacity), np.int64)
        return cls(
            rows,
            raw_rows,
            raw_rows.data.cast("B"),
            rows["slot"],
            rows["length"].data,
            output_ids,
            output_ids.data.cast("B").cast("q"),
            np.zeros((3 * max_slots, kv_capacity), np.int32),
            np.zeros(max_slots, np.int32),
            np.zeros(2 * max_slots, fused_io.HYPOTHESIS),
            np.zeros((2 * max_slots, kv_capacity), np.int64),
        )

    def begin(self, first: int, sequence: Sequence, decoder_start_id: int) -> None:
        """Fill the rows of a sequence, from `first` on, for its first step."""
        rows, slots = self.rows, self.slots
        width, slot, forced = sequence.num_slots, slots.item(first), sequence.forced_ids
        own = slice(first, first + width)
        self._pack(first, slot, sequence, decoder_start_id)
        if width > 1:
            others = slots[first + 1 : own.stop].copy()
            self.raw_rows[first + 1 : own.stop] = self.raw_rows[first]
            slots[first + 1 : own.stop] = others
            rows["rank"][own] = self.cache_ranks[own] = np.arange(width)
            rows["log_prob"][first + 1 : own.stop] = -np.inf  # only the first beam counts at first: all are the same
        if forced:
            self.output_ids[own, : len(forced)] = forced

    def output(self, row: int) -> tuple[int, ...]:
        """Return the output tokens of a row."""
        start = row * self.output_ids.shape[1]
        return tuple(self.output_view[start : start + self.lengths[row]])

    def move(self, source_row: int, target_row: int, *, is_beam: bool) -> None:
        """Move a row to a free one; only a beam has more than its tokens."""
        slots = self.slots
        slot = slots.item(target_row)
        self.raw_rows[target_row] = self.raw_rows[source_row]
        slots[source_row] = slot
        self.output_ids[target_row] = self.output_ids[source_row]
        if is_beam:
            self.history[target_row] = self.history[source_row]
            self.cache_ranks[target_row] = self.cache_ranks[source_row]
            max_slots = len(self.rows)
            for start in (0, max_slots):  # finished hypotheses, and those that were given up
                target, source = start + target_row, start + source_row
                self.hypotheses[target] = self.hypotheses[source]
                self.hypothesis_ids[target] = self.hypothesis_ids[source]
                self.history[max_slots + target] = self.history[max_slots + source]

    def _pack(self, row: int, slot: int, sequence: Sequence, decoder_start_id: int) -> None:
        options, width = sequence.options, sequence.num_slots
        model_prefix, caller_prefix = len(sequence.target_prefix_ids), len(sequence.output_prefix_ids)
        _ROW_PACKING.pack_into(
            self.row_bytes,
            row * _ROW_PACKING.size,
            decoder_start_id,  # token_id
            options.seed or 0,
            0,  # length
            len(sequence.source_ids),
            model_prefix + caller_prefix,  # forced_length
            model_prefix + sequence.max_tokens,  # limit
            slot,
            slot,  # source_slot
            options.max_repeats or fused_io.UNGUARDED,
            0.0,  # log_prob
            width,
            0,  # rank
            row,
            *(_NO_BEAM if width == 1 else [*range(row + 1, row + width), *_NO_BEAM[width - 1 :]]),  # beam_rows
            caller_prefix,
            model_prefix,
            *_row_options(options),
            options.return_scores * fused_io.WANTS_SCORE
            | options.forces_end * fused_io.FORCES_END
            | options.stops_early * fused_io.STOPS_EARLY
            | options.narrows * fused_io.NARROWS
            | sequence.wants_attention * fused_io.WANTS_ATTENTION,
            fused_io.RUNNING,
            0,  # excess
            0,  # num_finished
            0,  # num_given_up
            *_NO_RUNS,
        )
