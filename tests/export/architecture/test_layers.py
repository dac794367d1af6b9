"""Layer norms: torch's, and one gain for all components with the unbiased standard deviation."""

import pytest
import torch

from export.architecture.layers import ScalarLayerNorm


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
