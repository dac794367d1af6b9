"""Relative biases in the graphs: what self-attention's scores gain by the distance of query and key."""

import torch
from torch import Tensor, nn

from export.architecture.relative_bias import RelativeBias
from export.graphs.operators import corner, take_columns


class DistanceBias(nn.Module):
    """The biases of a module of `export.architecture.relative_bias`, by distance."""

    table: Tensor

    def __init__(self, bias: RelativeBias) -> None:
        super().__init__()
        self.column = bias.column
        self.register_buffer("table", bias.by_distance().detach().contiguous())  # (H, number of distances)

    def forward(self, num_tokens: int) -> Tensor:
        """Return the biases of tokens that see each other, (1, H, L, L)."""
        place = torch.arange(num_tokens)
        return take_columns(self.table, self.column(place[:, None] - place[None, :])).unsqueeze(0)

    def of_step(self, lengths: Tensor, capacity: int, total_length: Tensor) -> Tensor:
        """Return the biases of one new token per row, of which `lengths` (B,) come before: (B, H, 1, total_length)."""
        place = corner(torch.arange(capacity), total_length)
        before = lengths[:, None] - place[None, :]
        return take_columns(self.table, self.column(before)).transpose(0, 1).unsqueeze(2)
