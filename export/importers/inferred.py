"""Infers a configuration from weights by our names: from their shapes, presence and equality."""

import re
from collections.abc import Mapping, MutableMapping
from typing import Any

import torch
from torch import Tensor

from export.architecture import ModelConfig
from export.architecture.names import DECODER_TABLE, ENCODER_TABLE, PROJECTION, projection_table, target_table

LEARNED = {"source": "encoder.embedding.position_table.weight", "target": "decoder.embedding.position_table.weight"}
_LAYER = re.compile(r"(encoder|decoder)\.layers\.(\d+)\.")


def infer_config(weights: Mapping[str, Tensor], num_heads: int, decoder_num_heads: int | None = None) -> dict[str, Any]:
    """Return the keys of `ModelConfig` that weights show; those of weights that are missing are left out."""

    def has(*ends: str) -> bool:
        return any(name.endswith(ends) for name in weights)

    target = weights.get(DECODER_TABLE, weights.get(ENCODER_TABLE))
    shown: dict[str, Any] = {
        "attention_bias": has("attention.query.bias"),
        "attention_output": ("biased" if has("attention.output.bias") else "unbiased")
        if has("attention.output.weight")
        else "none",
        "qk_norm": "layer" if has("query_norm.bias") else "rms" if has("query_norm.weight") else "none",
        "gated": has("feed_forward.gate.weight"),
        "feed_forward_bias": has("feed_forward.inner.bias", "feed_forward.outer.bias", "feed_forward.gate.bias"),
        "layer_norm": "scalar" if has("norm.gain") else "vector" if has("_residual.norm.bias") else "rms",
        "block_norm": has("block_norm.gain", "block_norm.weight"),
        "final_norm": has("final_norm.gain", "final_norm.weight"),
        "embedding_norm": has("embedding.norm.gain", "embedding.norm.weight"),
        "projection_bias": "projection.bias" in weights,
        "tie_projection": _are_equal(weights.get(PROJECTION), target),
        "share_embeddings": _are_equal(weights.get(ENCODER_TABLE), weights.get(DECODER_TABLE)),
    }
    return shown | _sizes(weights, num_heads, decoder_num_heads or num_heads)


def leave_out_shared(
    config: ModelConfig, weights: MutableMapping[str, Tensor], origins: Mapping[str, str]
) -> list[str]:
    """Remove weights that the configuration says are others; return which differ, by the names they come from."""
    problems = []
    for name, kept in {PROJECTION: projection_table(config), DECODER_TABLE: target_table(config)}.items():
        if name != kept and name in weights:
            removed = weights.pop(name)
            if kept in weights and not _are_equal(removed, weights[kept]):
                problems.append(f"{origins[name]} is not {origins[kept]}, which the configuration says is the same")
    return problems


def _are_equal(one: Tensor | None, other: Tensor | None) -> bool:
    if one is None or other is None:
        return False
    return one.shape == other.shape and torch.equal(one.double(), other.double())


def _sizes(weights: Mapping[str, Tensor], *num_heads: int) -> dict[str, int]:
    shown: dict[str, int] = {}
    layers = [match.groups() for name in weights if (match := _LAYER.match(name))]
    source = weights.get(ENCODER_TABLE)
    tables = source, weights.get(DECODER_TABLE, weights.get(PROJECTION, source))
    for side, start, table, heads in zip(("source", "target"), ("", "decoder_"), tables, num_heads, strict=True):
        stack = "decoder" if start else "encoder"
        numbers = [int(number) for of_stack, number in layers if of_stack == stack]
        shown[f"num_{stack}_layers"] = 1 + max(numbers, default=0)
        sizes = {"num_heads": heads}
        if table is not None:
            shown[f"{side}_vocabulary_size"], sizes["d_model"] = table.shape
        if (inner := weights.get(f"{stack}.layers.0.feed_forward.inner.weight")) is not None:
            sizes["d_ff"] = len(inner)
        shown |= {start + name: size for name, size in sizes.items() if shown.get(name) != size}
        query = weights.get(f"{stack}.layers.0.self_attention.query.weight")
        if query is not None and len(query) % heads == 0:
            usual = shown.get("d_head", sizes.get("d_model", 0) // heads)
            if len(query) // heads != usual:
                shown[f"{start}d_head"] = len(query) // heads
        if LEARNED[side] in weights:
            shown[f"max_{side}_positions"] = len(weights[LEARNED[side]])
    return shown
