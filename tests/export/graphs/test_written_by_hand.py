"""Models of other people's kinds, written here by hand in torch: graphs and the numpy model choose their tokens."""

from collections.abc import Callable, Mapping

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import layer_norm, linear

from export.architecture.streamed import StreamedTransformer
from tests.export.tiny_models import random_sources
from tests.export.variants import SUPPRESSED, Variant

LENGTHS, NUM_STEPS = [2, 9, 30, 5, 17, 12, 8, 3, 21, 11], 50  # 500 tokens


class HandWritten:
    """Sandwich norms, a norm at the end of each layer, and a decoder of other sizes than the encoder's; one row."""

    def __init__(self, state: Mapping[str, Tensor]) -> None:
        self.state = state

    def dense(self, name: str, x: Tensor) -> Tensor:
        return linear(x, self.state[f"{name}.weight"], self.state.get(f"{name}.bias"))

    def norm(self, name: str, x: Tensor) -> Tensor:
        return layer_norm(x, x.shape[-1:], self.state[f"{name}.weight"], self.state[f"{name}.bias"])

    def attend(self, name: str, x: Tensor, memory: Tensor, num_heads: int, bias: Tensor | float) -> Tensor:
        """Attend from (Q, d) to (S, e), head by head."""
        queries, keys, values = (
            self.dense(f"{name}.{part}", y).chunk(num_heads, dim=-1)
            for part, y in (("query", x), ("key", memory), ("value", memory))
        )
        scores = torch.stack([q @ k.T / q.shape[-1] ** 0.5 for q, k in zip(queries, keys, strict=True)]) + bias
        heads = [p @ v for p, v in zip(scores.softmax(-1), values, strict=True)]
        return self.dense(f"{name}.output", torch.cat(heads, dim=-1))

    def layer(self, name: str, x: Tensor, memory: Tensor | None, num_heads: int, bias: Tensor) -> Tensor:
        def sandwich(part: str, function: Callable[[Tensor], Tensor]) -> Tensor:
            inside = function(self.norm(f"{name}.{part}_residual.norm", x))
            return x + self.norm(f"{name}.{part}_residual.output_norm", inside)

        x = sandwich("self_attention", lambda y: self.attend(f"{name}.self_attention", y, y, num_heads, bias))
        if memory is not None:
            x = sandwich("cross_attention", lambda y: self.attend(f"{name}.cross_attention", y, memory, num_heads, 0.0))
        x = sandwich(
            "feed_forward",
            lambda y: self.dense(f"{name}.feed_forward.outer", self.dense(f"{name}.feed_forward.inner", y).relu()),
        )
        return self.norm(f"{name}.feed_forward_residual.block_norm", x)

    def stack(self, side: str, ids: list[int], memory: Tensor | None, num_heads: int, bias: Tensor) -> Tensor:
        table = self.state[f"{side}.embedding.tokens.weight"]
        half = table.shape[1] // 2
        angles = torch.arange(2, 2 + len(ids))[:, None] * 10_000 ** -(torch.arange(half) / (half - 1))
        x = table[ids] * table.shape[1] ** 0.5 + torch.cat([angles.sin(), angles.cos()], dim=1)
        num_layers = 1 + max(int(name.split(".")[2]) for name in self.state if name.startswith(f"{side}.layers"))
        for index in range(num_layers):
            x = self.layer(f"{side}.layers.{index}", x, memory, num_heads, bias)
        return self.norm(f"{side}.final_norm", x)

    @torch.no_grad()
    def greedy(self, source: tuple[int, ...]) -> list[int]:
        """Return the tokens that follow the start token 2."""
        memory, ids = self.stack("encoder", list(source), None, 2, torch.zeros(1)), [2]
        while len(ids) <= NUM_STEPS:
            later = torch.full((len(ids), len(ids)), -torch.inf).triu(1)
            logits = self.dense("projection", self.stack("decoder", ids, memory, 3, later)[-1])
            logits[list(SUPPRESSED)] = -torch.inf
            ids.append(int(logits.argmax()))
        return ids[1:]


def test_all_of_500_greedy_tokens_are_those_of_the_hand_written_model(variants: Callable[[str], Variant]) -> None:
    variant = variants("uneven")
    model, sources = variant.model, random_sources(70, LENGTHS)
    state = model.state_dict()
    expected = np.array([*map(HandWritten(state).greedy, sources)])
    assert len(set(expected.flatten().tolist())) > 20  # they are not one token again and again
    row, tokens = variant.pair.start(sources, pad_id=1, capacity=NUM_STEPS), [np.full(len(sources), 2)]
    for _ in range(NUM_STEPS):
        tokens.append(row.next_ids(tokens[-1]))
    np.testing.assert_array_equal(np.stack(tokens[1:], axis=1), expected)
    streamed = StreamedTransformer(model.config, model.stored().weights)
    hidden = streamed.hidden(sources, [[2, *ids[:-1]] for ids in expected.tolist()])
    logits = np.concatenate([*streamed.logits(hidden.reshape(-1, hidden.shape[-1]))], axis=1)
    logits[:, list(SUPPRESSED)] = -np.inf
    np.testing.assert_array_equal(logits.argmax(axis=1).reshape(expected.shape), expected)
    for norm in ("output_norm", "block_norm"):  # a control: they matter
        other = {name: value * 1.5 if name.endswith(f"{norm}.weight") else value for name, value in state.items()}
        assert HandWritten(other).greedy(sources[2]) != expected[2].tolist()
