"""The running batch: which sequence owns which row, and the rows' tokens, lengths and scores."""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy import typing as npt

from service.bundle.fused_io import UNGUARDED
from service.engine.integrity import IntegrityError, expect
from service.engine.search_state import SearchState
from service.engine.sequence import Sequence, SequenceStatus

Counts = npt.NDArray[np.int32]
Scores = npt.NDArray[np.float32]


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
        self._owners: list[Sequence] = []
        self._sequences: dict[Sequence, None] = {}

    @property
    def num_rows(self) -> int:
        return len(self._owners)

    @property
    def num_free(self) -> int:
        return self.max_slots - len(self._owners)

    @property
    def sequences(self) -> Iterable[Sequence]:
        return self._sequences.keys()

    @property
    def num_sequences(self) -> int:
        return len(self._sequences)

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
        return sequence.slots

    def leave(self, sequence: Sequence) -> list[Move]:
        """Free a sequence's rows and fill the gaps with the last live rows; returns the moves, each row once."""
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
        return moves

    def check_integrity(self) -> None:
        """Check that every live row has one owner, that owners know their rows, and that lengths are in range."""
        owned = [row for sequence in self._sequences for row in sequence.slots]
        expect(sorted(owned) == list(range(self.num_rows)), f"owned rows {sorted(owned)}, live {self.num_rows}")
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
            if guard != UNGUARDED if not asked else not asked <= guard < UNGUARDED:
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
