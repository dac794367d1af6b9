"""The position tables in a state dict: buffers, which show how they were computed."""

import dataclasses
import itertools
import typing
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from torch import Tensor

from export.architecture import ModelConfig, PositionConfig
from export.architecture.config import CosineExponent
from export.architecture.positions import sinusoidal_table

POSITIONS = {"source": "encoder.embedding.positions", "target": "decoder.embedding.positions"}
LEARNED = {"source": "encoder.embedding.position_table.weight", "target": "decoder.embedding.position_table.weight"}
# Document 002 as written, as intended, and the paper.
READINGS = [
    PositionConfig(base=base, cosine_exponent=exponent)
    for base, exponent in itertools.product((1000.0, 10000.0), typing.get_args(CosineExponent))
]
# Tables are computed in float32, angle by angle: the error grows with the angle, at most the position's number.
TOLERANCE, TOLERANCE_PER_POSITION = 1e-5, 1e-6


def _largest_difference(table: Tensor, config: PositionConfig) -> float:
    """Return the largest difference between a (P, d) buffer and the table of `config`."""
    num_positions, width = table.shape
    return float(np.abs(table.float().numpy() - sinusoidal_table(num_positions, width, config)).max())


def fits(table: Tensor, config: PositionConfig) -> bool:
    """Return whether a (P, d) buffer is the table of `config`, up to rounding."""
    return (
        table.shape[1] % 2 == 0
        and _largest_difference(table, config) <= TOLERANCE + TOLERANCE_PER_POSITION * table.shape[0]
    )


def find_reading(tables: Iterable[Tensor]) -> PositionConfig | None:
    """Return the reading of the documents' formula that gives all (P, d) tables, if one does."""
    tables = list(tables)
    return next((reading for reading in READINGS if all(fits(table, reading) for table in tables)), None)


def read_positions(said: Any, weights: Mapping[str, Tensor], origins: Mapping[str, str], problems: list[str]) -> Any:
    """Return what `positions` are: as said, or as tables show; `None`, and add why to `problems`, if neither."""
    if LEARNED["source"] in weights:
        return {"layout": "learned"}
    tables = {origins[name]: weights[name] for name in POSITIONS.values() if name in weights}
    reading = find_reading(tables.values()) if tables else None
    if said is None and reading is None:
        names = " and ".join(tables) or "no table"
        does = 'do not show it; if they are learned, say {"layout": "learned"}' if tables else "shows it"
        problems.append(f"--config: positions is missing, and {names} {does}")
    return said or (reading and dataclasses.asdict(reading))


def settle_positions(
    config: ModelConfig, weights: dict[str, Tensor], origins: dict[str, str], problems: list[str]
) -> None:
    """Check tables against the configuration's positions, and leave them out; learned ones are weights."""
    for side, name in POSITIONS.items():
        if name not in weights or not (config.positions.is_sinusoidal or config.positions.layout == "learned"):
            continue
        table = weights.pop(name)
        if config.positions.layout == "learned":
            weights[LEARNED[side]], origins[LEARNED[side]] = table, origins[name]
        elif table.shape[1] == config.d_model and not fits(table, config.positions):
            reading = find_reading([table])
            found = "no reading of the documents" if reading is None else _describe(reading)
            problems.append(
                f"{origins[name]} differs from positions in --config ({_describe(config.positions)}) "
                f"by {_largest_difference(table, config.positions):.2g}; it fits {found}"
            )


def _describe(config: PositionConfig) -> str:
    """Return the keys in which readings differ, with their values."""
    return f"base {config.base:g}, cosine_exponent {config.cosine_exponent}"
