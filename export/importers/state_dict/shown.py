"""What names and shapes of weights show of the configuration."""

import dataclasses
import re
from collections.abc import Mapping
from typing import Any

from torch import Tensor

from export.architecture.names import DECODER_TABLE, ENCODER_TABLE, PROJECTION
from export.importers.state_dict.foldings import same
from export.importers.state_dict.positions import find_reading

POSITIONS = {"source": "encoder.embedding.positions", "target": "decoder.embedding.positions"}
LEARNED = {"source": "encoder.embedding.position_table.weight", "target": "decoder.embedding.position_table.weight"}
_LAYER = re.compile(r"(encoder|decoder)\.layers\.(\d+)\.")


def choices(weights: Mapping[str, Tensor]) -> dict[str, Any]:
    """Return the choices in which models have other names, or the same weight twice."""

    def has(end: str) -> bool:
        return any(name.endswith(end) for name in weights)

    table = weights.get(DECODER_TABLE, weights.get(ENCODER_TABLE))
    is_tied = table is not None and PROJECTION in weights and same(weights[PROJECTION], table)
    is_shared = {ENCODER_TABLE, DECODER_TABLE} <= weights.keys() and same(*(weights[t] for t in _TABLES))
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


_TABLES = (ENCODER_TABLE, DECODER_TABLE)


def sizes(weights: Mapping[str, Tensor], num_heads: int) -> dict[str, int]:
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


def positions(said: Any, weights: Mapping[str, Tensor], origins: Mapping[str, str], problems: list[str]) -> Any:
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
