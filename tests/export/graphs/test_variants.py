"""Graphs of models that differ from the shipped one in every choice."""

from collections.abc import Callable

import numpy as np
import pytest
import torch

from export.architecture.transformer import padding_mask
from export.graphs.checks import check_decoder_step, check_encoder
from export.graphs.execution import GraphPair
from service.bundle.graph_io import NO_TOKEN
from tests.export.tiny_models import random_sources
from tests.export.variants import ALIGNMENTS, LENGTHS, NUM_STEPS, SUPPRESSED, Variant


@pytest.fixture(scope="module", params=ALIGNMENTS)
def variant(request: pytest.FixtureRequest, variants: Callable[[str], Variant]) -> Variant:
    return variants(request.param)


@pytest.fixture(scope="module")
def graphs(variant: Variant) -> GraphPair:
    check_encoder(variant.folder / "encoder.onnx", variant.shape)
    check_decoder_step(variant.folder / "decoder_step.onnx", variant.shape)
    return variant.pair


@torch.no_grad()
def test_log_probs_equal_torch_in_a_ragged_batch(variant: Variant, graphs: GraphPair) -> None:
    model = variant.model
    sources = random_sources(70, LENGTHS)
    targets = np.random.default_rng(0).integers(4, 90, (len(sources), NUM_STEPS))
    targets[:, 0] = model.config.decoder_start_id
    width = max(LENGTHS)
    padded = torch.tensor([[*source, *[1] * (width - len(source))] for source in sources])
    mask = padding_mask(torch.tensor(LENGTHS), width)
    logits = model(padded, torch.from_numpy(targets), mask)  # (B, T, V)
    logits.transpose(1, 2)[~torch.from_numpy(np.stack([*map(variant.allowed, sources)]))] = -torch.inf
    expected = logits.log_softmax(-1).numpy()
    expected[:, :, list(SUPPRESSED)] = -np.inf
    state = graphs.start(sources, pad_id=1, capacity=NUM_STEPS)
    for step in range(NUM_STEPS):
        ids, log_probs = state.candidates(targets[:, step], 90)
        given = np.empty_like(log_probs)
        np.put_along_axis(given, ids, log_probs, axis=1)
        np.testing.assert_allclose(given, expected[:, step], rtol=1e-5, atol=2e-5)
        assert (log_probs[:, :-1] >= log_probs[:, 1:]).all()


def test_rows_can_be_reordered_repeated_and_dropped(graphs: GraphPair) -> None:
    """A row's output does not depend on its position or on its neighbours."""
    sources = random_sources(70, LENGTHS)
    tokens = np.random.default_rng(1).integers(4, 90, (4, len(sources)))
    straight = graphs.start(sources, pad_id=1, capacity=8)
    mixed = graphs.start(sources, pad_id=1, capacity=8)
    for step in range(3):
        straight.next_ids(tokens[step])
        mixed.next_ids(tokens[step])
    rows = [4, 1, 1, 3]
    mixed.reorder(rows)
    _, expected = straight.candidates(tokens[3], 5)
    _, given = mixed.candidates(tokens[3][rows], 5)
    np.testing.assert_allclose(given, expected[rows], atol=1e-5)


def test_a_row_without_numbers_has_no_token(graphs: GraphPair) -> None:
    """For a row of NaN, greedy search would take the arg-max for a token; its neighbours are unaffected."""
    sources = random_sources(70, LENGTHS)
    tokens = np.random.default_rng(3).integers(4, 90, len(sources))
    expected, broken = (graphs.start(sources, pad_id=1, capacity=4) for _ in range(2))
    for array in broken.cross.values():
        array[2] = np.nan
    ids = expected.next_ids(tokens)
    ids[2] = NO_TOKEN
    np.testing.assert_array_equal(broken.next_ids(tokens), ids)


def test_greedy_needs_no_candidates(graphs: GraphPair) -> None:
    """`next_ids` with K = 0 equal the first candidates with K >= 1."""
    sources = random_sources(70, LENGTHS)
    tokens = np.random.default_rng(2).integers(4, 90, len(sources))
    states = [graphs.start(sources, pad_id=1, capacity=4) for _ in range(3)]
    greedy = states[0].next_ids(tokens)
    for state, count in zip(states[1:], (1, 4), strict=True):
        ids, log_probs = state.candidates(tokens, count)
        assert log_probs.shape == (len(sources), count)
        np.testing.assert_array_equal(ids[:, 0], greedy)
    assert len(set(greedy.tolist())) > 1
