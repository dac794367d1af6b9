"""Pure functions that turn tensors of other layouts into our weights, named by layouts.

Each maps a tensor to ours, or to several by the words for `*` in their name. Rows are outputs: a weight is (out, in), a
bias (out,).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from service.domain.errors import counted


@dataclass(frozen=True, slots=True)
class Heads:
    """The settings that foldings of attention need besides the tensor."""

    number: int
    size: int
    pad_id: int = 0


Folded = Tensor | dict[str, Tensor]
_ROLES = ("query", "key", "value")


def fused(rows: Tensor, _heads: Heads) -> Folded:
    """Queries above keys above values, a third each: `in_proj_weight` of torch.nn.MultiheadAttention."""
    if rows.shape[0] % 3:
        raise ValueError(f"it has {counted(rows.shape[0], 'row')}, not queries, keys and values")
    return dict(zip(_ROLES, rows.chunk(3), strict=True))


def packed(rows: Tensor, heads: Heads) -> Folded:
    """Per head its query, key and value: rows (heads, 3, size), as in document 001."""
    _check_heads(rows, 3 * heads.number)
    parts = rows.unflatten(0, (heads.number, 3, -1)).unbind(1)
    return {role: part.flatten(0, 1) for role, part in zip(_ROLES, parts, strict=True)}


def grouped(rows: Tensor, heads: Heads) -> Tensor:
    """Keys or values of fewer heads, each for as many successive queries (Ainslie et al. 2023, `repeat_interleave`)."""
    _check_heads(rows, heads.size)
    own = rows.unflatten(0, (-1, heads.size))
    if heads.number % len(own):
        raise ValueError(f"it has {counted(len(own), 'head')}; the {heads.number} heads of queries are not a multiple")
    repeated: Tensor = own.repeat_interleave(heads.number // len(own), 0)
    return repeated.flatten(0, 1)


def fused_grouped(rows: Tensor, heads: Heads) -> Folded:
    """Queries of all heads above keys and values of fewer, which are as many of both."""
    queries, others = rows[: heads.number * heads.size], rows[heads.number * heads.size :]
    _check_heads(others, 2 * heads.size)
    keys, values = (grouped(part, heads) for part in others.chunk(2))
    return {"query": queries, "key": keys, "value": values}


def gate_first(rows: Tensor, _heads: Heads) -> Folded:
    """The layer that the activation is of, above the one that it multiplies (Shazeer 2020): `gate, x = chunk(2)`."""
    _check_heads(rows, 2)
    return dict(zip(("gate", "inner"), rows.chunk(2), strict=True))


def gate_last(rows: Tensor, heads: Heads) -> Folded:
    """The same in the other order: `x, gate = chunk(2)`, as torch's `glu` has them."""
    _check_heads(rows, 2)
    return dict(zip(("inner", "gate"), rows.chunk(2), strict=True))


def transposed(columns: Tensor, _heads: Heads) -> Folded:
    """Inputs by outputs, as in `x @ W`: GPT-2's Conv1D, Keras, JAX. A bias stays."""
    return columns.t() if columns.dim() == 2 else columns


def after_padding(rows: Tensor, heads: Heads) -> Folded:
    """Learned positions that count from `pad_id` + 1: fairseq's `LearnedPositionalEmbedding`."""
    return rows[heads.pad_id + 1 :]


def of_deviation(gain: Tensor) -> Tensor:
    """Return the weight for nn.LayerNorm of a gain (d,) for (x - mean) / (std + epsilon), whose std is unbiased.

    std is sqrt(d / (d - 1)) times the root of the variance (The Annotated Transformer, `LayerNorm`). With epsilon
    squared under the root the quotient differs by at most epsilon / std: 1e-6, less than float32 shows.
    """
    return gain * math.sqrt(1.0 - 1.0 / gain.numel())


def _check_heads(rows: Tensor, number: int) -> None:
    if rows.shape[0] == 0 or rows.shape[0] % number:
        raise ValueError(f"it has {counted(rows.shape[0], 'row')}, which is not a multiple of {number}")


FOLDINGS: dict[str, Callable[[Tensor, Heads], Any]] = {
    each.__name__: each
    for each in (fused, packed, grouped, fused_grouped, gate_first, gate_last, transposed, after_padding)
}
