"""The position tables in a state dict: buffers, which show how they were computed, or learned ones."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from torch import Tensor

from export.architecture import ModelConfig, PositionConfig
from export.importers.inferred import LEARNED
from export.importers.sinusoids import difference, find_formula

POSITIONS = {"source": "encoder.embedding.positions", "target": "decoder.embedding.positions"}


def read_positions(said: Any, weights: Mapping[str, Tensor], origins: Mapping[str, str], problems: list[str]) -> Any:
    """Return what `positions` are: as said, or as tables show; `None`, and add why to `problems`, if neither."""
    if LEARNED["source"] in weights:
        return {"layout": "learned"}
    tables = {origins[name]: weights[name] for name in POSITIONS.values() if name in weights}
    found = [_formula(table) for table in tables.values()]
    if said is None and found and found[0] is not None and found == found[:1] * len(found):
        return dataclasses.asdict(found[0])
    if said is None:
        does = 'do not show it; if they are learned, say {"layout": "learned"}' if tables else "shows it"
        problems.append(f"--config: positions is missing, and {' and '.join(tables) or 'no table'} {does}")
    return said


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
        elif table.shape[1] != config.d_model:
            problems.append(f"{origins[name]} has rows of {table.shape[1]} numbers, the model has {config.d_model}")
        elif not (error := difference(table.float().numpy(), config.positions)) <= _error(table):
            found = _formula(table)
            problems.append(
                f"{origins[name]} differs from positions in --config ({_describe(config.positions)}) "
                f"by {error:.2g}; it fits {'no formula that we know' if found is None else _describe(found)}"
            )


def _formula(table: Tensor) -> PositionConfig | None:
    return find_formula(table.float().numpy(), _error(table))


def _error(table: Tensor) -> float:
    """Return the largest error: in float32, angle by angle, it grows with the angle, at most the position's number."""
    return 1e-5 + 1e-6 * len(table)


def _describe(config: PositionConfig) -> str:
    return f"layout {config.layout}, base {config.base:g}, cosine_exponent {config.cosine_exponent}"
