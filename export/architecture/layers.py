"""Feed-forward networks, layer norms, and residual connections that normalize before (pre), after (post) or both."""

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn

from export.architecture.config import Activation, ModelConfig

ACTIVATIONS: dict[Activation, Callable[[Tensor], Tensor]] = {
    "relu": torch.relu,
    "gelu": nn.functional.gelu,
    "gelu_tanh": lambda x: nn.functional.gelu(x, approximate="tanh"),
    "silu": nn.functional.silu,
    "identity": lambda x: x,
}


class FeedForward(nn.Module):
    """FFN(x) = activation(x W_1 + b_1) W_2 + b_2 (paper section 3.3).

    If gated, the activation is a layer's of its own: (activation(x W_g) * x W_1) W_2 (Shazeer 2020).
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        bias, d_ff = config.feed_forward_bias, config.d_ff
        self.inner = nn.Linear(config.d_model, d_ff, bias=bias)
        self.outer = nn.Linear(d_ff, config.d_model, bias=bias)
        self.gate = nn.Linear(config.d_model, d_ff, bias=bias) if config.gated else None
        self.activation = ACTIVATIONS[config.activation]
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, x: Tensor) -> Tensor:
        """Map (..., d) to (..., d), each position independently."""
        inner = self.inner(x)
        inner = self.activation(inner) if self.gate is None else self.activation(self.gate(x)) * inner
        output: Tensor = self.outer(self.dropout(inner))
        return output


class ScalarLayerNorm(nn.Module):
    """gain (x - mean) / (std + epsilon) + bias, with scalars: common in hand-written layer norms; `std` is unbiased.

    `nn.LayerNorm`: (x - mean) / sqrt(biased variance + epsilon), with a gain and a bias per component.
    """

    def __init__(self, width: int, epsilon: float) -> None:
        super().__init__()
        self.gain = nn.Parameter(torch.ones(1))
        self.bias = nn.Parameter(torch.zeros(1))
        self.epsilon = epsilon
        self.norm_per_std = math.sqrt(width - 1)

    def forward(self, x: Tensor) -> Tensor:
        wide = x.float()  # the squares of float16 would overflow
        centered = wide - wide.mean(dim=-1, keepdim=True)
        # std is |centered| / sqrt(d - 1); numerator and denominator are multiplied by that root.
        norm = (centered * centered).sum(dim=-1, keepdim=True).sqrt()
        # Not a quotient: bundles may not have `Div`, as that of integers can end the process (`bundle/graph_file.py`).
        normalized = centered * (norm + self.epsilon * self.norm_per_std).reciprocal()
        return (normalized * (self.gain.float() * self.norm_per_std) + self.bias.float()).to(x.dtype)


class RootMeanSquareNorm(nn.Module):
    """weight x / sqrt(mean(x^2) + epsilon) (Zhang and Sennrich 2019), in float32."""

    def __init__(self, width: int, epsilon: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.epsilon = epsilon

    def forward(self, x: Tensor) -> Tensor:
        wide = x.float()
        mean = (wide * wide).mean(dim=-1, keepdim=True)
        return (wide * (mean + self.epsilon).sqrt().reciprocal() * self.weight.float()).to(x.dtype)


class Residual(nn.Module):
    """A sub-layer's residual connection, which has up to three norms.

    x + f(norm(x)) (pre-norm), norm(x + f(x)) (post-norm, the paper's) or x + output_norm(f(norm(x))) (sandwich: Ding et
    al. 2021, section 3.2; Gemma 2). `block_norm` normalizes a layer's last result once more.
    """

    def __init__(self, config: ModelConfig, *, ends_layer: bool = False) -> None:
        super().__init__()
        self.norm = layer_norm(config)
        self.output_norm = layer_norm(config) if config.norm == "sandwich" else nn.Identity()
        self.block_norm = layer_norm(config) if config.block_norm and ends_layer else nn.Identity()
        self.pre_norm = config.norm != "post"
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, x: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        if self.pre_norm:
            x = x + self.dropout(self.output_norm(sublayer(self.norm(x))))
        else:
            x = self.norm(x + self.dropout(sublayer(x)))
        output: Tensor = self.block_norm(x)
        return output


def layer_norm(config: ModelConfig) -> nn.Module:
    if config.layer_norm == "scalar":
        return ScalarLayerNorm(config.d_model, config.layer_norm_epsilon)
    if config.layer_norm == "rms":
        return RootMeanSquareNorm(config.d_model, config.layer_norm_epsilon)
    return nn.LayerNorm(config.d_model, eps=config.layer_norm_epsilon)


def final_norm(config: ModelConfig) -> nn.Module:
    """Return the layer norm that ends a stack, or the identity if the model has none."""
    return layer_norm(config) if config.final_norm else nn.Identity()
