"""Layer norms but torch's own, and gated feed-forward."""

import pytest
import torch

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
    layer = FeedForward(tiny_config(gated=True, activation="gelu_tanh", feed_forward_bias=False), 20).eval()
    x = torch.randn(3, 32)
    gate, inner, outer = (layer.get_parameter(f"{name}.weight") for name in ("gate", "inner", "outer"))
    activated = torch.nn.functional.gelu(x @ gate.T, approximate="tanh")
    torch.testing.assert_close(layer(x), (activated * (x @ inner.T)) @ outer.T)
