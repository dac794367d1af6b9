"""The layouts of attention weights in the notebooks, and their conversion to ours."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from export.architecture import ModelConfig

AttentionKind = Literal["separate", "fused", "packed", "per_head"]


@dataclass(frozen=True, slots=True)
class AttentionForm:
    """One layout of the weights of queries, keys and values, with its names under an attention module.

    separate: a (d, d) matrix for each. fused: one (3 d, d) matrix, queries above keys above values. packed: the same
    shape, with rows (heads, 3, head size). per_head: (head size, d) matrices for every head, whose number replaces `{}`
    in the name, and biases that are columns.
    """

    kind: AttentionKind
    weights: tuple[str, ...]
    biases: tuple[str, ...]
    output: str
    output_bias: str

    @property
    def mark(self) -> str:
        return self.weights[0].format(1)

    def choices(self, names: Iterable[str]) -> dict[str, Any]:
        """Return the `ModelConfig` fields that the names under attention modules determine."""
        found = set(names)
        output = "biased" if self.output_bias in found else "unbiased"
        return {
            "attention_bias": any(name.format(1) in found for name in self.biases),
            "attention_output": output if self.output in found else "none",
        }

    def shapes(self, config: ModelConfig) -> dict[str, tuple[int, ...]]:
        width, heads = config.d_model, config.num_heads
        rows = {"separate": width, "fused": 3 * width, "packed": 3 * width, "per_head": config.head_size}[self.kind]
        column = (1,) if self.kind == "per_head" else ()
        shapes: dict[str, tuple[int, ...]] = dict.fromkeys(_numbered(self.weights, heads), (rows, width))
        if config.attention_bias:
            shapes |= dict.fromkeys(_numbered(self.biases, heads), (rows, *column))
        if config.attention_output != "none":
            shapes[self.output] = (width, width)
            if config.has_attention_output_bias:
                shapes[self.output_bias] = (width, *column)
        return shapes

    def laid_out(self, tensors: Mapping[str, Tensor], num_heads: int) -> dict[str, Tensor]:
        """Return an attention module's tensors by the names of `export.architecture.attention.MultiHeadAttention`."""
        laid: dict[str, Tensor] = {}
        for suffix, names in (("weight", self.weights), ("bias", self.biases)):
            parts = [tensors[name] for name in _numbered(names, num_heads) if name in tensors]
            if parts:
                split = self._split(parts, num_heads)
                laid |= {f"{role}.{suffix}": rows for role, rows in zip(("query", "key", "value"), split, strict=True)}
        for suffix, name in (("weight", self.output), ("bias", self.output_bias)):
            if name in tensors:
                laid[f"output.{suffix}"] = tensors[name]
        return {name: rows.flatten() if name.endswith("bias") else rows for name, rows in laid.items()}

    def _split(self, parts: list[Tensor], num_heads: int) -> list[Tensor]:
        if self.kind == "fused":
            return list(parts[0].chunk(3))
        if self.kind == "packed":
            return [rows.flatten(0, 1) for rows in parts[0].unflatten(0, (num_heads, 3, -1)).unbind(1)]
        if self.kind == "per_head":
            return [torch.cat(parts[start : start + num_heads]) for start in range(0, len(parts), num_heads)]
        return parts


def _numbered(names: Iterable[str], num_heads: int) -> Iterator[str]:
    """Yield the names; those that differ by head are repeated for all heads before the next one."""
    for name in names:
        yield from dict.fromkeys(name.format(head) for head in range(1, num_heads + 1))


def _linears(*names: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    return tuple(f"{name}.weight" for name in names), tuple(f"{name}.bias" for name in names)


FORMS = (
    AttentionForm("separate", *_linears("w_query", "w_key", "w_value"), "w_o.weight", "w_o.bias"),  # 002
    AttentionForm("separate", *_linears("W_q", "W_k", "W_v"), "W_o.weight", "W_o.bias"),  # 000
    AttentionForm(  # 004
        "separate", *_linears("to_queries", "to_keys", "to_values"), "unify_heads.weight", "unify_heads.bias"
    ),
    AttentionForm("packed", *_linears("qkv_layer"), "w_o.weight", "w_o.bias"),  # 001, which has no output layer
    AttentionForm("fused", *_linears("qkv_layer"), "w_o.weight", "w_o.bias"),
    AttentionForm("per_head", ("W_q{}", "W_k{}", "W_v{}"), ("b_q{}", "b_k{}", "b_v{}"), "W_c", "b_c"),  # 003
)
