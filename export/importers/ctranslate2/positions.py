"""What a CTranslate2 model adds for positions: a stored table, which may be a sinusoid, or its own sinusoid."""

import itertools

import numpy as np

from export.architecture import PositionConfig
from export.architecture.config import PositionLayout
from export.architecture.positions import sinusoidal_table
from export.importers.ctranslate2.container import Floats
from export.importers.ctranslate2.variables import Variables

# `generate_sinusoidal_position_encoding` (src/layers/common.cc): positions begin at 1.
COMPUTED = PositionConfig(layout="halves", fairseq_exponent=True, offset=1)
MAX_POSITIONS = 1024  # CTranslate2 computes any number of them
_MOST_ROWS = 100_000
_LAYOUTS: tuple[PositionLayout, ...] = ("halves", "interleaved")
# Of tables that converters store: Marian's, fairseq's, OpenNMT-py's.
_STORED = tuple(
    PositionConfig(layout=layout, fairseq_exponent=exponent, offset=offset)
    for layout, exponent, offset in itertools.product(_LAYOUTS, (False, True), (0, 1, 2))
)
_MAX_ERROR = 1e-4  # of a table in float32; rounded ones are taken as they are
_FIRST_ROWS = 4  # which differ in all of `_STORED`


def table_name(side: str) -> str:
    """Return the name of a side's stored table."""
    return f"{side}/position_encodings/encodings"


def shared_positions(variables: Variables, width: int, problems: list[str]) -> tuple[PositionConfig, tuple[int, int]]:
    """Return the configuration and the numbers of positions, source and target; problems are added to `problems`.

    Tables that are no sinusoid, or not the same one on both sides, are taken as they are.
    """
    names = [table_name(side) for side in ("encoder", "decoder")]
    stored = [variables.has(name) for name in names]
    if not any(stored):
        return COMPUTED, (MAX_POSITIONS, MAX_POSITIONS)
    learned = PositionConfig(layout="learned")
    if not all(stored):
        problems.append(f"{names[stored.index(False)]} is missing; supported are tables of both sides, or none")
        return learned, (1, 1)
    shapes = [variables.shape(name) for name in names]
    for name, shape in zip(names, shapes, strict=True):
        if len(shape) != 2 or shape[1] != width or not 1 <= shape[0] <= _MOST_ROWS:
            problems.append(f"{name} has shape {shape}, expected up to {_MOST_ROWS} positions of width {width}")
            return learned, (1, 1)
    found = {_recognised(variables.floats(name), variables.kind(name)) for name in names}
    config = found.pop()
    return (learned if found or config is None else config), (shapes[0][0], shapes[1][0])


def _recognised(table: Floats, kind: str) -> PositionConfig | None:
    num_positions, width = table.shape
    if width % 2 or kind != "float32":
        return None
    for config in _STORED:
        for rows in (_FIRST_ROWS, num_positions):
            expected = sinusoidal_table(min(rows, num_positions), width, config)
            if float(np.abs(table[:rows] - expected).max()) > _MAX_ERROR:
                break
        else:
            return config
    return None
