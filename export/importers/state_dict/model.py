"""Converts a notebook's weights and configuration to our model, or lists what does not fit."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from export.architecture import ModelConfig
from export.architecture.transformer import Transformer
from export.importers.state_dict.names import POSITION_TABLES, Naming, find_naming, same
from export.importers.state_dict.positions import describe, find_reading, fits, largest_difference
from export.importers.state_dict.settings import SIZES, Settings

EPSILONS = {"vector": 1e-5, "scalar": 1e-8}  # torch's and document 002's


def build_model(
    config: Settings, weights: Mapping[str, Tensor] | None, problems: list[str]
) -> tuple[ModelConfig | None, dict[str, Tensor] | None]:
    """Return the configuration, and the weights by our names if they fit it; add every problem to `problems`."""
    said, shown, naming = config.of_model(), dict[str, Any](), None
    if weights is not None:
        try:
            naming = find_naming(weights, config.attention)
            shown = naming.choices(weights)
        except ValueError as error:
            problems.append(f"the state dict: {error}")
        tables = [table for name in POSITION_TABLES if (table := weights.get(name)) is not None and _is_table(table)]
        reading = find_reading(tables) if tables else None
        if reading is not None:
            shown["positions"] = dataclasses.asdict(reading)
        elif "positions" not in said:
            problems.append(f"--config: positions is missing, and {' and '.join(POSITION_TABLES)} do not show it")
    completed = _complete(said, shown, problems)
    if completed is None or naming is None or weights is None:
        return completed, None
    with torch.device("meta"):
        outline = Transformer(completed)
    misfits = _misfits(outline, naming, weights)
    problems += misfits
    if misfits:
        return completed, None
    return completed, naming.ours(weights, outline)


def _complete(said: Mapping[str, Any], shown: Mapping[str, Any], problems: list[str]) -> ModelConfig | None:
    """Return the user's settings, completed by those that the weights determine.

    If they are unusable, the sizes alone may still serve to check the weights.
    """
    values = {**shown, **said}
    values.setdefault("layer_norm_epsilon", EPSILONS.get(str(values.get("layer_norm")), EPSILONS["vector"]))
    if not said.keys() >= set(SIZES):
        return None
    try:
        return ModelConfig.from_document(values)
    except ValueError as error:
        problems.append(f"--config: {error}")
    try:
        sizes = {name: said[name] for name in (*SIZES, "decoder_d_ff") if name in said}
        return ModelConfig.from_document({**shown, **sizes})
    except ValueError:
        return None


def _misfits(outline: Transformer, naming: Naming, weights: Mapping[str, Tensor]) -> list[str]:
    config, expected, shared = outline.config, naming.shapes(outline), naming.shared(outline)
    tables = {
        name: (1, num_positions, config.d_model)
        for name, num_positions in zip(
            POSITION_TABLES, (config.max_source_positions, config.max_target_positions), strict=True
        )
    }
    allowed = expected | tables | {name: expected[kept] for name, kept in shared.items()}
    problems = [f"{name} is missing" for name in sorted(expected.keys() - weights.keys())]
    problems += [f"{name} is unexpected" for name in sorted(weights.keys() - allowed.keys())]
    for name in sorted(allowed.keys() & weights.keys()):
        given = tuple(weights[name].shape)
        if given != allowed[name]:
            problems.append(f"{name} has shape {given}, the configuration asks for {allowed[name]}")
        elif not bool(torch.isfinite(weights[name].float()).all()):
            problems.append(f"{name} holds NaN or infinite numbers")
        elif name in tables and not fits(weights[name], config.positions):
            problems.append(_other_table(name, weights[name], config))
        elif name in shared and not same(weights[name], weights.get(shared[name], weights[name])):
            problems.append(f"{name} is not {shared[name]}, which the configuration says is the same")
    return problems


def _other_table(name: str, table: Tensor, config: ModelConfig) -> str:
    difference = largest_difference(table, config.positions)
    reading = find_reading([table])
    found = "no reading of the documents" if reading is None else describe(reading)
    return (
        f"{name} differs from positions in --config ({describe(config.positions)}) by {difference:.2g}; it fits {found}"
    )


def _is_table(table: Tensor) -> bool:
    return table.dim() == 3 and table.shape[0] == 1 and table.shape[2] % 2 == 0 and table.numel() > 0
