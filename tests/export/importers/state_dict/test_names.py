"""Foldings give what the strangers' own arithmetic does, or what document 003 prints; mistakes in --names are told."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
import torch
from torch import Tensor

from export.architecture import ModelConfig
from export.architecture.attention import MultiHeadAttention
from export.importers.state_dict.foldings import Heads
from export.importers.state_dict.layout import FOLDER, read_layout
from export.importers.state_dict.weights import fold

LAYER = "encoder.layers.0."
THREE_DIGITS = 0.501e-3  # half of the last digit plus float32 rounding
PRINTED = torch.tensor(
    [
        [float(number) for number in line.split()]
        for line in """\
 7.501  15.386  12.121  23.458   5.546  -7.499
 4.221   4.875  -2.205   4.050  -4.525   5.155
 1.891   3.035   3.399   2.733   2.958  -0.824
 2.621   2.177  -4.974  -0.925  -1.928   3.726
-0.130  -0.250   3.700   0.948   9.384   0.697
 2.524   1.555  -0.789   2.667  -0.459   4.428
 0.056  -1.688  -1.537  -1.700   0.391   4.648
-1.352  -4.136  -8.878  -1.003 -12.857  -4.945
""".splitlines()
    ]
)


def drawn(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape)))


def shared(heads: Tensor) -> Tensor:
    """Give each of two heads to two successive ones of four."""
    own: Tensor = heads.unflatten(1, (2, 2))
    return own[:, [0, 0, 1, 1]].flatten(1)


def folded(path: Path, tensors: Mapping[str, Tensor], heads: Heads) -> dict[str, Tensor]:
    problems: list[str] = []
    weights, _ = fold(tensors, read_layout(path).find(tensors), heads, None, problems)
    assert problems == []
    return {name.removeprefix(LAYER): weight for name, weight in weights.items()}


X = drawn(3, 8)
# Rows of 8, and ours; `fused` and `packed` are in test_logits.py.
FOLDED: dict[str, tuple[int, Callable[[Tensor], tuple[str, list[Tensor]]]]] = {
    "transposed": (8, lambda w: ("query", [X @ w])),
    "grouped": (4, lambda w: ("key", [shared(X @ w.T)])),
    "fused_grouped": (
        16,
        lambda w: ("query key value", [X @ w[:8].T, shared(X @ w[8:12].T), shared(X @ w[12:].T)]),
    ),
    "gate_first": (14, lambda w: ("gate inner", [*(X @ w.T).chunk(2, 1)])),
    "gate_last": (12, lambda w: ("inner gate", [*(X @ w.T).chunk(2, 1)])),
}


@pytest.mark.parametrize("folding", FOLDED)
def test_foldings(folding: str, tmp_path: Path) -> None:
    num_rows, compute = FOLDED[folding]
    weight = drawn(num_rows, 8)
    names, outputs = compute(weight)
    path = tmp_path / "mine.toml"
    ours = "*" if " " in names else names
    path.write_text(f"[names]\n'l{{layer}}' = {json.dumps([f'encoder.layers.{{layer}}.{ours}.weight', folding])}")
    found = folded(path, {"l0": weight}, Heads(4, 2))
    for name, expected in zip(names.split(), outputs, strict=True):
        torch.testing.assert_close(X @ found[f"{name}.weight"].T, expected)


def test_heads_are_joined_and_outputs_scaled(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(
        """[names]
        "h{head}" = "encoder.layers.0.query.weight"
        "out.{weight}" = "encoder.layers.0.outer.{weight}"
        "gamma" = ["encoder.layers.0.outer", "scale"]"""
    )
    heads = {f"h{head}": drawn(2, 8) + head for head in range(11)}  # ten comes after nine
    weight, bias, gamma = drawn(6, 8), drawn(6), drawn(1, 6)
    found = folded(path, heads | {"out.weight": weight, "out.bias": bias, "gamma": gamma}, Heads(11, 2))
    torch.testing.assert_close(found["query.weight"], torch.cat([*heads.values()]))
    torch.testing.assert_close(X @ found["outer.weight"].T + found["outer.bias"], gamma * (X @ weight.T + bias))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[names", "it is not TOML"),
        ("a = 1", "a is unknown"),
        ("about = 'mine'", r"it has no table \[names\]"),
        ("[names]\nx = 1", "x is 1, expected our name"),
        ("[names]\n'x{part}' = 'y'", r"{part} in x{part} is neither {layer}, {head} nor in \[words\]"),
        ("[names]\nx = 'encoder.layers.{layer}.y'", "x lacks what encoder.layers.{layer}.y has in braces"),
        ("[names]\nx = ['y', 'shuffled']", "'shuffled' is not a folding; allowed: fused, packed"),
        ("[config]\nrotary = 1\n[names]\nx = 'y'", r"\[config\] has 'rotary'"),
        ("[words]\npart = 3\n[names]\nx = 'y'", r"\[words\] has no tables"),
    ],
)
def test_mistakes_in_layouts(text: str, expected: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(text)
    with pytest.raises(ValueError, match=expected):
        read_layout(path)


@torch.no_grad()
def test_printed_values_of_document_003() -> None:
    """Our attention with the document's weights gives its digits, which tell the order of heads."""
    torch.manual_seed(3)
    x = torch.randn(8, 6).T[None]  # columns are tokens
    torch.manual_seed(0)
    names = [f"{kind}_{role}{head}" for head in (1, 2) for kind in "Wb" for role in "qkv"]  # in the document's order
    tensors = {name: torch.randn(4, 8 if name[0] == "W" else 1) for name in names} | {"W_c": torch.randn(size=(8, 8))}
    ours = MultiHeadAttention(ModelConfig(9, 9, d_model=8, num_heads=2, attention_output="unbiased")).eval()
    for swapped in ({}, {"W_k1": tensors["W_k2"], "W_k2": tensors["W_k1"]}):
        given = {f"encoder.encoder_list.0.self_attention.{name}": each for name, each in (tensors | swapped).items()}
        found = folded(FOLDER / "notebooks.toml", given, Heads(2, 4))
        ours.load_state_dict({name.removeprefix("self_attention."): each for name, each in found.items()})
        error = float((ours(x, x)[0].T - PRINTED).abs().max())
        assert error > 0.1 if swapped else error <= THREE_DIGITS
