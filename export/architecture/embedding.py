"""Token embeddings and positions (paper sections 3.4 and 3.5)."""

import math

import torch
from torch import Tensor, nn

from export.architecture.config import ModelConfig, PositionConfig
from export.architecture.layers import layer_norm


def sinusoidal_table(num_positions: int, d_model: int, config: PositionConfig) -> Tensor:
    """Return positions `offset .. offset + num_positions - 1` as rows: (num_positions, d_model) float32.

    PE(pos, 2i) = sin(pos / base^(2i / d)), PE(pos, 2i + 1) = cos(the same); see `PositionConfig` for the layouts.
    """
    half = d_model // 2
    # float64 keeps the angles of far positions exact; rounding happens once, at the end.
    index = torch.arange(half, dtype=torch.float64)
    exponent = index / (half - 1 if config.fairseq_exponent else half)
    position = torch.arange(num_positions, dtype=torch.float64) + config.offset
    of_cosines = exponent if config.cosine_exponent == "paired" else 2 * index + 1 - 1 / d_model
    sines = (position[:, None] * torch.exp(-math.log(config.base) * exponent)[None, :]).sin()  # (P, d/2)
    cosines = (position[:, None] * torch.exp(-math.log(config.base) * of_cosines)[None, :]).cos()
    if config.layout == "interleaved":
        table = torch.stack([sines, cosines], dim=-1).flatten(1)  # (P, d): s c s c ...
    else:
        table = torch.cat([sines, cosines], dim=-1)  # (P, d): s s ... c c ...
    return table.float()


class Embedding(nn.Module):
    """Token embedding, scaled by sqrt(d_model), plus positions; some models normalize the sum.

    The `pad_id` row starts at zero and is not trained here; under a tied projection it is still trained to be
    improbable.
    """

    positions: Tensor | None

    def __init__(self, vocabulary_size: int, num_positions: int, config: ModelConfig) -> None:
        super().__init__()
        self.tokens = nn.Embedding(vocabulary_size, config.d_model, padding_idx=config.pad_id)
        self.scale = math.sqrt(config.d_model) if config.scale_embeddings else 1.0
        self.dropout = nn.Dropout(config.dropout)
        self.norm = layer_norm(config) if config.embedding_norm else nn.Identity()
        self.register_buffer("positions", None, persistent=False)  # (P, d), computed, so not stored in checkpoints
        if config.positions.layout == "learned":
            self.position_table = nn.Embedding(num_positions, config.d_model)
        elif config.positions.is_sinusoidal:
            self.positions = sinusoidal_table(num_positions, config.d_model, config.positions)

    def forward(self, token_ids: Tensor) -> Tensor:
        """Embed whole rows: (B, L) int64 -> (B, L, d)."""
        embedded = self.tokens(token_ids) * self.scale
        if (table := self.table()) is not None:
            embedded = embedded + table[: token_ids.shape[1]]
        output: Tensor = self.dropout(self.norm(embedded))
        return output

    def at(self, token_ids: Tensor, positions: Tensor) -> Tensor:
        """Embed one token per row at its own position: (B,), (B,) integers -> (B, d). For incremental decoding."""
        # A look-up like that of tokens: plain indexing exports as GatherND, which does not accept 32-bit indices.
        embedded = self.tokens(token_ids) * self.scale
        if (table := self.table()) is not None:
            embedded = embedded + nn.functional.embedding(positions, table)
        output: Tensor = self.norm(embedded)
        return output

    def table(self) -> Tensor | None:
        """Return what positions add, (P, d); `None` if nothing."""
        return self.position_table.weight if hasattr(self, "position_table") else self.positions
