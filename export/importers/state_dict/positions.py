"""The position tables in a state dict: buffers, which show how they were computed."""

import itertools
import typing
from collections.abc import Iterable

import numpy as np
from torch import Tensor

from export.architecture import PositionConfig
from export.architecture.config import CosineExponent
from export.architecture.positions import sinusoidal_table

# Document 002 as written, as intended, and the paper.
READINGS = [
    PositionConfig(base=base, cosine_exponent=exponent)
    for base, exponent in itertools.product((1000.0, 10000.0), typing.get_args(CosineExponent))
]
# Tables are computed in float32, angle by angle: the error grows with the angle, at most the position's number.
TOLERANCE, TOLERANCE_PER_POSITION = 1e-5, 1e-6


def largest_difference(table: Tensor, config: PositionConfig) -> float:
    """Return the largest difference between a (P, d) buffer and the table of `config`."""
    num_positions, width = table.shape
    return float(np.abs(table.float().numpy() - sinusoidal_table(num_positions, width, config)).max())


def fits(table: Tensor, config: PositionConfig) -> bool:
    """Return whether a (P, d) buffer is the table of `config`, up to rounding."""
    return (
        table.shape[1] % 2 == 0
        and largest_difference(table, config) <= TOLERANCE + TOLERANCE_PER_POSITION * table.shape[0]
    )


def find_reading(tables: Iterable[Tensor]) -> PositionConfig | None:
    """Return the reading of the documents' formula that gives all (P, d) tables, if one does."""
    tables = list(tables)
    return next((reading for reading in READINGS if all(fits(table, reading) for table in tables)), None)


def describe(config: PositionConfig) -> str:
    """Return the keys in which readings differ, with their values."""
    return f"base {config.base:g}, cosine_exponent {config.cosine_exponent}"
