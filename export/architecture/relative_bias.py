"""Biases of self-attention's scores by distance (Raffel et al. 2020, section 2.1), as in transformers' T5."""

import torch
from torch import Tensor, nn

from export.architecture.config import ModelConfig
from export.architecture.positions import distance_buckets, distance_column


class RelativeBias(nn.Module):
    """A bias per head and bucket of distances; a decoder's tokens see only those before them."""

    def __init__(self, config: ModelConfig, *, is_causal: bool) -> None:
        super().__init__()
        assert config.relative_bias is not None
        self.config, self.is_causal = config.relative_bias, is_causal
        self.weight = nn.Parameter(torch.zeros(config.relative_bias.num_buckets, config.num_heads))

    def forward(self, num_tokens: int) -> Tensor:
        """Return the biases of tokens that see each other, (1, H, L, L)."""
        place = torch.arange(num_tokens)
        return self.by_distance()[:, self.column(place[:, None] - place[None, :])][None]

    def by_distance(self) -> Tensor:
        """Return the biases by distance, in the order of `column`: (H, D + 1) if causal, else (H, 2 D + 1)."""
        return self.weight[torch.from_numpy(distance_buckets(self.config, is_causal=self.is_causal))].T

    def column(self, before: Tensor) -> Tensor:
        return distance_column(before, self.config.max_distance, is_causal=self.is_causal)


def relative_biases(config: ModelConfig, num_layers: int, *, is_causal: bool) -> nn.ModuleList:
    """Return the modules of a stack: none, one for all of its layers, or one for each."""
    bias = config.relative_bias
    count = 0 if bias is None else num_layers if bias.per_layer else 1
    return nn.ModuleList(RelativeBias(config, is_causal=is_causal) for _ in range(count))
