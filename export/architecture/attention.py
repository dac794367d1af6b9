"""Scaled dot-product and multi-head attention (paper section 3.2)."""

import torch
from torch import Tensor, nn
from torch.nn import functional

from export.architecture.config import ModelConfig
from export.architecture.layers import RootMeanSquareNorm
from export.architecture.positions import rotary_tables


class MultiHeadAttention(nn.Module):
    """MultiHead(Q, K, V) = Concat(head_1 .. head_h) W_o, head_i = softmax(Q_i K_i^T / sqrt(d_k)) V_i.

    What `rotates` turns queries and keys by their positions. The exported graphs use `project_keys_values` and
    `attend`.
    """

    def __init__(self, config: ModelConfig, *, keys_width: int | None = None, rotates: bool = False) -> None:
        super().__init__()
        width, heads, bias = config.d_model, config.attention_width, config.attention_bias
        self.num_heads = config.num_heads
        self.head_size = config.head_size
        self.scale = config.score_factor
        self.dropout = config.attention_dropout
        self.query = nn.Linear(width, heads, bias=bias)
        self.key = nn.Linear(keys_width or width, heads, bias=bias)  # the encoder's width, where that differs
        self.value = nn.Linear(keys_width or width, heads, bias=bias)
        self.query_norm, self.key_norm = _head_norm(config), _head_norm(config)
        self.positions, self.rotary_size = config.positions, config.rotary_size if rotates else 0
        self.output: nn.Linear | nn.Identity = nn.Identity()  # some models only concatenate the heads
        if config.attention_output != "none":
            self.output = nn.Linear(heads, width, bias=config.has_attention_output_bias)

    def forward(
        self,
        queries_from: Tensor,
        keys_from: Tensor,
        mask: Tensor | None = None,
        causal: bool = False,
        bias: Tensor | None = None,
    ) -> Tensor:
        """Attend from (B, Q, d) to (B, S, d); the result is (B, Q, d).

        `mask` is boolean, broadcastable to (B, H, Q, S), true where attention is allowed; `causal`, without one, allows
        positions up to the own. `bias`, broadcastable as well, is added to the scores.
        """
        if bias is not None:
            allowed = torch.ones_like(bias, dtype=torch.bool).tril() if causal else mask
            mask, causal = bias if allowed is None else torch.where(allowed, bias, -torch.inf), False
        keys, values = self.project_keys_values(keys_from)
        queries = self.rotated(self.query_norm(self.split_heads(self.query(queries_from))))
        return self.attend(queries, keys, values, mask, causal)

    def project_keys_values(self, keys_from: Tensor) -> tuple[Tensor, Tensor]:
        """Return the keys and values of (B, S, d), each (B, H, S, D)."""
        keys = self.rotated(self.key_norm(self.split_heads(self.key(keys_from))))
        return keys, self.split_heads(self.value(keys_from))

    def rotated(self, heads: Tensor) -> Tensor:
        """Rotate the queries or keys (B, H, L, D) of whole rows by their positions, if this attention does."""
        if not self.rotary_size:
            return heads
        tables = rotary_tables(heads.shape[2], self.head_size, self.rotary_size, self.positions)
        cosines, sines, partners = (torch.from_numpy(table).to(heads.device) for table in tables)
        return heads * cosines.to(heads.dtype) + heads[..., partners] * sines.to(heads.dtype)

    def attend(
        self, queries: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None = None, causal: bool = False
    ) -> Tensor:
        """Attend over split heads: (B, H, Q, D), (B, H, S, D), (B, H, S, D) -> (B, Q, d)."""
        dropout = self.dropout if self.training else 0.0
        heads = functional.scaled_dot_product_attention(
            queries, keys, values, attn_mask=mask, dropout_p=dropout, is_causal=causal, scale=self.scale
        )  # (B, H, Q, D)
        output: Tensor = self.output(heads.transpose(1, 2).flatten(2))
        return output

    def split_heads(self, projected: Tensor) -> Tensor:
        """Map (B, L, d) to (B, H, L, D)."""
        heads: Tensor = projected.unflatten(-1, (self.num_heads, self.head_size)).transpose(1, 2)
        return heads


def _head_norm(config: ModelConfig) -> nn.Module:
    """Return the norm of a head's queries or keys, or the identity if the model has none."""
    if config.qk_norm == "none":
        return nn.Identity()
    kind = RootMeanSquareNorm if config.qk_norm == "rms" else nn.LayerNorm
    return kind(config.head_size, config.layer_norm_epsilon)
