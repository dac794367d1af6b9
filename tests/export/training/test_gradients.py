"""Gradients of parts, and the optimizer of matrices."""

import copy

import numpy as np
import pytest
import torch

from export.architecture import ModelConfig
from export.architecture.transformer import Transformer
from export.training import gradients
from export.training.batches import Batch
from export.training.gradients import ParallelGradients, smoothed_loss
from export.training.muon import Muon, orthogonalize

PAD = 1


@pytest.fixture
def model() -> Transformer:
    torch.manual_seed(0)
    sizes = {"d_model": 16, "d_ff": 32, "num_heads": 2, "num_encoder_layers": 1, "num_decoder_layers": 1}
    document = {"source_vocabulary_size": 20, "target_vocabulary_size": 20, "dropout": 0.0, **sizes}
    return Transformer(ModelConfig.from_document({**document, "share_embeddings": True, "tie_projection": True}))


def batch(rows: int) -> Batch:
    """Return sources of one length with targets of several, padded."""
    rng = np.random.default_rng(rows)
    target = rng.integers(4, 20, (rows, 8))
    for row, length in zip(target, rng.integers(3, 9, rows), strict=True):
        row[length:] = PAD
    return Batch(rng.integers(4, 20, (rows, 5)), target)


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("rows", [1, 13])
def test_parts_add_up_to_the_whole_batch(
    model: Transformer, workers: int, rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gradients, "PART_TOKENS", 40)
    expected, whole = copy.deepcopy(model), batch(rows)
    count = int((whole.target_ids[:, 1:] != PAD).sum())
    loss = smoothed_loss(expected, torch.from_numpy(whole.source_ids), torch.from_numpy(whole.target_ids), 0.1) / count
    loss.backward()
    parallel = ParallelGradients(model, label_smoothing=0.1, workers=workers, bfloat16=False)
    for _ in range(2):  # the second batch's gradients contain nothing of the first
        model.zero_grad()
        assert parallel.add(whole) == pytest.approx(float(loss.detach()), rel=1e-5)
        for own, other in zip(model.parameters(), expected.parameters(), strict=True):
            torch.testing.assert_close(own.grad, other.grad)


def test_workers_see_new_weights(model: Transformer) -> None:
    parallel = ParallelGradients(model, label_smoothing=0.0, workers=2, bfloat16=False)
    before = parallel.add(batch(4))
    with torch.no_grad():
        model.encoder.embedding.tokens.weight.mul_(2.0)
    assert parallel.add(batch(4)) != pytest.approx(before, rel=1e-3)


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
