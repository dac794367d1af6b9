"""Positions of a CTranslate2 model: a stored table, which may be a sinusoid, or its own sinusoid."""

from export.architecture import PositionConfig
from export.importers.ctranslate2.variables import Variables
from export.importers.sinusoids import find_formula

# `generate_sinusoidal_position_encoding` (src/layers/common.cc): positions begin at 1.
COMPUTED = PositionConfig(layout="halves", fairseq_exponent=True, offset=1)
MAX_POSITIONS = 1024  # CTranslate2 computes any number of them
_MOST_ROWS = 100_000
_MAX_ERROR = 1e-4  # of a table in float32; rounded ones are taken as they are


def table_name(side: str) -> str:
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
        problems.append(f"{names[stored.index(False)]} is missing; supported: tables of both sides, or none")
        return learned, (1, 1)
    shapes = [variables.shape(name) for name in names]
    for name, shape in zip(names, shapes, strict=True):
        if len(shape) != 2 or shape[1] != width or not 1 <= shape[0] <= _MOST_ROWS:
            problems.append(f"{name} has shape {shape}, expected up to {_MOST_ROWS} positions of width {width}")
            return learned, (1, 1)
    found = {
        find_formula(variables.floats(name), _MAX_ERROR) if variables.kind(name) == "float32" else None
        for name in names
    }
    config = found.pop()
    return (learned if found or config is None else config), (shapes[0][0], shapes[1][0])
