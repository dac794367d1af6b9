"""Transformations of queries and keys between their dense layer and attention: a norm of each head, and a rotation."""

import torch
from torch import Tensor, nn

from export.architecture.attention import MultiHeadAttention
from export.architecture.positions import rotary_tables
from export.graphs.dense import padded_head_size
from export.graphs.operators import take_columns


class HeadForms(nn.Module):
    """The norms of an attention's queries and keys, and how it rotates both at up to `num_positions` positions."""

    cosines: Tensor
    sines: Tensor
    partners: Tensor

    def __init__(self, attention: MultiHeadAttention, num_positions: int = 0) -> None:
        super().__init__()
        self.query_norm, self.key_norm, self.size = attention.query_norm, attention.key_norm, attention.head_size
        self.padded_size = padded_head_size(self.size)
        self.rotates = attention.rotary_size > 0
        self.is_identity = not self.rotates and isinstance(self.query_norm, nn.Identity)
        if self.rotates:
            tables = rotary_tables(num_positions, self.size, attention.rotary_size, attention.positions)
            dtype = attention.query.weight.dtype
            for name, table in zip(("cosines", "sines"), tables[:2], strict=True):
                self.register_buffer(name, torch.from_numpy(table).to(dtype))  # (P, D)
            self.register_buffer("partners", torch.from_numpy(tables[2]))  # (D,)

    def queries(self, x: Tensor, positions: Tensor | None = None) -> Tensor:
        """Map (..., H D) to the same shape, heads padded before and after.

        What is rotated are tokens at `positions` (...) or, without them, whole rows (B, L, H D).
        """
        return self._formed(self.query_norm, x, positions)

    def keys(self, x: Tensor, positions: Tensor | None = None) -> Tensor:
        return self._formed(self.key_norm, x, positions)

    def packed(self, x: Tensor, positions: Tensor) -> Tensor:
        """Do both for queries and keys side by side with their values, (..., 3 H D)."""
        if self.is_identity:
            return x
        width = x.shape[-1] // 3
        queries, keys = self.queries(x[..., :width], positions), self.keys(x[..., width : 2 * width], positions)
        return torch.cat([queries, keys, x[..., 2 * width :]], dim=-1)

    def _formed(self, norm: nn.Module, x: Tensor, positions: Tensor | None) -> Tensor:
        if self.is_identity:
            return x
        heads = norm(x.unflatten(-1, (-1, self.padded_size))[..., : self.size])
        if self.rotates:
            positions = torch.arange(x.shape[1]) if positions is None else positions
            cosines, sines = (nn.functional.embedding(positions, each) for each in (self.cosines, self.sines))
            heads = heads * cosines.unsqueeze(-2) + take_columns(heads, self.partners) * sines.unsqueeze(-2)
        if missing := self.padded_size - self.size:
            heads = torch.cat([heads, torch.full_like(heads[..., :missing], 0.0)], dim=-1)
        formed: Tensor = heads.flatten(-2)
        return formed
