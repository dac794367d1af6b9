"""Layouts of others, by --names: foldings give what the strangers' own arithmetic does; mistakes are told."""

from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from export.importers.state_dict.foldings import Heads
from export.importers.state_dict.layout import read_layout
from export.importers.state_dict.weights import fold

NAMES = """
[names]
"l{layer}.q" = ["encoder.layers.{layer}.self_attention.query.weight", "transposed"]
"l{layer}.kv" = ["encoder.layers.{layer}.self_attention.key.weight", "grouped"]
"l{layer}.qkv" = ["decoder.layers.{layer}.self_attention.*.weight", "fused_grouped"]
"l{layer}.glu" = ["encoder.layers.{layer}.feed_forward.*.weight", "gate_last"]
"l{layer}.swiglu" = ["decoder.layers.{layer}.feed_forward.*.weight", "gate_first"]
"l{layer}.out.{weight}" = "encoder.layers.{layer}.feed_forward.outer.{weight}"
"l{layer}.gamma" = ["encoder.layers.{layer}.feed_forward.outer", "scale"]
"l{layer}.heads.{head}" = "encoder.layers.{layer}.cross.{weight}"
"""
HEADS = Heads(4, 2)
X = torch.randn(3, 8, generator=torch.Generator().manual_seed(0))


def drawn(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape)))


def test_foldings(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(NAMES.replace('cross.{weight}"', 'cross.weight"'))
    q, kv, qkv, glu, swiglu = drawn(8, 8), drawn(4, 8), drawn(16, 8), drawn(12, 8), drawn(14, 8)
    out, gamma = nn.Linear(6, 8), drawn(8)
    heads = {f"l0.heads.{head}": drawn(2, 8) + head for head in range(11)}  # ten comes after nine
    tensors = {"l0.q": q, "l0.kv": kv, "l0.qkv": qkv, "l0.glu": glu, "l0.swiglu": swiglu, "l0.gamma": gamma, **heads}
    tensors |= {"l0.out.weight": out.weight.detach(), "l0.out.bias": out.bias.detach()}
    problems: list[str] = []
    weights, _ = fold(tensors, read_layout(path).find(tensors), HEADS, None, problems)
    assert problems == []

    def ours(name: str, x: Tensor = X) -> Tensor:
        return nn.functional.linear(x, weights[f"{name}.weight"], weights.get(f"{name}.bias"))

    def shared(rows: Tensor) -> Tensor:
        """Give each of two heads to two successive ones of four."""
        heads: Tensor = (X @ rows.T).unflatten(1, (2, 2))
        return heads[:, [0, 0, 1, 1]].flatten(1)

    value, gate = (X @ glu.T).chunk(2, -1)
    first, second = (X @ swiglu.T).chunk(2, -1)
    for name, expected in {
        "encoder.layers.0.self_attention.query": X @ q,
        "encoder.layers.0.self_attention.key": shared(kv),
        "decoder.layers.0.self_attention.query": X @ qkv[:8].T,
        "decoder.layers.0.self_attention.key": shared(qkv[8:12]),
        "decoder.layers.0.self_attention.value": shared(qkv[12:]),
        "encoder.layers.0.feed_forward.gate": gate,
        "encoder.layers.0.feed_forward.inner": value,
        "decoder.layers.0.feed_forward.gate": first,
        "decoder.layers.0.feed_forward.inner": second,
        "encoder.layers.0.cross": torch.cat([X @ rows.T for rows in heads.values()], -1),
    }.items():
        torch.testing.assert_close(ours(name), expected)
    torch.testing.assert_close(ours("encoder.layers.0.feed_forward.outer", value), (gamma * out(value)).detach())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[names", "it is not TOML"),
        ("a = 1", "a is unknown"),
        ("about = 'mine'", r"it has no table \[names\]"),
        ("[names]\nx = 1", "x is 1, expected our name"),
        ("[names]\n'x{part}' = 'y'", r"{part} in x{part} is neither {layer}, {head} nor in \[words\]"),
        ("[names]\nx = 'encoder.layers.{layer}.y'", "x lacks what encoder.layers.{layer}.y has in braces"),
        ("[names]\nx = ['y', 'shuffled']", "'shuffled' is no folding; there are fused, packed"),
        ("[config]\nrotary = 1\n[names]\nx = 'y'", r"\[config\] has 'rotary'"),
        ("[words]\npart = 3\n[names]\nx = 'y'", r"\[words\] has no tables"),
    ],
)
def test_mistakes_in_layouts(text: str, expected: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(text)
    with pytest.raises(ValueError, match=expected):
        read_layout(path)
