"""Tables of positions that a formula gives, of all that people compute. Does not import torch."""

import itertools

import numpy as np

from export.architecture import PositionConfig
from export.architecture.config import PositionLayout
from export.architecture.positions import sinusoidal_table
from export.architecture.stored import Array

_FIRST_ROWS = 4  # which differ in all formulas
_LAYOUTS: tuple[PositionLayout, ...] = ("halves", "interleaved")
FORMULAS = [
    # Marian's, fairseq's, OpenNMT-py's and the paper's.
    *(
        PositionConfig(layout=layout, fairseq_exponent=is_fairseq, base=base, offset=offset)
        for base, layout, is_fairseq, offset in itertools.product((10000.0, 1000.0), _LAYOUTS, (False, True), range(5))
    ),
    # Document 002 as written (`docs/your-transformer.md`).
    *(
        PositionConfig(base=base, cosine_exponent="unbracketed", offset=offset)
        for base, offset in itertools.product((10000.0, 1000.0), range(5))
    ),
]


def difference(table: Array, config: PositionConfig) -> float:
    """Return the largest difference between a table (P, d) and that of a formula, which has an even d."""
    return float(np.abs(table - sinusoidal_table(len(table), table.shape[1], config)).max())


def find_formula(table: Array, max_error: float) -> PositionConfig | None:
    """Return the formula that gives a table (P, d), if one does, whatever d is."""
    if table.shape[1] < 4 or table.shape[1] % 2:
        return None
    return next(
        (
            config
            for config in FORMULAS
            if all(difference(rows, config) <= max_error for rows in (table[:_FIRST_ROWS], table))
        ),
        None,
    )
