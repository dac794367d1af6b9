import pytest
import torch

from export.training.muon import Muon, orthogonalize


@pytest.mark.parametrize("shape", [(3, 16, 16), (2, 8, 32), (2, 32, 8)])
def test_singular_values_come_near_one(shape: tuple[int, int, int]) -> None:
    matrices = torch.randn(shape, generator=torch.Generator().manual_seed(0))
    values = torch.linalg.svdvals(orthogonalize(matrices))
    assert values.min() > 0.5
    assert values.max() < 1.3
    assert torch.linalg.svdvals(matrices).max() > 4  # they were far from it


def test_it_learns_a_linear_map() -> None:
    generator = torch.Generator().manual_seed(0)
    wanted, x = torch.randn(8, 8, generator=generator), torch.randn(64, 8, generator=generator)
    weight = torch.nn.Parameter(torch.zeros(8, 8))
    optimizer = Muon([weight], lr=0.1, momentum=0.9, weight_decay=0.0)
    losses = []
    for _ in range(150):
        loss = ((x @ (weight - wanted).T) ** 2).mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    assert losses[-1] < 0.05 * losses[0]


def test_a_matrix_without_a_gradient_is_an_error() -> None:
    with pytest.raises(RuntimeError, match="no gradient"):
        Muon([torch.nn.Parameter(torch.zeros(2, 2))], lr=0.1, momentum=0.9, weight_decay=0.0).step()
