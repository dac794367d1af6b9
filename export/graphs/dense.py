"""Attention's dense layers in the form that the kernels need: packed projections, and padded head sizes."""

import torch
from torch import Tensor, nn

from export.architecture.attention import MultiHeadAttention
from export.graphs.operators import take_columns

HEAD_SIZE_MULTIPLE = 8  # ONNX Runtime's CPU kernels support no other head sizes


def padded_head_size(head_size: int) -> int:
    """Return the next head size that the kernels support. Zeros in the added components change no dot product."""
    return -(-head_size // HEAD_SIZE_MULTIPLE) * HEAD_SIZE_MULTIPLE


def packed_projection(attention: MultiHeadAttention, *parts: nn.Linear) -> nn.Linear:
    """Return one layer that computes `parts` (queries, keys or values) side by side: (N, d) -> (N, len(parts) H D)."""
    weight = torch.cat([_pad_rows(part.weight, attention) for part in parts])
    bias = None
    if parts[0].bias is not None:
        bias = torch.cat([_pad_rows(part.bias[:, None], attention)[:, 0] for part in parts])
    return _linear(weight, bias)


def output_projection(attention: MultiHeadAttention) -> nn.Module:
    """Return the attention's output layer, which ignores the heads' padding: (..., H D) -> (..., d)."""
    if isinstance(attention.output, nn.Linear):
        return _linear(_pad_rows(attention.output.weight.T, attention).T, attention.output.bias)
    if padded_head_size(attention.head_size) == attention.head_size:
        return nn.Identity()
    return _WithoutPadding(attention)


class _WithoutPadding(nn.Module):
    """Drops the heads' padding if there is no output layer: (..., H D) -> (..., d)."""

    columns: Tensor

    def __init__(self, attention: MultiHeadAttention) -> None:
        super().__init__()
        size = attention.head_size
        starts = torch.arange(attention.num_heads)[:, None] * padded_head_size(size)
        self.register_buffer("columns", (starts + torch.arange(size)).flatten())  # (d,)

    def forward(self, heads: Tensor) -> Tensor:
        return take_columns(heads, self.columns)


def _pad_rows(rows: Tensor, attention: MultiHeadAttention) -> Tensor:
    """Map (H * head size, n) to (H * padded head size, n), with zeros after each head's own rows."""
    size = attention.head_size
    heads = rows.detach().reshape(attention.num_heads, size, -1)
    return nn.functional.pad(heads, (0, 0, 0, padded_head_size(size) - size)).flatten(0, 1)


def _linear(weight: Tensor, bias: Tensor | None) -> nn.Linear:
    layer = nn.Linear(weight.shape[1], weight.shape[0], bias=bias is not None, device="meta")
    layer.weight = nn.Parameter(weight.detach().contiguous(), requires_grad=False)
    if bias is not None:
        layer.bias = nn.Parameter(bias.detach().contiguous(), requires_grad=False)
    return layer
