"""Layer norms but torch's own, gated feed-forward, and heads that share keys and values."""

import pytest
import torch
from torch.nn.functional import linear, scaled_dot_product_attention

from export.architecture.attention import MultiHeadAttention
from export.architecture.layers import FeedForward, RootMeanSquareNorm, ScalarLayerNorm
from tests.export.tiny_models import tiny_config


@pytest.mark.parametrize("epsilon", [1e-8, 0.5])
@torch.no_grad()
def test_scalar_norm_is_its_formula(epsilon: float) -> None:
    torch.manual_seed(1)
    x = torch.randn(3, 5, 12) * 4 + 2
    norm = ScalarLayerNorm(12, epsilon)
    norm.gain.fill_(1.5)
    norm.bias.fill_(-0.25)
    expected = 1.5 * (x - x.mean(-1, keepdim=True)) / (x.std(-1, unbiased=True, keepdim=True) + epsilon) - 0.25
    torch.testing.assert_close(norm(x), expected, rtol=1e-5, atol=1e-6)


@torch.no_grad()
def test_scalar_norm_of_equal_components_and_of_float16() -> None:
    norm = ScalarLayerNorm(512, 1e-8)
    assert norm(torch.full((2, 512), 7.0)).tolist() == torch.zeros(2, 512).tolist()
    torch.manual_seed(1)
    x = torch.randn(2, 512) * 100  # whose squares exceed float16's range
    given = norm.half()(x.half())
    assert given.dtype == torch.float16
    torch.testing.assert_close(given.float(), ScalarLayerNorm(512, 1e-8)(x), rtol=1e-2, atol=1e-2)


@torch.no_grad()
def test_root_mean_square_norm_is_torchs_in_float16_too() -> None:
    torch.manual_seed(1)
    x = torch.randn(2, 48) * 300  # whose squares exceed float16's range
    norm, expected = RootMeanSquareNorm(48, 1e-6), torch.nn.RMSNorm(48, eps=1e-6)
    norm.weight.normal_()
    expected.load_state_dict(norm.state_dict())
    torch.testing.assert_close(norm(x), expected(x))
    torch.testing.assert_close(norm.half()(x.half()).float(), expected(x), rtol=1e-2, atol=1e-2)


@torch.no_grad()
def test_a_gate_is_activated_and_multiplies() -> None:
    torch.manual_seed(1)
    layer = FeedForward(tiny_config(d_ff=20, gated=True, activation="gelu_tanh", feed_forward_bias=False)).eval()
    x = torch.randn(3, 32)
    gate, inner, outer = (layer.get_parameter(f"{name}.weight") for name in ("gate", "inner", "outer"))
    activated = torch.nn.functional.gelu(x @ gate.T, approximate="tanh")
    torch.testing.assert_close(layer(x), (activated * (x @ inner.T)) @ outer.T)


@pytest.mark.parametrize("num_groups", [1, 2, 4])
@torch.no_grad()
def test_heads_that_share_keys_and_values_are_exactly_heads_that_repeat_them(num_groups: int) -> None:
    """Grouped-query attention (Ainslie et al. 2023) and, of one group, multi-query attention need no choice of ours."""
    torch.manual_seed(3)
    attention, x, shared = MultiHeadAttention(tiny_config()).eval(), torch.randn(3, 7, 32), []
    for part in (attention.key, attention.value):
        weight, bias = torch.randn(num_groups, 8, 32), torch.randn(num_groups, 8)
        shared.append(linear(x, weight.flatten(0, 1), bias.flatten()).unflatten(-1, (num_groups, 8)).transpose(1, 2))
        for ours, given in ((part.weight, weight), (part.bias, bias)):
            ours.copy_(given.repeat_interleave(4 // num_groups, dim=0).flatten(0, 1))
    queries = attention.split_heads(attention.query(x))
    heads = scaled_dot_product_attention(queries, shared[0], shared[1], enable_gqa=True)
    expected = attention.output(heads.transpose(1, 2).flatten(2))
    torch.testing.assert_close(attention(x, x), expected, rtol=0, atol=1e-5)
