"""What can't be read is refused by one line that names the part; nothing but the named file is run."""

import contextlib
import json
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from click.testing import CliRunner, Result
from torch import Tensor, nn
from torch.nn import functional

from export.cli import main
from export.importers.module.author import load_author
from tests.export.importers.module.models import (
    MODELS,
    SOURCE_SIZE,
    TARGET_SIZE,
    Change,
    Experts,
    Grouped,
    Handwritten,
    Options,
    Packed,
    Plain,
    randomized,
)
from tests.export.importers.module.test_reading import SAID, read
from tests.export.importers.state_dict.checkpoints import SOURCE_IDS, train_json_tokenizer

TEXTS = ("the house is near the sea", "close the window and save the file", "where is the railway station") * 3
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
        r"the activation of encoder layer 0's feed-forward layer is tanh; ours are relu, ",
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


GOOD = """
import torch
from tests.export.importers.module.models import MODELS

def build():
    return MODELS["packed"]()

def wrapped():
    return torch.nn.DataParallel(build())

def no_module():
    return build().state_dict()

def other():
    return MODELS["torch pre"]()

def stops():
    raise SystemExit("usage: train.py\\n  --data")

def raises():
    raise RuntimeError("two\\nlines")
"""


@pytest.mark.filterwarnings("ignore:enable_nested_tensor")
@pytest.mark.parametrize(
    ("function", "expected"),
    [
        ("", r"expected FILE.py:FUNCTION"),
        ("missing", r"has no function 'missing'; it has build, wrapped, no_module, other"),
        ("raises", r"can't build the model \(RuntimeError: two lines\)"),
        ("stops", r"can't build the model \(SystemExit: usage: train.py --data\)"),
        ("no_module", r"returns .*[dD]ict, expected a torch.nn.Module"),
        ("other", r"the weights are not those of the model .*: the file lacks generator.bias, .* and 67 more"),
    ],
)
def test_a_function_that_builds_no_such_model(function: str, expected: str, tmp_path: Path) -> None:
    path = tmp_path / "factory.py"
    path.write_text(GOOD)
    good = randomized(MODELS["packed"]()).state_dict()
    for name in ("build", "wrapped"):
        assert len(load_author(f"{path}:{name}", good).module.state_dict()) == len(good), "a control"
    with pytest.raises(ValueError, match=expected) as caught:
        load_author(f"{path}:{function}" if function else str(path), good)
    assert "\n" not in str(caught.value)


class Plant:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Callable[[str], int], tuple[str]]:
        return os.system, (f"touch {self.path}",)


def test_the_command(tmp_path: Path) -> None:
    """It runs the file of --like, neither what lies beside it nor the checkpoint's code."""
    module, ran = randomized(MODELS["packed"]()), tmp_path / "ran"
    good, bad = tmp_path / "good.pt", tmp_path / "bad.pt"
    torch.save(module.state_dict(), good)
    torch.save(module.state_dict() | {"plant": Plant(ran)}, bad)
    (tmp_path / "factory.py").write_text(GOOD)
    for name in ("conftest", "__init__", "model", "good"):
        (tmp_path / f"{name}.py").write_text(f"open({str(ran)!r}, 'w')")
    (tmp_path / "config.json").write_text(json.dumps(SAID))
    options = ["--config", "config.json", "--source-language", "en", "--target-language", "de"]
    for side, size in (("--tokenizer", SOURCE_SIZE), ("--target-tokenizer", TARGET_SIZE)):
        options += [side, str(train_json_tokenizer(TEXTS, tmp_path / f"{size}.json", size, SOURCE_IDS))]

    def convert(path: Path, function: str) -> Result:
        given = ["convert", str(path), "--output", str(tmp_path / "out" / "1"), "--like", f"factory.py:{function}"]
        return CliRunner().invoke(main, [*given, *options])

    with contextlib.chdir(tmp_path):
        for path, function, expected in ((good, "other", "weights are not those"), (bad, "build", "might run code")):
            refused = convert(path, function)
            assert (refused.exit_code, refused.stderr.count("\n")) == (2, 1), refused.stderr
            assert expected in refused.stderr
            assert not ran.exists()
        written = convert(good, "build")
    assert written.exit_code == 0, written.output
    assert (tmp_path / "out" / "1" / "manifest.json").is_file()
    assert not ran.exists()
    torch.load(bad, weights_only=False)
    assert ran.exists(), "a control: the plant does run"
