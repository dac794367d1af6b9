"""Counts of repeated tokens at the end of the rows' outputs, maintained for all rows at once."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy import typing as npt

from service.domain.options import LONGEST_REPEAT
from service.engine.integrity import expect

Ids = npt.NDArray[np.int64]
Counts = npt.NDArray[np.int32]
Mask = npt.NDArray[np.bool_]

UNGUARDED = 2**26  # no row ever has so many repeats; times `LONGEST_REPEAT` it still fits into 32 bits

_PERIODS = np.arange(1, LONGEST_REPEAT + 1, dtype=np.int32)
_NO_TOKEN = -1


class Repeats:
    """For each row and each period p from 1 to `LONGEST_REPEAT`: how many of the last tokens, as far back as the model
    chose them, equal the token p positions before. p times r such tokens mean that p tokens occur r + 1 times in a row.

    Every `rows` argument is a NumPy index of n rows.
    """

    def __init__(self, max_slots: int) -> None:
        self._recent = np.full((max_slots, LONGEST_REPEAT), _NO_TOKEN, np.int64)  # newest first
        self._runs = np.zeros((max_slots, LONGEST_REPEAT), np.int32)

    def clear(self, rows: Any) -> None:
        """Reset rows."""
        self._recent[rows] = _NO_TOKEN
        self._runs[rows] = 0

    def copy(self, source_rows: Any, target_rows: Any) -> None:
        """Copy rows to other rows."""
        self._recent[target_rows] = self._recent[source_rows]
        self._runs[target_rows] = self._runs[source_rows]

    def append(self, rows: Any, token_ids: Ids, is_chosen: Mask | None = None) -> int:
        """Append a token to each row; `token_ids` and `is_chosen` are (n,). Forced tokens end all runs.

        Returns:
            The longest run of all rows: while it is below `max_repeats`, no row repeats too often.
        """
        runs = self._runs[rows]
        runs += 1
        runs *= self._recent[rows] == token_ids[:, None]
        if is_chosen is not None:
            runs *= is_chosen[:, None]
        if not isinstance(rows, slice):  # not a view: the updates applied to a copy
            self._runs[rows] = runs
        self._recent[rows, 1:] = self._recent[rows, :-1]
        self._recent[rows, 0] = token_ids
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

    def check_integrity(self, row: int, output_ids: Sequence[int]) -> None:
        """Check that a row's state matches its output.

        Raises:
            IntegrityError: it does not; names the row.
        """
        recent = [token_id for token_id in self._recent[row].tolist() if token_id != _NO_TOKEN]
        expected = list(output_ids[::-1][:LONGEST_REPEAT])
        expect(recent == expected, f"row {row} remembers {recent}, but ends with {expected} from behind")


def most_repeats(token_ids: Sequence[int]) -> int:
    """Return how often, at most, the same up to `LONGEST_REPEAT` tokens occur in a row; 1 if nothing repeats."""
    most = 1
    for period in range(1, LONGEST_REPEAT + 1):
        run = 0
        for token_id, before in zip(token_ids[period:], token_ids, strict=False):
            run = run + 1 if token_id == before else 0
            most = max(most, run // period + 1)
    return most
