"""Counts of repeated tokens at the end of the rows' outputs, maintained for all rows at once."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy import typing as npt

from service.domain.options import LONGEST_REPEAT
from service.engine.integrity import IntegrityError

Ids = npt.NDArray[np.int64]
Counts = npt.NDArray[np.int32]
Mask = npt.NDArray[np.bool_]

UNGUARDED = 2**26  # no row ever has so many repeats; times `LONGEST_REPEAT` it still fits into 32 bits

_PERIODS = np.arange(1, LONGEST_REPEAT + 1, dtype=np.int32)


class Repeats:
    """For each row and each period p from 1 to `LONGEST_REPEAT`: how many of the last tokens, as far back as the model
    chose them, equal the token p positions before. p times r such tokens mean that p tokens occur r + 1 times in a row.

    Every `rows` argument is a NumPy index of n rows.
    """

    def __init__(self, runs: Counts, output_ids: Ids) -> None:
        """Count in `runs` (max_slots, LONGEST_REPEAT) what is in `output_ids` (max_slots, kv_capacity)."""
        self._runs = runs
        self._tokens = output_ids.reshape(-1)
        self._starts = np.arange(len(runs)) * output_ids.shape[1]  # of rows in `_tokens`

    def copy(self, source_rows: Any, target_rows: Any) -> None:
        """Copy rows to other rows."""
        self._runs[target_rows] = self._runs[source_rows]

    def append(self, rows: Any, lengths: Counts, is_chosen: Mask | None = None) -> int:
        """Count the last tokens of rows of these `lengths`; they and `is_chosen` are (n,). Forced tokens end all runs.

        Returns:
            The longest run of all rows: while it is below `max_repeats`, no row repeats too often.
        """
        last = self._starts[rows] + lengths - 1
        before = self._tokens.take(last[:, None] - _PERIODS, mode="wrap")  # (n, p)
        is_same = before == self._tokens.take(last)[:, None]
        is_same &= lengths[:, None] > _PERIODS
        if is_chosen is not None:
            is_same &= is_chosen[:, None]
        runs = (self._runs[rows] + 1) * is_same
        self._runs[rows] = runs
        return int(runs.max())

    def excess(self, row: int, max_repeats: int) -> int:
        """Return the number of tokens at the end of a row that repeat once too often; 0 if none do."""
        over = self._runs[row] >= max_repeats * _PERIODS
        return int(over.argmax()) + 1 if over.any() else 0

    def doubtful(self, row: int, max_repeats: int) -> int:
        """Return how many tokens at the end of a row may turn out to be an excess."""
        runs = self._runs[row]
        if max(runs.tolist()) < max_repeats:  # the usual case, and a cheap test
            return 0
        return int((runs - (max_repeats - 1) * _PERIODS).max(initial=0))

    def check_integrity(self, row: int, output_ids: Sequence[int], num_forced: int) -> None:
        """Check that a row's state matches its output, which begins with `num_forced` forced tokens.

        Raises:
            IntegrityError: it does not; names the row.
        """
        expected = [0] * LONGEST_REPEAT
        for period in range(1, min(LONGEST_REPEAT, len(output_ids) - 1) + 1):
            if output_ids[-1] == output_ids[-1 - period]:
                expected[period - 1] = _run(output_ids, num_forced, period)
        found = self._runs[row].tolist()
        if found != expected:
            raise IntegrityError(f"row {row} remembers runs of {found} tokens, but ends with {expected}")


def _run(output_ids: Sequence[int], num_forced: int, period: int) -> int:
    run = 0
    for place in range(len(output_ids) - 1, max(num_forced, period) - 1, -1):
        if output_ids[place] != output_ids[place - period]:
            break
        run += 1
    return run


def most_repeats(token_ids: Sequence[int]) -> int:
    """Return how often, at most, the same up to `LONGEST_REPEAT` tokens occur in a row; 1 if nothing repeats."""
    most = 1
    for period in range(1, LONGEST_REPEAT + 1):
        run = 0
        for token_id, before in zip(token_ids[period:], token_ids, strict=False):
            run = run + 1 if token_id == before else 0
            most = max(most, run // period + 1)
    return most
