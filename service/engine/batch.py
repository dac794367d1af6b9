"""The running batch: which sequence owns which row, and the memory of the rows, which the search in C++ changes."""

import struct
from collections.abc import Iterable
from dataclasses import dataclass
from operator import attrgetter
from typing import NamedTuple

import numpy as np
from numpy import typing as npt

from service.bundle import fused_io
from service.domain.options import LONGEST_REPEAT, MAX_BEAM_SIZE, ROW_OPTIONS
from service.engine.integrity import IntegrityError, expect
from service.engine.sequence import Sequence, SequenceStatus

Records = npt.NDArray[np.void]
Counts = npt.NDArray[np.int32]
Scores = npt.NDArray[np.float32]

_row_options = attrgetter(*ROW_OPTIONS)
_NO_BEAM = (0,) * (MAX_BEAM_SIZE - 1)
_NO_RUNS = (0,) * LONGEST_REPEAT


def _packing(kind: np.dtype[np.void]) -> struct.Struct:
    """Return a packer for the fields of a structure, several times faster than NumPy's assignment."""
    characters = {np.dtype(np.int64): "q", np.dtype(np.uint64): "Q", np.dtype(np.int32): "i", np.dtype(np.float32): "f"}
    fields = [kind[name] for name in kind.names or ()]
    packing = struct.Struct("=" + "".join(f"{int(np.prod(each.shape))}{characters[each.base]}" for each in fields))
    assert packing.size == kind.itemsize, "fields are not next to each other"
    return packing


_ROW_PACKING = _packing(fused_io.ROW)


@dataclass(frozen=True, slots=True, eq=False)
class SearchState:
    """Arrays of `bundle.fused_io`, whose `ROW` has one entry per row. Only beams use the last four.

    A row's `slot` is its row of a fused graph's caches, which never move: when a row moves, both rows swap slots, so
    slots are always a permutation. A sequence's sources are in the slot that its first row had when it joined.
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


class Move(NamedTuple):
    """A move of a row's content to another row, needed when the old row leaves the live prefix."""

    source_row: int
    target_row: int
    length: int  # live tokens of the row's self-attention cache


