"""ONNX Runtime's own attention operators as calls that torch can trace.

They are symbolic only: they appear in the exported graph and can't run in torch. Their contracts are in ONNX Runtime's
`docs/ContribOperators.md`.
"""

import torch
from torch import Tensor
from torch.onnx import ops

# What ONNX Runtime adds to the scores of padding. By default it is -10,000, which scores of large weights exceed: then
# padding wins. It is float32's lowest for float16, too: the CPU provider computes that attention in float32, and CUDA's
# leaves padding out. Minus infinity would make NaN of a row without tokens.
_MASKED = torch.finfo(torch.float32).min


def group_query_attention(
    packed: Tensor,
    past_key: Tensor,
    past_value: Tensor,
    lengths: Tensor,
    total_length: Tensor,
    num_heads: int,
    scale: float,
    bias: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Attend from one new token per row to its row's cache and to itself, and append it to the cache.

    `packed` (B, 1, 3 H D) holds queries, keys, values side by side; the cache is (B, H, C, D); `lengths` (B,) int32
    counts the tokens already in it and `total_length` (1,) int32 is the largest of them plus one. `bias`
    (B, H, 1, `total_length`) is added to the scores; ONNX Runtime's kernel for CUDA has no such input.

    Return the attention's output (B, 1, H D) and the two caches, in place if bound to the same memory.
    """
    batch, length, width = packed.shape
    output, present_key, present_value = ops.symbolic_multi_out(
        "com.microsoft::GroupQueryAttention",
        (packed, None, None, past_key, past_value, lengths, total_length, None, None, None, bias),
        {"num_heads": num_heads, "kv_num_heads": num_heads, "scale": scale},
        dtypes=(packed.dtype, past_key.dtype, past_value.dtype),
        shapes=((batch, length, width // 3), past_key.shape, past_value.shape),
        version=1,
    )
    return output, present_key, present_value


def multi_head_attention(
    queries: Tensor,
    keys: Tensor,
    values: Tensor,
    lengths: Tensor,
    num_heads: int,
    scale: float,
    bias: Tensor | None = None,
) -> Tensor:
    """Attend from (B, Q, H D) to keys and values, which are (B, S, H D) or split (B, H, S, D).

    `lengths` (B,) int32 counts a row's live tokens; the rest is padding. `bias` (1, H, Q, S) is added to the scores.
    Returns (B, Q, H D).
    """
    (output,) = ops.symbolic_multi_out(
        "com.microsoft::MultiHeadAttention",
        (queries, keys, values, None, lengths, bias),
        {"num_heads": num_heads, "scale": scale, "mask_filter_value": _MASKED},
        dtypes=(queries.dtype,),
        shapes=(queries.shape,),
        version=1,
    )
    return output


def causal_attention(
    queries: Tensor, keys: Tensor, values: Tensor, num_heads: int, scale: float, bias: Tensor | None = None
) -> Tensor:
    """Attend from (B, T, H D) to the same shape, each position to those up to itself; `bias` is (1, H, T, T)."""
    (output,) = ops.symbolic_multi_out(
        "com.microsoft::MultiHeadAttention",
        (queries, keys, values, None, None, bias),
        {"num_heads": num_heads, "scale": scale, "unidirectional": 1},
        dtypes=(queries.dtype,),
        shapes=(queries.shape,),
        version=1,
    )
    return output


def top_k(scores: Tensor, num_candidates: Tensor) -> tuple[Tensor, Tensor]:
    """Return the `num_candidates` (1,) int64 largest of each row of (B, V), the lower index of equal ones first.

    Values and indices, largest first. K is known only at run time: torch sees a width of 1, which `tracing` corrects.
    """
    batch = scores.shape[0]
    values, indices = ops.symbolic_multi_out(
        "TopK",
        (scores, num_candidates),
        {"axis": -1, "largest": 1, "sorted": 1},
        dtypes=(scores.dtype, num_candidates.dtype),
        shapes=((batch, 1), (batch, 1)),
    )
    return values, indices


def log_of_column(totals: Tensor) -> Tensor:
    """Return the natural logarithm of (B, 1), each row independently of the others.

    ONNX Runtime's Log processes rows in vectors of 16 and the rest one by one, with different rounding: a result would
    depend on the number of rows. ReduceLogSum over the one entry of a row does not.
    """
    axes = torch.ones(1, dtype=torch.int64)
    logarithms: Tensor = ops.symbolic(
        "ReduceLogSum", (totals, axes), {"keepdims": 1}, dtype=totals.dtype, shape=totals.shape
    )
    return logarithms


def arg_max(scores: Tensor) -> Tensor:
    """Return the index of the largest entry of each row of (B, V), the lowest among equals: (B,) int64.

    Finds the best block of columns, then the best column in it: ONNX Runtime vectorises ReduceMax, not ArgMax and TopK
    (32 rows of 8,192 on one core: 70, 350 and 160 microseconds).
    """
    width = _block_width(scores.shape[1])
    if width is None:
        _, best = top_k(scores, torch.full((1,), 2))  # of two, as TopK of one takes another, slower path
        return best[:, 0]
    blocks = scores.unflatten(1, (-1, width))  # (B, n, width)
    block = blocks.amax(dim=2).argmax(dim=1, keepdim=True)  # (B, 1)
    chosen = ops.symbolic(
        "GatherND", (blocks, block), {"batch_dims": 1}, dtype=scores.dtype, shape=(scores.shape[0], width)
    )
    index: Tensor = block * width + chosen.argmax(dim=1, keepdim=True)  # (B, 1)
    return index.squeeze(1)


def _block_width(num_columns: int) -> int | None:
    """Return a divisor near 128, or `None` if there is none."""
    widths = [width for width in range(48, 385) if num_columns % width == 0]
    return min(widths, key=lambda width: abs(width - 128), default=None)


def take_columns(table: Tensor, columns: Tensor) -> Tensor:
    """Return entries of the last axis by index: (..., n), int64 of any shape -> (..., *that shape)."""
    shape = (*table.shape[:-1], *columns.shape)
    return ops.symbolic("Gather", (table, columns), {"axis": -1}, dtype=table.dtype, shape=shape)


def corner(table: Tensor, *counts: Tensor) -> Tensor:
    """Return the first entries of each axis, counted by (1,) integer tensors; for torch, all of them are kept."""
    ends = torch.cat(counts)
    return ops.symbolic("Slice", (table, torch.zeros_like(ends), ends), dtype=table.dtype, shape=table.shape)
