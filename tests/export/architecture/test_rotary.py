"""Rotary positions and norms of queries and keys: the next tokens are those of another implementation."""

import dataclasses

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import functional
from transformers.models.llama.modeling_llama import apply_rotary_pos_emb

from export.architecture import ModelConfig, PositionConfig
from export.architecture.config import RotaryPairs
from export.architecture.transformer import Transformer
from tests.export.tiny_models import random_sources, tiny_config, tiny_model

NUM_SENTENCES, NUM_TOKENS = 10, 50
CHOICES = {
    "interleaved, partial, rms": tiny_config(
        tie_projection=False,
        d_model=48,
        num_heads=3,
        qk_norm="rms",
        positions=PositionConfig(layout="rotary", rotary_pairs="interleaved", rotary_size=8),
    ),
    "halves, layer": tiny_config(
        tie_projection=False, qk_norm="layer", positions=PositionConfig(layout="rotary", base=500.0)
    ),
}


@pytest.mark.parametrize("config", CHOICES.values(), ids=CHOICES)
@torch.no_grad()
def test_next_tokens_are_those_of_another_implementation(config: ModelConfig) -> None:
    """Of the model, whose log-probabilities graphs give (`test_variants.py`)."""
    model = tiny_model(config)
    for name, parameter in model.named_parameters():  # what attention finds decides the tokens
        factors = {"query_norm.weight": 3.0, "key_norm.weight": 3.0, "feed_forward.": 0.3, "embedding.": 0.5}
        parameter.mul_(next((factor for part, factor in factors.items() if part in name), 1.0))
    model.projection.weight.normal_(std=0.5)
    sources = random_sources(config.source_vocabulary_size, list(range(3, 3 + 4 * NUM_SENTENCES, 4)))
    read = np.random.default_rng(0).integers(4, config.target_vocabulary_size, (NUM_SENTENCES, NUM_TOKENS)).tolist()
    given = [
        model(torch.tensor([source]), torch.tensor([target]))[0].argmax(-1).tolist()
        for source, target in zip(sources, read, strict=True)
    ]
    assert len(np.unique(given)) > 80
    used = config.positions
    pairs: RotaryPairs = "halves" if used.rotary_pairs == "interleaved" else "interleaved"
    right, *controls = (
        [*map(_Theirs(model, dataclasses.replace(config, positions=positions)).next_ids, sources, read)]
        for positions in (used, dataclasses.replace(used, rotary_pairs=pairs), PositionConfig(layout="none"))
    )
    assert given == right
    for control in controls:
        assert (np.array(given) == control).mean() < 0.2


class _Theirs:
    """One sentence in plain torch: halves as transformers' Llama rotates them, neighbours as complex numbers."""

    def __init__(self, model: Transformer, config: ModelConfig) -> None:
        self.weights, self.config = model.state_dict(), config

    def next_ids(self, source: tuple[int, ...], target: list[int]) -> list[int]:
        memory = self._stack("encoder", list(source), None)
        hidden = self._stack("decoder", target, memory)
        return [*map(int, (hidden @ self.weights["projection.weight"].T).argmax(-1))]

    def _stack(self, side: str, ids: list[int], memory: Tensor | None) -> Tensor:
        x = self.weights[f"{side}.embedding.tokens.weight"][ids] * self.config.d_model**0.5
        for index in range(self.config.num_encoder_layers):
            layer = f"{side}.layers.{index}"
            x = x + self._attend(f"{layer}.self_attention", x, None, causal=memory is not None)
            if memory is not None:
                x = x + self._attend(f"{layer}.cross_attention", x, memory, causal=False)
            inner = self._dense(f"{layer}.feed_forward.inner", self._norm(f"{layer}.feed_forward_residual.norm", x))
            x = x + self._dense(f"{layer}.feed_forward.outer", inner.relu())
        return self._norm(f"{side}.final_norm", x)

    def _attend(self, name: str, x: Tensor, memory: Tensor | None, *, causal: bool) -> Tensor:
        x = self._norm(f"{name}_residual.norm", x)
        keys_from = x if memory is None else memory
        heads = [
            self._dense(f"{name}.{part}", y).view(len(y), -1, self.config.head_size).transpose(0, 1)
            for part, y in (("query", x), ("key", keys_from), ("value", keys_from))
        ]  # each (H, L, D)
        queries, keys = (self._norm(f"{name}.{part}_norm", y) for part, y in zip(("query", "key"), heads, strict=False))
        if memory is None:
            queries, keys = self._rotated(queries), self._rotated(keys)
        attended = functional.scaled_dot_product_attention(queries, keys, heads[2], is_causal=causal)
        return self._dense(f"{name}.output", attended.transpose(0, 1).flatten(1))

    def _rotated(self, x: Tensor) -> Tensor:
        positions, size = self.config.positions, self.config.rotary_size
        if not size:
            return x
        angles = torch.outer(torch.arange(x.shape[1]), positions.base ** -(torch.arange(0, size, 2) / size))
        turned, rest = x[..., :size], x[..., size:]
        if positions.rotary_pairs == "interleaved":
            numbers = torch.view_as_complex(turned.unflatten(-1, (-1, 2)).contiguous())
            turned = torch.view_as_real(numbers * torch.polar(torch.ones_like(angles), angles)).flatten(-2)
        else:
            both = torch.cat([angles, angles], dim=-1)[None]
            turned = apply_rotary_pos_emb(turned[None], turned[None], both.cos(), both.sin())[0][0]
        return torch.cat([turned, rest], dim=-1)

    def _norm(self, name: str, x: Tensor) -> Tensor:
        weight, epsilon = self.weights[f"{name}.weight"], self.config.layer_norm_epsilon
        bias = self.weights.get(f"{name}.bias")
        if bias is None:
            return functional.rms_norm(x, weight.shape, weight, epsilon)
        return functional.layer_norm(x, weight.shape, weight, bias, epsilon)

    def _dense(self, name: str, x: Tensor) -> Tensor:
        return functional.linear(x, self.weights[f"{name}.weight"], self.weights[f"{name}.bias"])


def test_unusable_settings_are_named() -> None:
    for size, heads in ((5, 8), (10, 8)):
        with pytest.raises(ValueError, match=f"positions rotate {size} of a head's {heads} components, not pairs"):
            tiny_config(positions=PositionConfig(layout="rotary", rotary_size=size))
    with pytest.raises(ValueError, match=r"positions.layout rotary needs self-attention"):
        tiny_config(positions=PositionConfig(layout="rotary"), autoregression="ssru")
