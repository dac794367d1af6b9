"""Document 003 prints what its attention gives: ours gives the same, digit by digit."""

import torch
from torch import Tensor

from export.architecture import ModelConfig
from export.architecture.attention import MultiHeadAttention
from export.importers.state_dict.foldings import Heads
from export.importers.state_dict.layout import FOLDER, read_layout
from export.importers.state_dict.weights import fold

THREE_DIGITS = 0.501e-3  # half of the last digit plus float32 rounding
LAYOUT = read_layout(FOLDER / "notebooks.toml")

TWO_HEADS = """
 7.501  15.386  12.121  23.458   5.546  -7.499
 4.221   4.875  -2.205   4.050  -4.525   5.155
 1.891   3.035   3.399   2.733   2.958  -0.824
 2.621   2.177  -4.974  -0.925  -1.928   3.726
-0.130  -0.250   3.700   0.948   9.384   0.697
 2.524   1.555  -0.789   2.667  -0.459   4.428
 0.056  -1.688  -1.537  -1.700   0.391   4.648
-1.352  -4.136  -8.878  -1.003 -12.857  -4.945
"""


def printed(table: str) -> Tensor:
    return torch.tensor([[float(number) for number in line.split()] for line in table.strip().splitlines()])


def attention(width: int, tensors: dict[str, Tensor], output: str) -> MultiHeadAttention:
    """Return our attention with the document's weights, folded by the importer."""
    start = "encoder.encoder_list.0.self_attention."
    named, problems = {start + name: tensor for name, tensor in tensors.items()}, list[str]()
    weights, _ = fold(named, LAYOUT.find(named), Heads(2, width // 2), None, problems)
    assert not problems
    config = ModelConfig(9, 9, d_model=width, num_heads=2, attention_output=output)  # type: ignore[arg-type]
    ours = MultiHeadAttention(config).eval()
    ours.load_state_dict(
        {name.removeprefix("encoder.layers.0.self_attention."): each for name, each in weights.items()}
    )
    return ours


def drawn_per_head(num_heads: int, size: int, width: int) -> dict[str, Tensor]:
    """Draw the weights in the document's order."""
    return {
        f"{kind}_{role}{head}": torch.randn(size=(size, width if kind == "W" else 1))
        for head in range(1, num_heads + 1)
        for kind in "Wb"
        for role in "qkv"
    }


@torch.no_grad()
def test_two_heads() -> None:
    torch.manual_seed(3)
    x = torch.randn(8, 6).T[None]  # columns are tokens
    torch.manual_seed(0)
    tensors = drawn_per_head(2, 4, 8)
    tensors["W_c"] = torch.randn(size=(8, 8))
    ours = attention(8, tensors, "unbiased")
    torch.testing.assert_close(ours(x, x)[0].T, printed(TWO_HEADS), rtol=0, atol=THREE_DIGITS)
    swapped = attention(8, tensors | {"W_k1": tensors["W_k2"], "W_k2": tensors["W_k1"]}, "unbiased")
    assert (swapped(x, x)[0].T - printed(TWO_HEADS)).abs().max() > 0.1, "the digits tell the order of heads"
