"""Positions against the formula of the paper's section 3.5, and against fairseq's table in transformers."""

import math

import numpy as np
import pytest
import torch
from transformers.models.m2m_100.modeling_m2m_100 import M2M100SinusoidalPositionalEmbedding

from export.architecture import PositionConfig
from export.architecture.embedding import Embedding
from export.architecture.positions import sinusoidal_table
from tests.export.tiny_models import M2M100_POSITIONS, tiny_config


@pytest.mark.parametrize("base", [10000.0, 1000.0])
def test_interleaved_table_is_the_papers(base: float) -> None:
    table = sinusoidal_table(50, 16, PositionConfig(base=base))
    for position in (0, 1, 7, 49):
        for i in range(8):
            angle = position / base ** (2 * i / 16)
            assert table[position, 2 * i].item() == pytest.approx(math.sin(angle), abs=1e-6)
            assert table[position, 2 * i + 1].item() == pytest.approx(math.cos(angle), abs=1e-6)


def test_exponents_without_brackets_are_their_components_own() -> None:
    table = sinusoidal_table(50, 16, PositionConfig(base=1000.0, cosine_exponent="unbracketed"))
    meant = sinusoidal_table(50, 16, PositionConfig(base=1000.0))
    np.testing.assert_array_equal(table[:, 0::2], meant[:, 0::2])
    for position in (0, 1, 7, 49):
        for component in range(1, 16, 2):
            expected = math.cos(position / 1000.0 ** (component - 1 / 16))
            assert table[position, component].item() == pytest.approx(expected, abs=1e-6)
    assert np.abs(table[:, 1] - meant[:, 1]).max() > 0.5
    assert np.isfinite(sinusoidal_table(4, 1024, PositionConfig(cosine_exponent="unbracketed"))).all()


def test_halves_hold_the_same_numbers_in_another_order() -> None:
    interleaved = sinusoidal_table(20, 16, PositionConfig())
    halves = sinusoidal_table(20, 16, PositionConfig(layout="halves"))
    np.testing.assert_array_equal(halves, np.concatenate([interleaved[:, 0::2], interleaved[:, 1::2]], axis=1))


def test_fairseq_table_is_that_of_transformers() -> None:
    theirs = M2M100SinusoidalPositionalEmbedding.get_embedding(42, 32, padding_idx=1)[2:]
    np.testing.assert_allclose(sinusoidal_table(40, 32, M2M100_POSITIONS), theirs.numpy(), rtol=0, atol=1e-5)


@torch.no_grad()
def test_one_token_at_its_position_is_that_of_the_whole_row() -> None:
    embedding = Embedding(120, 80, tiny_config()).eval()
    ids = torch.randint(0, 120, (3, 11), generator=torch.Generator().manual_seed(0))
    whole = embedding(ids)
    positions = torch.tensor([0, 4, 10], dtype=torch.int32)
    rows = torch.arange(3)
    assert torch.equal(embedding.at(ids[rows, positions.long()], positions), whole[rows, positions.long()])
    assert embedding.positions is not None
    expected = embedding.tokens.weight[ids] * math.sqrt(32) + embedding.positions[:11]
    torch.testing.assert_close(whole, expected)
    assert torch.equal(embedding.tokens.weight[1], torch.zeros(32))
