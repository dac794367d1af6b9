"""Token embeddings and positions (paper sections 3.4 and 3.5)."""

import math

import torch
from torch import Tensor, nn

from export.architecture.config import ModelConfig
from export.architecture.layers import layer_norm
from export.architecture.positions import sinusoidal_table


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
        self.num_positions, self.config = num_positions, config
        if config.positions.layout == "learned":
            self.position_table = nn.Embedding(num_positions, config.d_model)
        self.compute_positions()

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

    def compute_positions(self) -> None:
        """Compute sinusoids, if the model has them: they are lost if it is made on torch's device "meta"."""
        config = self.config
        if config.positions.is_sinusoidal:
            self.positions = torch.from_numpy(sinusoidal_table(self.num_positions, config.d_model, config.positions))

    def table(self) -> Tensor | None:
        """Return what positions add, (P, d); `None` if nothing."""
        return self.position_table.weight if hasattr(self, "position_table") else self.positions
