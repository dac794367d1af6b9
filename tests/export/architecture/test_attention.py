"""Our attention against torch's own and against the paper's formula."""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from export.architecture.attention import MultiHeadAttention
from tests.export.tiny_models import tiny_config


def random_attention(num_heads: int = 4) -> MultiHeadAttention:
    torch.manual_seed(3)
    attention = MultiHeadAttention(tiny_config(num_heads=num_heads)).eval()
    for parameter in attention.parameters():
        nn.init.normal_(parameter, std=0.3)
    return attention


@torch.no_grad()
def copy_attention(attention: MultiHeadAttention, theirs: nn.MultiheadAttention) -> nn.MultiheadAttention:
    """Copy our weights to torch's."""
    parts = (attention.query, attention.key, attention.value)
    theirs.in_proj_weight.copy_(torch.cat([part.weight for part in parts]))
    theirs.in_proj_bias.copy_(torch.cat([part.bias for part in parts]))
    theirs.out_proj.load_state_dict(attention.output.state_dict())
    return theirs


def torch_attention(attention: MultiHeadAttention) -> nn.MultiheadAttention:
    return copy_attention(attention, nn.MultiheadAttention(32, attention.num_heads, batch_first=True).eval())


@torch.no_grad()
def test_equals_torch_with_a_mask() -> None:
    attention = random_attention()
    queries, keys = torch.randn(3, 5, 32), torch.randn(3, 7, 32)
    live = torch.arange(7) < torch.tensor([[7], [3], [1]])
    ours = attention(queries, keys, live[:, None, None, :])
    theirs, _ = torch_attention(attention)(queries, keys, keys, key_padding_mask=~live)
    torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)


@torch.no_grad()
def test_equals_torch_with_a_causal_mask() -> None:
    attention = random_attention()
    x = torch.randn(2, 6, 32)
    mask = nn.Transformer.generate_square_subsequent_mask(6)
    theirs, _ = torch_attention(attention)(x, x, x, attn_mask=mask, is_causal=True)
    torch.testing.assert_close(attention(x, x, causal=True), theirs, rtol=1e-4, atol=1e-5)


def formula(queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
    """Compute softmax(Q K^T / sqrt(d_k)) V, paper section 3.2.1, for one head."""
    weights = functional.softmax(queries @ keys.T / math.sqrt(queries.shape[-1]), dim=-1)
    return weights @ values


@torch.no_grad()
def test_one_head_is_the_papers_formula() -> None:
    attention = random_attention(num_heads=1)
    x, y = torch.randn(5, 32), torch.randn(9, 32)
    expected = attention.output(formula(attention.query(x), attention.key(y), attention.value(y)))
    torch.testing.assert_close(attention(x[None], y[None])[0], expected, rtol=1e-4, atol=1e-5)
