"""Biases of self-attention's scores by distance (Raffel et al. 2020, section 2.1), as in transformers' T5."""

import math

import torch
from torch import Tensor, nn

from export.architecture.config import ModelConfig


class RelativeBias(nn.Module):
    """A bias per head and bucket of distances; a decoder's tokens see only those before them."""

    def __init__(self, config: ModelConfig, *, is_causal: bool) -> None:
        super().__init__()
        bias = config.relative_bias
        assert bias is not None
        self.max_distance, self.is_causal = bias.max_distance, is_causal
        self.weight = nn.Parameter(torch.zeros(bias.num_buckets, config.num_heads))

    def forward(self, num_tokens: int) -> Tensor:
        """Return the biases of tokens that see each other, (1, H, L, L)."""
        place = torch.arange(num_tokens)
        return self.by_distance()[:, self.column(place[:, None] - place[None, :])][None]

    def by_distance(self) -> Tensor:
        """Return the biases by distance, whose place `column` says: (H, D + 1) if causal, else (H, 2 D + 1)."""
        farthest = self.max_distance
        if self.is_causal:
            buckets = _bucket(torch.arange(farthest + 1), len(self.weight), farthest)
        else:
            half = len(self.weight) // 2
            buckets = _bucket(torch.arange(-farthest, farthest + 1).abs(), half, farthest)
            buckets = buckets + half * (torch.arange(-farthest, farthest + 1) > 0)
        return self.weight[buckets].T

    def column(self, before: Tensor) -> Tensor:
        """Return the column of a key's bias by how many tokens it is before the query; far ones share the last."""
        if self.is_causal:
            return before.clamp(0, self.max_distance)
        return self.max_distance - before.clamp(-self.max_distance, self.max_distance)


def relative_biases(config: ModelConfig, num_layers: int, *, is_causal: bool) -> nn.ModuleList:
    """Return the modules of a stack: none, one for all of its layers, or one for each."""
    bias = config.relative_bias
    count = 0 if bias is None else num_layers if bias.per_layer else 1
    return nn.ModuleList(RelativeBias(config, is_causal=is_causal) for _ in range(count))


def _bucket(distances: Tensor, num_buckets: int, max_distance: int) -> Tensor:
    """Return the bucket of each distance: half of them for single distances, the others for logarithmic ranges."""
    exact = num_buckets // 2
    # In float32, as transformers computes it: at a bucket's border the last bit decides.
    ratio = torch.log(distances.clamp(min=1).float() / exact) / math.log(max_distance / exact)
    ranged = exact + (ratio * (num_buckets - exact)).long()
    return torch.where(distances < exact, distances, ranged.clamp(max=num_buckets - 1))
