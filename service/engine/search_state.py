"""The memory of the running rows, changed in place by Python's strategies or by the operator of a fused graph."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy import typing as npt

from service.bundle import fused_io
from service.domain.options import LONGEST_REPEAT, MAX_BEAM_SIZE
from service.engine.repeats import UNGUARDED
from service.engine.sequence import Sequence

Records = npt.NDArray[np.void]

_NO_RUNS = (0,) * LONGEST_REPEAT


@dataclass(frozen=True, slots=True, eq=False)
class SearchState:
    """Arrays of `bundle.fused_io`, whose `ROW` has one entry per row. Only fused graphs use the last three.

    A row's `slot` says which row of a fused graph's caches is its own: these never move, so when a row moves, the two
    rows swap their slots, and slots are always a permutation. The sources of a sequence's rows are in the slot that its
    first row had when it joined.
    """

    rows: Records  # (N,) of `ROW`
    raw_rows: npt.NDArray[np.uint8]  # (N, 208): the same memory, as structures are slow to copy
    output_ids: npt.NDArray[np.int64]  # (N, C)
    history: npt.NDArray[np.int32]  # (N, C)
    hypotheses: Records  # (2 N,) of `HYPOTHESIS`
    hypothesis_ids: npt.NDArray[np.int64]  # (2 N, C)

    @classmethod
    def empty(cls, max_slots: int, kv_capacity: int) -> "SearchState":
        """Return the state of `max_slots` free rows of `kv_capacity` tokens."""
        rows = np.zeros(max_slots, fused_io.ROW)
        rows["slot"] = np.arange(max_slots)
        return cls(
            rows,
            rows.view(np.uint8).reshape(max_slots, -1),
            np.zeros((max_slots, kv_capacity), np.int64),
            np.zeros((max_slots, kv_capacity), np.int32),
            np.zeros(2 * max_slots, fused_io.HYPOTHESIS),
            np.zeros((2 * max_slots, kv_capacity), np.int64),
        )

    def begin(self, first: int, sequence: Sequence, decoder_start_id: int) -> None:
        """Fill the rows of a sequence, from `first` on, for its first step."""
        rows, slots = self.rows, self.rows["slot"]
        width, slot, forced = sequence.num_slots, int(slots[first]), sequence.forced_ids
        own = slice(first, first + width)
        others = slots[first + 1 : own.stop].copy()
        rows[first] = _first_row(first, slot, sequence, decoder_start_id)
        if width > 1:
            self.raw_rows[first + 1 : own.stop] = self.raw_rows[first]
            slots[first + 1 : own.stop] = others
            rows["rank"][own] = np.arange(width)
            rows["log_prob"][first + 1 : own.stop] = -np.inf  # only the first beam counts at first: all are the same
        if forced:
            self.output_ids[own, : len(forced)] = forced

    def move(self, source_row: int, target_row: int) -> None:
        """Move a row to a free one."""
        rows, slots = self.rows, self.rows["slot"]
        slot = int(slots[target_row])
        self.raw_rows[target_row] = self.raw_rows[source_row]
        slots[source_row] = slot
        length = max(int(rows["length"][target_row]), int(rows["forced_length"][target_row]))
        self.output_ids[target_row, :length] = self.output_ids[source_row, :length]
        if rows["width"][target_row] > 1:
            self.history[target_row, :length] = self.history[source_row, :length]
            for start in (0, len(rows)):  # finished hypotheses, and those that were given up
                self.hypotheses[start + target_row] = self.hypotheses[start + source_row]
                self.hypothesis_ids[start + target_row] = self.hypothesis_ids[start + source_row]


def _first_row(row: int, slot: int, sequence: Sequence, decoder_start_id: int) -> tuple[Any, ...]:
    """Return a `ROW`, in the order of its fields."""
    options, width = sequence.options, sequence.num_slots
    model_prefix, caller_prefix = len(sequence.target_prefix_ids), len(sequence.output_prefix_ids)
    return (
        decoder_start_id,  # token_id
        options.seed or 0,
        0,  # length
        len(sequence.source_ids),
        model_prefix + caller_prefix,  # forced_length
        model_prefix + sequence.max_tokens,  # limit
        slot,
        slot,  # source_slot
        options.max_repeats or UNGUARDED,
        options.top_k,
        0.0,  # log_prob
        options.temperature,
        options.top_p,
        width,
        0,  # rank
        [*range(row, row + width), *[0] * (MAX_BEAM_SIZE - width)],  # beam_rows
        caller_prefix,
        model_prefix,
        options.no_repeat_ngram_size,
        options.min_output_tokens,
        options.length_penalty,
        options.repetition_penalty,
        options.return_scores * fused_io.WANTS_SCORE
        | options.forces_end * fused_io.FORCES_END
        | options.stops_early * fused_io.STOPS_EARLY,
        fused_io.RUNNING,
        0,  # excess
        0,  # num_finished
        0,  # num_given_up
        _NO_RUNS,
    )
