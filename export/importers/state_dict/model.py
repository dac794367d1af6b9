"""Turns a state dict into our configuration and weights by a layout of names, or lists what does not fit."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from export.architecture import ModelConfig, PositionConfig
from export.architecture.names import DECODER_TABLE, ENCODER_TABLE, PROJECTION, projection_table, target_table
from export.architecture.positions import sinusoidal_table
from export.architecture.stored import weight_shapes
from export.importers.state_dict.foldings import of_deviation, same
from export.importers.state_dict.layout import Found, Layout
from export.importers.state_dict.positions import describe, find_reading, fits, largest_difference
from export.importers.state_dict.settings import Settings
from export.importers.state_dict.shown import LEARNED, POSITIONS, choices, positions, sizes
from export.importers.state_dict.weights import fold, read_heads, sides

EPSILONS = {"vector": 1e-5, "scalar": 1e-8}  # torch's and document 002's
# What no name and no shape shows, or not always, and for which a wrong guess would go unnoticed.
ASKED = ("norm", "activation", "score_scale", "scale_embeddings", "max_source_positions", "max_target_positions")


@dataclass(frozen=True, slots=True)
class Built:
    """`config` even if the weights don't fit it; `weights` by our names, if they do."""

    config: ModelConfig | None = None
    weights: dict[str, Tensor] | None = None
    notes: tuple[str, ...] = ()


def build_model(
    settings: Settings, tensors: Mapping[str, Tensor], layout: Layout, found: Mapping[str, Found], problems: list[str]
) -> Built:
    """Return the model of `tensors`, which are what is `found` in a layout; every problem is added to `problems`."""
    said, found_before = settings.of_model(), len(problems)
    table = next((tensors[name] for name, each in found.items() if ENCODER_TABLE in sides(each.ours)), None)
    heads = None if table is None or table.dim() != 2 else read_heads(said, found, table.shape[1])
    if heads is None:
        is_said = "num_heads" in said
        lacking = layout.theirs(ENCODER_TABLE, found.values()) if table is None or is_said else "--config: num_heads"
        problems.append(f"{lacking} is missing")
        return Built()
    weights, origins = fold(tensors, found, heads, settings.attention, problems)
    shown = choices(weights) | sizes(weights, heads.number)
    problems += [
        f"--config: {name} is {said[name]!r}, the weights show {value}"
        for name, value in sizes(weights, heads.number).items()
        if said.get(name, value) != value
    ]
    values = {**layout.config, **shown, **said}
    values["positions"] = positions(values.get("positions"), weights, origins, problems)
    values.setdefault("layer_norm_epsilon", EPSILONS.get(str(values["layer_norm"]), EPSILONS["vector"]))
    if values["layer_norm"] == "scalar" and "layer_norm" not in said:
        _take_deviations(values, weights, origins)
    problems += [f"--config: {name} is missing, which the weights do not show" for name in ASKED if name not in values]
    config = _config(values, shown, problems)
    if config is None:
        return Built()
    problems += [f"{name} is unexpected" for name in sorted(tensors.keys() - found.keys())]
    config = _with_positions(config, weights, origins, problems)
    _share(config, weights, origins, problems)
    for name, shape in weight_shapes(config).items():
        if name not in weights:
            problems.append(f"{layout.theirs(name, found.values())} is missing")
        elif (given := tuple(weights[name].shape)) != shape:
            problems.append(f"{origins[name]} has shape {given}, the configuration asks for {shape}")
    problems += [f"{origins[name]} is unexpected" for name in sorted(weights.keys() - weight_shapes(config).keys())]
    taken = [f"{name} {layout.config[name]}" for name in layout.config if name not in said and name not in shown]
    notes = [f"names are those of {layout.about}, and so is what they don't show: {', '.join(taken)}"] if taken else []
    return Built(config, None if len(problems) > found_before else weights, tuple(notes))


def _config(values: Mapping[str, Any], shown: Mapping[str, Any], problems: list[str]) -> ModelConfig | None:
    """Return the configuration; if it is unusable, what the weights show may still serve to check them."""
    usable = {name: value for name, value in values.items() if value is not None}
    try:
        return ModelConfig.from_document(usable)
    except ValueError as error:
        problems.append(f"--config: {error}")
    try:
        return ModelConfig.from_document(dict(shown))
    except ValueError:
        return None


def _take_deviations(values: dict[str, Any], weights: dict[str, Tensor], origins: dict[str, str]) -> None:
    """Make norms with a gain for every component, outside whose root epsilon is, those of torch.nn."""
    gains = [name for name in weights if name.endswith(".gain")]
    epsilon = values["layer_norm_epsilon"]
    if not any(weights[name].numel() > 1 for name in gains) or not isinstance(epsilon, (int, float)):
        return
    values |= {"layer_norm": "vector", "layer_norm_epsilon": epsilon * epsilon}
    for gain in gains:
        weight = f"{gain.removesuffix('gain')}weight"
        weights[weight], origins[weight] = of_deviation(weights.pop(gain)), origins[gain]


def _with_positions(
    config: ModelConfig, weights: dict[str, Tensor], origins: dict[str, str], problems: list[str]
) -> ModelConfig:
    """Check tables against the configuration's positions; what is no sinusoid any more becomes a learned table."""
    learned = dict[str, Tensor]()
    sinusoids = config.positions
    for side, name in POSITIONS.items():
        number = config.max_source_positions if side == "source" else config.max_target_positions
        table, factor = weights.pop(name, None), weights.pop(f"{name}_factor", None)
        origins[LEARNED[side]] = origins.get(name, "")
        if table is not None and not sinusoids.is_sinusoidal:
            learned[LEARNED[side]] = table
        elif table is not None and table.shape[1] == config.d_model and not fits(table, sinusoids):
            problems.append(_other_table(origins[name], table, sinusoids))
        if factor is not None:
            learned[LEARNED[side]] = factor * torch.from_numpy(sinusoidal_table(number, config.d_model, sinusoids))
    if sinusoids.layout != "none":
        weights |= learned
    return replace(config, positions=PositionConfig("learned")) if learned else config


def _other_table(name: str, table: Tensor, config: PositionConfig) -> str:
    difference = largest_difference(table, config)
    reading = find_reading([table])
    found = "no reading of the documents" if reading is None else describe(reading)
    return f"{name} differs from positions in --config ({describe(config)}) by {difference:.2g}; it fits {found}"


def _share(config: ModelConfig, weights: dict[str, Tensor], origins: Mapping[str, str], problems: list[str]) -> None:
    """Leave out weights that the configuration says are others; they may be missing."""
    shared = {PROJECTION: projection_table(config), DECODER_TABLE: target_table(config)}
    for name, kept in shared.items():
        if name == kept or name not in weights:
            continue
        if kept in weights and not same(weights[name], weights[kept]):
            problems.append(f"{origins[name]} is not {origins[kept]}, which the configuration says is the same")
        del weights[name]
