"""Turns a state dict into our configuration and weights by a layout of names, or lists what does not fit."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from export.architecture import ModelConfig
from export.architecture.names import ENCODER_TABLE
from export.architecture.stored import weight_shapes
from export.importers.inferred import infer_config, leave_out_shared
from export.importers.state_dict.foldings import of_deviation
from export.importers.state_dict.layout import Found, Layout
from export.importers.state_dict.positions import POSITIONS, read_positions, settle_positions
from export.importers.state_dict.settings import Settings
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
    shown = infer_config(weights, heads.number)
    shown |= {f"max_{side}_positions": len(weights[name]) for side, name in POSITIONS.items() if name in weights}
    problems += [
        f"--config: {name} is {said[name]!r}, the weights show {value}"
        for name, value in shown.items()
        if type(value) is int and said.get(name, value) != value
    ]
    values = {**layout.config, **shown, **said}
    values["positions"] = read_positions(values.get("positions"), weights, origins, problems)
    values.setdefault("layer_norm_epsilon", EPSILONS.get(str(values["layer_norm"]), EPSILONS["vector"]))
    if values["layer_norm"] == "scalar" and "layer_norm" not in said:
        _take_deviations(values, weights, origins)
    problems += [f"--config: {name} is missing, and the weights do not show it" for name in ASKED if name not in values]
    config = _config(values, shown, problems)
    if config is None:
        return Built()
    settle_positions(config, weights, origins, problems)
    problems += leave_out_shared(config, weights, origins)
    expected = weight_shapes(config)
    for name, shape in expected.items():
        if name not in weights:
            problems.append(f"{layout.theirs(name, found.values())} is missing")
        elif (given := tuple(weights[name].shape)) != shape:
            problems.append(f"{origins[name]} has shape {given}, the configuration asks for {shape}")
    strange = (tensors.keys() - found.keys()) | {origins[name] for name in weights.keys() - expected.keys()}
    problems += [f"{name} is unexpected" for name in sorted(strange)]
    taken = [f"{name} {layout.config[name]}" for name in layout.config if name not in said and name not in shown]
    notes = [f"names are those of {layout.about}, and so is what they don't show: {', '.join(taken)}"] if taken else []
    return Built(config, None if len(problems) > found_before else weights, tuple(notes))


def _config(values: Mapping[str, Any], shown: Mapping[str, Any], problems: list[str]) -> ModelConfig | None:
    """Return the configuration; if it is unusable, what the weights show may still serve to check them."""
    try:
        return ModelConfig.from_document({name: value for name, value in values.items() if value is not None})
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
    if all(weights[name].numel() == 1 for name in gains) or not isinstance(epsilon, (int, float)):
        return
    values |= {"layer_norm": "vector", "layer_norm_epsilon": epsilon * epsilon}
    for gain in gains:
        weight = f"{gain.removesuffix('gain')}weight"
        weights[weight], origins[weight] = of_deviation(weights.pop(gain)), origins[gain]
