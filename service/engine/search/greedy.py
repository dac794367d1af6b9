"""Greedy search over a whole batch at once: the graph chose the most probable tokens; what is left is when to end."""

import numpy as np
from numpy import typing as npt

Ids = npt.NDArray[np.int64]
Counts = npt.NDArray[np.int32]
Mask = npt.NDArray[np.bool_]


def ended(chosen_ids: Ids, lengths: Counts, limits: Counts, eos_id: int) -> Mask:
    """Which rows are finished, after a chosen token: by the end of the sentence or at their limit; all (n,).

    `lengths` count the chosen token.
    """
    is_ended: Mask = (chosen_ids == eos_id) | (lengths >= limits)
    return is_ended
