"""The running batch: which sequence owns which row, and the rows' tokens, lengths and scores."""

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy import typing as npt

from service.engine.integrity import expect
from service.engine.repeats import UNGUARDED, Ids, Mask, Repeats, most_repeats
from service.engine.sequence import Sequence, SequenceStatus


class Move(NamedTuple):
    """A move of a row's content to another row, needed when the old row leaves the live prefix."""

    source_row: int
    target_row: int
    length: int  # live tokens of the row's self-attention cache


class Batch:
    """The rows of the running sequences: rows [0, num_rows) are live and each belongs to one sequence; the rest are
    free.

    Per row, in arrays of `max_slots` entries: `token_ids` (the input of the next step), `lengths` (tokens already in
    the self-attention cache, which equals the number of output tokens, forced ones included), `source_lengths`,
    `forced_lengths`, `limits` (the length at which the output is cut), `log_probs` (summed over the tokens the model
    chose), `temperatures`, `top_ks`, `top_ps`, `seeds`, `max_repeats` (as requested, or as many repeats as the source
    has; `UNGUARDED` if not requested) and `output_ids` (max_slots, kv_capacity). The rows of a sequence are in the
    order of its `slots`, best beam first. `repeats` is maintained only while `num_guarded` is not 0. `revision` changes
    whenever a sequence joins or leaves; in between, rows do not move, except beams within their sequence.
    """

    def __init__(self, max_slots: int, kv_capacity: int) -> None:
        self.max_slots = max_slots
        self.kv_capacity = kv_capacity
        self.token_ids = np.zeros(max_slots, np.int64)
        self.lengths = np.zeros(max_slots, np.int32)
        self.source_lengths = np.zeros(max_slots, np.int32)
        self.forced_lengths = np.zeros(max_slots, np.int32)
        self.limits = np.zeros(max_slots, np.int32)
        self.log_probs = np.zeros(max_slots, np.float32)
        self.row_numbers = np.arange(max_slots)  # 0, 1, 2...: to index an array by row and column at once
        self.num_forced = 0  # running sequences with forced tokens
        self.num_guarded = 0  # running sequences with a limit on repeats
        self.temperatures = np.zeros(max_slots, np.float32)
        self.top_ks = np.zeros(max_slots, np.int32)
        self.top_ps = np.zeros(max_slots, np.float32)
        self.seeds = np.zeros(max_slots, np.uint64)
        self.max_repeats = np.zeros(max_slots, np.int32)
        self.repeats = Repeats(max_slots)
        self.output_ids = np.zeros((max_slots, kv_capacity), np.int64)
        self._per_row: list[npt.NDArray[np.generic]] = [
            self.token_ids, self.lengths, self.source_lengths, self.forced_lengths, self.limits, self.log_probs,
            self.temperatures, self.top_ks, self.top_ps, self.seeds, self.max_repeats,
        ]  # fmt: skip
        self._owners: list[Sequence] = []
        self._sequences: dict[Sequence, None] = {}
        self.revision = 0

    @property
    def num_rows(self) -> int:
        """Return the number of live rows."""
        return len(self._owners)

    @property
    def num_free(self) -> int:
        """Return the number of free rows."""
        return self.max_slots - len(self._owners)

    @property
    def sequences(self) -> Iterable[Sequence]:
        """Return the running sequences, oldest first."""
        return self._sequences.keys()

    @property
    def num_sequences(self) -> int:
        """Return the number of running sequences."""
        return len(self._sequences)

    def owner(self, row: int) -> Sequence:
        """Return the sequence that a live row belongs to."""
        return self._owners[row]

    def can_join(self, sequence: Sequence) -> bool:
        """Return whether enough rows are free."""
        return sequence.num_slots <= self.num_free

    def join(self, sequence: Sequence, decoder_start_id: int) -> list[int]:
        """Assign rows to a sequence, reset for the first step. Requires `can_join`."""
        assert self.can_join(sequence), "join without can_join"
        assert not sequence.slots, "a sequence runs once"
        assert sequence.status is not SequenceStatus.FINISHED, "a sequence runs once"
        first, forced, options = self.num_rows, sequence.forced_ids, sequence.options
        rows = slice(first, first + sequence.num_slots)
        self.token_ids[rows] = decoder_start_id
        self.lengths[rows] = 0
        self.source_lengths[rows] = len(sequence.source_ids)
        self.forced_lengths[rows] = len(forced)
        self.limits[rows] = len(sequence.target_prefix_ids) + sequence.max_tokens
        self.log_probs[rows] = -np.inf  # only the first beam counts at first: the others are copies of it
        self.log_probs[first] = 0.0
        self.temperatures[rows] = options.temperature
        self.top_ks[rows] = options.top_k
        self.top_ps[rows] = options.top_p
        self.seeds[rows] = options.seed or 0
        self.max_repeats[rows] = options.max_repeats or UNGUARDED
        self.output_ids[rows, : len(forced)] = forced
        sequence.slots = list(range(rows.start, rows.stop))
        sequence.status = SequenceStatus.RUNNING
        self.num_forced += bool(forced)
        self.num_guarded += bool(options.max_repeats)
        if options.max_repeats:
            self.repeats.clear(rows)
        self._owners.extend([sequence] * sequence.num_slots)
        self._sequences[sequence] = None
        self.revision += 1
        return sequence.slots

    def leave(self, sequence: Sequence) -> list[Move]:
        """Free a sequence's rows and fill the gaps with the last live rows; returns the moves, each row once."""
        num_left = self.num_rows - len(sequence.slots)
        holes = [row for row in sequence.slots if row < num_left]
        beyond = [row for row in range(num_left, self.num_rows) if self._owners[row] is not sequence]
        moves = [Move(source, target, int(self.lengths[source])) for source, target in zip(beyond, holes, strict=True)]
        for source, target, length in moves:
            self._copy(source, target, length)
            owner = self._owners[source]
            owner.slots[owner.slots.index(source)] = target
            self._owners[target] = owner
        del self._owners[num_left:]
        sequence.slots = []
        sequence.status = SequenceStatus.FINISHED
        self.num_forced -= bool(sequence.forced_ids)
        self.num_guarded -= bool(sequence.options.max_repeats)
        del self._sequences[sequence]
        self.revision += 1
        return moves

    def append(self, rows: Any, token_ids: Ids) -> npt.NDArray[np.int32]:
        """Append a token to each of `rows`, an index of n rows, as input of the next run; `token_ids` is (n,) or a
        scalar.

        This is the only place where lengths advance, and with them the rows' caches: the run that chose a token
        appended the previous one. Returns the new lengths.
        """
        lengths: npt.NDArray[np.int32] = self.lengths[rows]
        self.output_ids[self.row_numbers[rows], lengths] = token_ids
        self.token_ids[rows] = token_ids
        lengths += 1
        if not isinstance(rows, slice):  # not a view: the increment applied to a copy
            self.lengths[rows] = lengths
        return lengths

    def copy_outputs(self, source_rows: npt.NDArray[np.intp], target_rows: npt.NDArray[np.intp]) -> None:
        """Overwrite beams' outputs by those of other beams of the same sequence; no row is both source and target."""
        longest = int(self.lengths[source_rows].max())
        self.output_ids[target_rows, :longest] = self.output_ids[source_rows, :longest]
        if self.num_guarded:
            self.repeats.copy(source_rows, target_rows)

    def note_repeats(self, rows: Any, token_ids: Ids, is_chosen: Mask | None = None) -> list[int]:
        """Record the tokens (n,) appended to `rows`, an index of n rows; returns the rows that exceed their limit on
        repeats.

        The source's own repeats are computed only here, lazily: hardly any output gets that far.
        """
        longest_run, allowed = self.repeats.append(rows, token_ids, is_chosen), self.max_repeats[rows]
        if longest_run < allowed.min():
            return []
        over = [row for row in self.row_numbers[rows][allowed < UNGUARDED].tolist() if self.excess(row)]
        for row in over:
            owner = self._owners[row]
            self.max_repeats[owner.slots] = max(owner.options.max_repeats, most_repeats(owner.source_ids))
        return [row for row in over if self.excess(row)]

    def excess(self, row: int) -> int:
        """Return the number of tokens at the end of a row that repeat once more than allowed."""
        return self.repeats.excess(row, int(self.max_repeats[row]))

    def check_integrity(self) -> None:
        """Check that every live row has one owner, that owners know their rows, and that lengths are in range.

        Raises:
            IntegrityError: the state is inconsistent; names the row or sequence.
        """
        owned = [row for sequence in self._sequences for row in sequence.slots]
        expect(sorted(owned) == list(range(self.num_rows)), f"owned rows {sorted(owned)}, live {self.num_rows}")
        expect(self.num_rows <= self.max_slots, f"{self.num_rows} rows are live, there are {self.max_slots}")
        for sequence in self._sequences:
            expect(sequence.status is SequenceStatus.RUNNING, f"a {sequence.status} sequence owns {sequence.slots}")
            expect(len(sequence.slots) == sequence.num_slots, f"{sequence.slots} for {sequence.num_slots} beams")
            is_known = all(self._owners[row] is sequence for row in sequence.slots)
            expect(is_known, f"not the owner of {sequence.slots}")
        live = slice(0, self.num_rows)
        expect((self.lengths[live] <= self.limits[live]).all(), "a row is past its limit")
        expect((self.limits[live] <= self.kv_capacity).all(), "a row's limit is past the capacity")
        num_forced = sum(bool(sequence.forced_ids) for sequence in self._sequences)
        expect(num_forced == self.num_forced, f"{num_forced} begin with what is forced, not {self.num_forced}")
        num_guarded = sum(sequence.options.max_repeats > 0 for sequence in self._sequences)
        expect(num_guarded == self.num_guarded, f"{num_guarded} are guarded, not {self.num_guarded}")
        for row, sequence in enumerate(self._owners):
            asked, length = sequence.options.max_repeats, len(sequence.source_ids)
            expect(self.source_lengths[row] == length, f"row {row} has another row's source")
            is_known = self.max_repeats[row] == (asked or UNGUARDED)
            is_right = is_known or (asked and self.max_repeats[row] == most_repeats(sequence.source_ids))
            expect(is_right, f"row {row} has another row's guard")
            if asked:
                self.repeats.check_integrity(row, self.output_ids[row, : self.lengths[row]].tolist())

    def _copy(self, source_row: int, target_row: int, length: int) -> None:
        for array in self._per_row:
            array[target_row] = array[source_row]
        if self.num_guarded:
            self.repeats.copy(source_row, target_row)
        length = max(length, int(self.forced_lengths[source_row]))
        self.output_ids[target_row, :length] = self.output_ids[source_row, :length]
