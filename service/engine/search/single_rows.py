"""Common base of greedy search and sampling: sequences of one row each, with one token chosen per step."""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy import typing as npt

from service.bundle.graph_io import NO_TOKEN
from service.engine.batch import Batch
from service.engine.repeats import Counts, Ids, Mask
from service.engine.runner import Fetch, RunOutput
from service.engine.search.certain import certain_of_row
from service.engine.search.hypotheses import decoded_row
from service.engine.search.strategy import Outcome
from service.engine.sequence import Sequence

Scores = npt.NDArray[np.float32]


class SingleRows(ABC):
    """A `Strategy` except for the choice of tokens. All rows advance at once: this is Python's share of most turns."""

    def __init__(self, eos_id: int) -> None:
        self._eos_id = eos_id
        self._sequences: dict[Sequence, None] = {}
        self._rows: Any = None  # an index of all rows; valid for one revision of the batch
        self._revision = -1

    @property
    def sequences(self) -> Iterable[Sequence]:
        """See `Strategy.sequences`."""
        return self._sequences.keys()

    def join(self, sequence: Sequence) -> None:
        """See `Strategy.join`."""
        self._sequences[sequence] = None

    def leave(self, sequence: Sequence) -> None:
        """See `Strategy.leave`."""
        del self._sequences[sequence]

    def fetch(self, batch: Batch) -> Fetch:
        """See `Strategy.fetch`."""
        wants_scores = any(sequence.options.return_scores for sequence in self._sequences)
        return Fetch(next_ids=True, next_log_probs=wants_scores, num_candidates=0)

    @abstractmethod
    def max_steps(self, batch: Batch) -> int:
        """See `Strategy.max_steps`."""

    @abstractmethod
    def choose(self, batch: Batch, rows: Any, output: RunOutput, step: int) -> tuple[Ids, Scores | None]:
        """Return the tokens a step chose for `rows`, an index of n rows, and their log-probabilities or `None`; each
        (n,)."""

    def advance(self, batch: Batch, output: RunOutput, outcome: Outcome) -> None:
        """See `Strategy.advance`."""
        rows = self._own_rows(batch)
        for step in range(output.num_steps):
            goes_on = self._append(batch, rows, output, step, outcome)
            if step + 1 < output.num_steps:  # a run's values after a row's end are undefined
                rows = batch.row_numbers[rows][goes_on]

    def certain(self, batch: Batch, sequence: Sequence) -> tuple[int, ...]:
        """See `Strategy.certain`."""
        return certain_of_row(batch, sequence)

    def _own_rows(self, batch: Batch) -> Any:
        if self._revision != batch.revision:
            self._revision = batch.revision
            if len(self._sequences) == batch.num_rows:
                self._rows = slice(0, batch.num_rows)  # a slice gives views
            else:
                self._rows = np.sort([sequence.slots[0] for sequence in self._sequences])
        return self._rows

    def _append(self, batch: Batch, rows: Any, output: RunOutput, step: int, outcome: Outcome) -> Mask:
        """Append one token to each row; returns which rows continue, (n,)."""
        assert output.next_ids is not None
        is_broken = output.next_ids[rows, step] == NO_TOKEN
        chosen, log_probs = self.choose(batch, rows, output, step)
        is_open = None  # not forced
        if batch.num_forced:
            lengths = batch.lengths[rows]
            is_open = lengths >= batch.forced_lengths[rows]
            chosen = np.where(is_open, chosen, batch.output_ids[batch.row_numbers[rows], lengths])
        lengths = batch.append(rows, chosen)
        is_ended = ended(chosen, lengths, batch.limits[rows], self._eos_id)
        if batch.num_guarded:
            for row in batch.note_repeats(rows, is_open):
                is_ended |= batch.row_numbers[rows] == row
        if is_open is not None:
            is_ended &= is_open
        if log_probs is not None:
            is_broken |= np.isnan(log_probs)  # NaN only in the projection
            batch.log_probs[rows] += log_probs if is_open is None else np.where(is_open, log_probs, 0)
        outcome.num_generated += len(chosen) if is_open is None else int(np.count_nonzero(is_open))
        if is_broken.any():
            is_ended &= ~is_broken
            outcome.failed.extend(batch.owner(row) for row in batch.row_numbers[rows][is_broken].tolist())
        if is_ended.any():
            for row in batch.row_numbers[rows][is_ended].tolist():
                sequence = batch.owner(row)
                excess = batch.excess(row) if sequence.options.max_repeats else 0
                outcome.finished.append((sequence, (decoded_row(batch, sequence, excess, self._eos_id),)))
        goes_on: Mask = ~(is_ended | is_broken)
        return goes_on


def ended(chosen_ids: Ids, lengths: Counts, limits: Counts, eos_id: int) -> Mask:
    """Return which rows are finished by a chosen token, the end-of-sentence token or the last allowed; all (n,).

    `lengths` include the chosen token.
    """
    is_ended: Mask = (chosen_ids == eos_id) | (lengths >= limits)
    return is_ended
