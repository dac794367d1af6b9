"""Relative biases: each pair of tokens gets what transformers' T5 gives it, near and far, in both directions."""

import pytest
import torch
from transformers import T5Config
from transformers.models.t5.modeling_t5 import T5Attention

from export.architecture import RelativeBiasConfig
from export.architecture.relative_bias import RelativeBias
from tests.export.tiny_models import tiny_config


@pytest.mark.parametrize("is_causal", [True, False])
@pytest.mark.parametrize(("num_buckets", "max_distance"), [(32, 128), (12, 20), (4, 3), (64, 1000)])
@torch.no_grad()
def test_biases_are_those_of_t5(num_buckets: int, max_distance: int, is_causal: bool) -> None:
    bias = RelativeBias(tiny_config(relative_bias=RelativeBiasConfig(num_buckets, max_distance)), is_causal=is_causal)
    bias.weight.normal_(generator=torch.Generator().manual_seed(0))
    config = T5Config(
        d_model=32,
        num_heads=4,
        relative_attention_num_buckets=num_buckets,
        relative_attention_max_distance=max_distance,
        is_decoder=is_causal,
    )
    theirs = T5Attention(config, has_relative_attention_bias=True)
    theirs.relative_attention_bias.weight.copy_(bias.weight)
    given, expected = bias(1100), theirs.compute_bias(1100, 1100)
    seen = torch.ones(1100, 1100, dtype=torch.bool).tril() if is_causal else torch.ones(1100, 1100, dtype=torch.bool)
    assert torch.equal(given[..., seen], expected[..., seen])
    assert len({*given[0, 0, 1000].tolist()}) > num_buckets // 2 - 1  # distances do differ


def test_unusable_settings_are_named() -> None:
    with pytest.raises(ValueError, match="5 buckets for distances up to 2; allowed: an even number from 4"):
        tiny_config(relative_bias=RelativeBiasConfig(5, 2))
    with pytest.raises(ValueError, match="relative_bias needs self-attention"):
        tiny_config(relative_bias=RelativeBiasConfig(), autoregression="ssru")