class Batch:
    """The rows of the running sequences: rows [0, num_rows) are live and each belongs to one sequence; the rest are
    free.

    What is known of each row is in `state`; views of its fields, of `max_slots` entries, are `lengths` (tokens already
    in the self-attention cache, which equals the number of output tokens, forced ones included), `source_lengths`,
    `forced_lengths`, `limits` (the length at which the output is cut), `log_probs` (summed over the tokens the model
    chose), `max_repeats` (as requested, or as many repeats as the source has; `UNGUARDED` if not requested), `runs` and
    `output_ids` (max_slots, kv_capacity). The rows of a sequence are in the order of its `slots`, best beam first.
    """

    def __init__(self, max_slots: int, kv_capacity: int) -> None:
        self.max_slots = max_slots
        self.kv_capacity = kv_capacity
        self.state = SearchState.empty(max_slots, kv_capacity)
        rows = self.state.rows
        self.lengths: Counts = rows["length"]
        self.source_lengths: Counts = rows["source_length"]
        self.forced_lengths: Counts = rows["forced_length"]
        self.limits: Counts = rows["limit"]
        self.log_probs: Scores = rows["log_prob"]
        self.max_repeats: Counts = rows["max_repeats"]
        self.runs: Counts = rows["runs"]
        self._ranks: Counts = rows["rank"]
        self._beam_rows: Counts = rows["beam_rows"]
        self.output_ids = self.state.output_ids
        self.num_rows = self.num_sequences = 0  # live; kept as numbers, as every call reads them several times
        self._owners: list[Sequence] = []
        self._sequences: dict[Sequence, None] = {}

    @property
    def num_free(self) -> int:
        return self.max_slots - self.num_rows

    @property
    def sequences(self) -> Iterable[Sequence]:
        return self._sequences.keys()

    def owner(self, row: int) -> Sequence:
        return self._owners[row]

    def can_join(self, sequence: Sequence) -> bool:
        return sequence.num_slots <= self.num_free

    def join(self, sequence: Sequence, decoder_start_id: int) -> list[int]:
        """Assign rows to a sequence, reset for the first step. Requires `can_join`."""
        assert self.can_join(sequence), "join without can_join"
        assert not sequence.slots, "a sequence runs once"
        assert sequence.status is not SequenceStatus.FINISHED, "a sequence runs once"
        first = self.num_rows
        self.state.begin(first, sequence, decoder_start_id)
        sequence.slots = list(range(first, first + sequence.num_slots))
        sequence.status = SequenceStatus.RUNNING
        self._owners.extend([sequence] * sequence.num_slots)
        self._sequences[sequence] = None
        self.num_rows += sequence.num_slots
        self.num_sequences += 1
        return sequence.slots

    def leave(self, sequence: Sequence) -> list[Move]:
        """Free a sequence's rows and fill the gaps with the last live rows; return the moves, each row once."""
        num_left = len(self._owners) - len(sequence.slots)
        holes = [row for row in sequence.slots if row < num_left]
        beyond = [row for row in range(num_left, len(self._owners)) if self._owners[row] is not sequence]
        lengths = self.state.lengths
        moves = [Move(source, target, lengths[source]) for source, target in zip(beyond, holes, strict=True)]
        for source, target, _ in moves:
            owner = self._owners[source]
            self._owners[target] = owner
            is_beam = owner.num_slots > 1
            self.state.move(source, target, is_beam=is_beam)
            owner.slots[owner.slots.index(source)] = target
            ranks, beam_rows = self._ranks, self._beam_rows
            leader = next(row for row in owner.slots if not ranks[row]) if is_beam else target
            beam_rows[leader, ranks[target]] = target
        del self._owners[num_left:]
        sequence.slots = []
        sequence.status = SequenceStatus.FINISHED
        del self._sequences[sequence]
        self.num_rows = num_left
        self.num_sequences -= 1
        return moves

    def check_integrity(self) -> None:
        owned = [row for sequence in self._sequences for row in sequence.slots]
        expect(sorted(owned) == list(range(self.num_rows)), f"owned rows {sorted(owned)}, live {self.num_rows}")
        num_sequences = len(self._sequences)
        expect(num_sequences == self.num_sequences, f"{num_sequences} sequences run, {self.num_sequences} are counted")
        expect(self.num_rows <= self.max_slots, f"{self.num_rows} rows are live, there are {self.max_slots}")
        for sequence in self._sequences:
            slots = sequence.slots
            if sequence.status is not SequenceStatus.RUNNING:
                raise IntegrityError(f"a {sequence.status} sequence owns {slots}")
            if len(slots) != sequence.num_slots:
                raise IntegrityError(f"{slots} for {sequence.num_slots} beams")
            if any(self._owners[row] is not sequence for row in slots):
                raise IntegrityError(f"not the owner of {slots}")
        live = slice(0, self.num_rows)
        expect((self.lengths[live] <= self.limits[live]).all(), "a row is past its limit")
        expect((self.limits[live] <= self.kv_capacity).all(), "a row's limit is past the capacity")
        self._check_slots()
        guards, source_lengths = self.max_repeats[live].tolist(), self.source_lengths[live].tolist()
        for row, sequence in enumerate(self._owners):
            if source_lengths[row] != len(sequence.source_ids):
                raise IntegrityError(f"row {row} has another row's source")
            asked, guard = sequence.options.max_repeats, guards[row]
            if guard != fused_io.UNGUARDED if not asked else not asked <= guard < fused_io.UNGUARDED:
                raise IntegrityError(f"row {row} has another row's guard")

    def _check_slots(self) -> None:
        rows = self.state.rows
        slots, source_slots_of_rows = rows["slot"].tolist(), rows["source_slot"].tolist()
        expect(sorted(slots) == list(range(self.max_slots)), f"slots {slots} are no permutation")
        ranks_of_rows = rows["rank"].tolist()
        sources: set[int] = set()
        for sequence in self._sequences:
            own = sequence.slots
            source_slots, own_slots = {source_slots_of_rows[row] for row in own}, {slots[row] for row in own}
            expect(len(source_slots) == 1, f"rows {own} of a sequence have the sources {source_slots}")
            expect(source_slots <= own_slots, f"the source {source_slots} of rows {own} is not in one of their slots")
            sources |= source_slots
            ranks = [ranks_of_rows[row] for row in own]
            expect(sorted(ranks) == list(range(len(own))), f"rows {own} have the ranks {ranks}")
            beam_rows = rows["beam_rows"][own[ranks.index(0)]].tolist()
            expect([beam_rows[rank] for rank in ranks] == own, f"rows {own} are known as {beam_rows}")
        expect(len(sources) == self.num_sequences, "two sequences share a source")
