"""Turns a state dict into our configuration and weights by a layout of names, or lists what does not fit."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from export.architecture import ModelConfig
from export.architecture.names import DECODER_TABLE, ENCODER_TABLE, PROJECTION, projection_table, target_table
from export.architecture.stored import weight_shapes
from export.importers.state_dict.foldings import of_deviation, same
from export.importers.state_dict.layout import Found, Layout
from export.importers.state_dict.positions import LEARNED, POSITIONS, read_positions, settle_positions
from export.importers.state_dict.settings import Settings
from export.importers.state_dict.weights import fold, read_heads, sides

EPSILONS = {"vector": 1e-5, "scalar": 1e-8}  # torch's and document 002's
# What no name and no shape shows, or not always, and for which a wrong guess would go unnoticed.
ASKED = ("norm", "activation", "score_scale", "scale_embeddings", "max_source_positions", "max_target_positions")
_LAYER = re.compile(r"(encoder|decoder)\.layers\.(\d+)\.")


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
    sizes = _sizes(weights, heads.number)
    shown = _choices(weights) | sizes
    problems += [
        f"--config: {name} is {said[name]!r}, the weights show {value}"
        for name, value in sizes.items()
        if said.get(name, value) != value
    ]
    values = {**layout.config, **shown, **said}
    values["positions"] = read_positions(values.get("positions"), weights, origins, problems)
    values.setdefault("layer_norm_epsilon", EPSILONS.get(str(values["layer_norm"]), EPSILONS["vector"]))
    if values["layer_norm"] == "scalar" and "layer_norm" not in said:
        _take_deviations(values, weights, origins)
    problems += [f"--config: {name} is missing, which the weights do not show" for name in ASKED if name not in values]
    config = _config(values, shown, problems)
    if config is None:
        return Built()
    problems += [f"{name} is unexpected" for name in sorted(tensors.keys() - found.keys())]
    settle_positions(config, weights, origins, problems)
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


def _choices(weights: Mapping[str, Tensor]) -> dict[str, Any]:
    """Return the choices in which models have other names, or the same weight twice."""

    def has(end: str) -> bool:
        return any(name.endswith(end) for name in weights)

    table = weights.get(DECODER_TABLE, weights.get(ENCODER_TABLE))
    is_tied = table is not None and PROJECTION in weights and same(weights[PROJECTION], table)
    source = weights.get(ENCODER_TABLE)
    is_shared = source is not None and DECODER_TABLE in weights and same(source, weights[DECODER_TABLE])
    return {
        "attention_bias": has("attention.query.bias"),
        "attention_output": ("biased" if has("attention.output.bias") else "unbiased")
        if has("attention.output.weight")
        else "none",
        "gated": has("feed_forward.gate.weight"),
        "feed_forward_bias": has("feed_forward.inner.bias"),
        "layer_norm": "scalar" if has("norm.gain") else "vector" if has("norm.bias") else "rms",
        "final_norm": has("final_norm.gain") or has("final_norm.weight"),
        "embedding_norm": has("embedding.norm.gain") or has("embedding.norm.weight"),
        "projection_bias": "projection.bias" in weights,
        "tie_projection": is_tied,
        "share_embeddings": is_shared,
    }


def _sizes(weights: Mapping[str, Tensor], num_heads: int) -> dict[str, int]:
    """Return the sizes in shapes and in numbers of layers; what is missing or of no use is left out."""
    shown = {"num_heads": num_heads}
    source = weights.get(ENCODER_TABLE)
    target = weights.get(DECODER_TABLE, weights.get(PROJECTION, source))
    if source is not None and target is not None:
        shown |= {"d_model": source.shape[1], "source_vocabulary_size": source.shape[0]}
        shown["target_vocabulary_size"] = target.shape[0]
    layers = [match for name in weights if (match := _LAYER.match(name))]
    for side in ("encoder", "decoder"):
        shown[f"num_{side}_layers"] = 1 + max((int(each[2]) for each in layers if each[1] == side), default=0)
    inner = [weights.get(f"{side}.layers.0.feed_forward.inner.weight") for side in ("encoder", "decoder")]
    if inner[0] is not None:
        shown["d_ff"] = inner[0].shape[0]
        if inner[1] is not None and inner[1].shape[0] != shown["d_ff"]:
            shown["decoder_d_ff"] = inner[1].shape[0]
    query = weights.get("encoder.layers.0.self_attention.query.weight")
    if query is not None and query.shape[0] != shown.get("d_model") and query.shape[0] % num_heads == 0:
        shown["d_head"] = query.shape[0] // num_heads
    for side in POSITIONS:
        table = weights.get(POSITIONS[side], weights.get(LEARNED[side]))
        if table is not None:
            shown[f"max_{side}_positions"] = table.shape[0]
    return shown


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


def _share(config: ModelConfig, weights: dict[str, Tensor], origins: Mapping[str, str], problems: list[str]) -> None:
    """Leave out weights that the configuration says are others; they may be missing."""
    shared = {PROJECTION: projection_table(config), DECODER_TABLE: target_table(config)}
    for name, kept in shared.items():
        if name == kept or name not in weights:
            continue
        if kept in weights and not same(weights[name], weights[kept]):
            problems.append(f"{origins[name]} is not {origins[kept]}, which the configuration says is the same")
        del weights[name]
