"""Feed-forward networks, and residual connections with layer norm before (pre) or after (post) a sub-layer."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from export.architecture.config import Activation, ModelConfig

ACTIVATIONS: dict[Activation, Callable[[Tensor], Tensor]] = {
    "relu": torch.relu,
    "gelu": nn.functional.gelu,
    "silu": nn.functional.silu,
}


class FeedForward(nn.Module):
    """FFN(x) = activation(x W_1 + b_1) W_2 + b_2 (paper section 3.3)."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.inner = nn.Linear(config.d_model, config.d_ff)
        self.outer = nn.Linear(config.d_ff, config.d_model)
        self.activation = ACTIVATIONS[config.activation]
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, x: Tensor) -> Tensor:
        """(..., d) -> (..., d), each position by itself."""
        output: Tensor = self.outer(self.dropout(self.activation(self.inner(x))))
        return output


class Residual(nn.Module):
    """A sub-layer's residual connection: x + f(norm(x)) (pre-norm) or norm(x + f(x)) (post-norm, the paper's)."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(config.d_model, eps=config.layer_norm_epsilon)
        self.pre_norm = config.norm == "pre"
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, x: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        """(..., d) -> (..., d)."""
        if self.pre_norm:
            before: Tensor = x + self.dropout(sublayer(self.norm(x)))
            return before
        output: Tensor = self.norm(x + self.dropout(sublayer(x)))
        return output


def final_norm(config: ModelConfig) -> nn.Module:
    """The layer norm that closes a stack, or nothing where the model has none."""
    return nn.LayerNorm(config.d_model, eps=config.layer_norm_epsilon) if config.final_norm else nn.Identity()
