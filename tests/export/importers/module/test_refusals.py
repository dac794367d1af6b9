"""What can't be read is refused by one line that names the part."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from tests.export.importers.module.models import (
    MODELS,
    Change,
    Experts,
    Grouped,
    Handwritten,
    Options,
    Packed,
    Plain,
    randomized,
)
from tests.export.importers.module.test_reading import read

Forward = Callable[[nn.Module, Tensor, Tensor], object]


class Wrapped(nn.Module):
    """A good model that is called otherwise."""

    def __init__(self, forward: Forward) -> None:
        super().__init__()
        self.inside, self.how = MODELS["packed"](), forward

    def forward(self, source: Tensor, target: Tensor) -> object:
        return self.how(self.inside, source, target)


class OneStack(nn.Module):
    """An encoder, or a decoder, by itself."""

    def __init__(self, side: int) -> None:
        super().__init__()
        self.inside, self.side = Handwritten(Options(Packed)), side

    def forward(self, source: Tensor, target: Tensor) -> Any:
        x = self.inside.embed((source, target)[self.side], self.side)
        for layer in self.inside.enc:
            x = layer(x, None, None)
        logits = self.inside.out(x)
        return logits if self.side else logits[:, :1].expand(-1, target.shape[1], -1)


class NeedsMasks(Handwritten):
    def forward(self, source: Tensor, target: Tensor, source_mask: Tensor, target_mask: Tensor) -> Any:  # type: ignore[override]
        return super().forward(source, target)


def distances(scores: Tensor) -> Tensor:
    """Return (T, S)."""
    return (torch.arange(scores.shape[-2])[:, None] - torch.arange(scores.shape[-1])).abs()


def window(scores: Tensor) -> Tensor:
    """Hide what is further away than any token of the examples that are traced."""
    return scores.masked_fill(distances(scores) > 35, -torch.inf) if scores.shape[-1] > 35 else scores


def changed(change: Change, expected: str) -> tuple[Callable[[], nn.Module], str]:
    """Return a model with changed scores of attention, and what is said about it."""
    return partial(Handwritten, Options(partial(Grouped, 4, change))), expected


REFUSED: dict[str, tuple[Callable[[], nn.Module], str]] = {
    "ALiBi": changed(
        lambda scores: scores - 0.5 * distances(scores), r"increased by biases by distance \(linear ones, ALiBi"
    ),
    "T5": changed(lambda scores: scores + distances(scores).clamp(max=4), r"biases by distance \(relative"),
    "biases": changed(lambda scores: scores + torch.arange(scores.shape[-1]), r"biases that don't only depend"),
    "softcap": changed(torch.tanh, r"scores of encoder layer 0's self-attention are capped"),
    "temperatures": changed(lambda scores: scores * torch.ones(4, 1, 1).cumsum(0), r"multiplied by more than one"),
    "experts": (partial(Handwritten, Options(Packed, Experts)), r"a softmax reads .* as mixtures of experts"),
    "recurrent": (partial(Handwritten, Options(Packed, partial(nn.GRU, 16, 16))), r"recurrent layers \(GRU\)"),
    "not causal": (
        partial(Handwritten, Options(Packed, shows_later=True)),
        r"decoder layer 0's self-attention reads more than the tokens up to its own; check the masks",
    ),
    "alpha and pre-norm": (partial(Handwritten, Options(Packed, alpha=1.5)), r"multiplies the stream by 1\.5, and has"),
    "probabilities": (
        partial(Wrapped, lambda model, *ids: model(*ids).exp()),
        r"returns probabilities; expected logits",
    ),
    "NaN": (partial(Wrapped, lambda model, *ids: model(*ids) * torch.nan), r"returns NaN; check its weights"),
    "shifted": (
        partial(Wrapped, lambda model, source, target: model(source, functional.pad(target[:, :-1], (1, 0)))),
        r"so the model shifts targets itself; give it one token more",
    ),
    "window": (
        partial(Handwritten, Options(partial(Grouped, 4, window), is_learned=None)),
        r"differ by .* of 60 tokens",
    ),
    "no residual": (
        partial(Handwritten, Options(Packed, has_residuals=False)),
        r"the encoder has the residual connections none; exp",
    ),
    "parallel": (
        partial(Handwritten, Options(Packed, is_parallel=True)),
        r"the encoder has the residual connections none; expected",
    ),
    "tanh": (
        partial(Handwritten, Options(Packed, partial(Plain, torch.tanh))),
        r"the activation of encoder layer 0's feed-forward layer is tanh; supported: relu, ",
    ),
    "causal encoder": (
        partial(Handwritten, Options(Packed, hides_in_encoder=True)),
        r"a token in encoder layer 0's self-attention does not read all tokens; check the masks",
    ),
    "dropout": (partial(Handwritten, Options(Packed, drops=True)), r"more than its inputs: is it in training mode\?"),
    "no logits": (
        partial(Wrapped, lambda model, *ids: model(*ids)[:, -1]),
        r"returns shape \(7, 47\), expected \(rows",
    ),
    "a tuple": (
        partial(Wrapped, lambda model, *ids: (model(*ids),)),
        r"returns tuple, expected .* write logits\(model",
    ),
    "masks": (
        partial(NeedsMasks, Options(Packed)),
        r"TypeError: .*'target_mask'.*; write logits\(model, source_ids, tar",
    ),
    "encoder only": (partial(OneStack, 0), r"no table is read with the target's token ids by themselves: is it an"),
    "decoder only": (partial(OneStack, 1), r"no table is read with the source's token ids by themselves: is it an"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_module_that_is_none_of_ours(name: str) -> None:
    build, expected = REFUSED[name]
    with pytest.raises(ValueError, match=expected) as caught:
        read(randomized(build()))
    assert "\n" not in str(caught.value)
