"""What a shortlist means, in sets."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy import typing as npt

Ints = npt.NDArray[np.integer[Any]]


def allowed_tokens(
    always: Ints,
    offsets: Ints,
    ids: Ints,
    source_ids: Sequence[int],
    vocabulary_size: int,
    *,
    has_one_vocabulary: bool,
) -> npt.NDArray[np.bool_]:
    """Return which tokens (V,) the translation of a source may consist of; the arrays are those of `Shortlist`."""
    chosen = set(always.tolist())
    for token in source_ids:
        chosen.update(ids[slice(*offsets[token : token + 2])].tolist() if token + 1 < len(offsets) else [])
    if has_one_vocabulary:
        chosen.update(source_ids)
    for token in range(len(always), vocabulary_size):
        if len(chosen) % 8 == 0:
            break
        chosen.add(token)
    return np.isin(np.arange(vocabulary_size), list(chosen))
