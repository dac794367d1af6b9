"""Alignment graphs of models that differ from the shipped one in every choice, compared with torch's own attention."""

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import pytest

from export.alignment import AlignmentHeads, Translated
from export.alignment_choice import ByLayer, cross_attention, mean_of
from export.architecture.transformer import Transformer
from export.graphs.checks import GraphError, check_alignment
from export.graphs.execution import AlignmentRun
from service.bundle.manifest_parts import LanguagePair
from tests.export.tiny_models import random_sources
from tests.export.variants import ALIGNMENTS, LENGTHS, Variant

LARGEST_ERROR = 1e-5


# Backwards: `test_variants.py`, which another of pytest's processes runs, would trace the same one at the same time.
@pytest.fixture(scope="module", params=reversed(ALIGNMENTS))
def variant(request: pytest.FixtureRequest, variants: Callable[[str], Variant]) -> Variant:
    return variants(request.param)


@pytest.fixture(scope="module")
def run(variant: Variant) -> AlignmentRun:
    return AlignmentRun(variant.folder / "alignment.onnx", variant.pair, num_threads=1)


def attention_of(model: Transformer, sources: Any, targets: Any) -> list[ByLayer]:
    languages = LanguagePair("en", "de")
    translated = [
        Translated("", languages, tuple(source), tuple(target)) for source, target in zip(sources, targets, strict=True)
    ]
    return cross_attention(model.config, model.stored().weights, translated)


def largest_difference(given: list[np.ndarray], expected: list[np.ndarray]) -> float:
    assert [each.shape for each in given] == [each.shape for each in expected]
    return max(float(np.abs(one - other).max()) for one, other in zip(given, expected, strict=True))


def test_attention_is_torchs_in_a_ragged_batch(variant: Variant, run: AlignmentRun) -> None:
    model, chosen, config = variant.model, variant.alignment, variant.model.config
    sources = random_sources(config.source_vocabulary_size, LENGTHS)
    rng = np.random.default_rng(0)
    targets = [rng.integers(4, config.target_vocabulary_size, length).tolist() for length in (12, 1, 7, 30, 3)]
    given = run.attention(sources, targets, config.pad_id)
    by_layer = attention_of(model, sources, targets)
    assert largest_difference(given, [mean_of(each, chosen) for each in by_layer]) < LARGEST_ERROR
    for attention in given:
        np.testing.assert_allclose(attention.sum(axis=1), 1.0, atol=1e-5)
    # Controls: another layer, other heads and a target shifted by one all differ from the right one.
    others = [
        AlignmentHeads((chosen.layer + 1) % config.num_decoder_layers, chosen.heads, chosen.reads),
        AlignmentHeads(chosen.layer, tuple({*range(config.num_heads)} - {chosen.heads[0]}), chosen.reads),
        AlignmentHeads(chosen.layer, chosen.heads, not chosen.reads),
    ]
    for other in others:
        assert largest_difference(given, [mean_of(each, other) for each in by_layer]) > 1000 * LARGEST_ERROR


def test_the_longest_target_fits(variant: Variant, run: AlignmentRun) -> None:
    model = variant.model
    longest = model.config.max_target_positions - variant.alignment.reads
    source = random_sources(model.config.source_vocabulary_size, [5])[0]
    target = np.random.default_rng(1).integers(4, 90, longest).tolist()
    given = run.attention([source], [target], model.config.pad_id)
    expected = [mean_of(attention_of(model, [source], [target])[0], variant.alignment)]
    assert largest_difference(given, expected) < LARGEST_ERROR


def test_checks_pass_and_must_fit_the_model(variant: Variant) -> None:
    path, layer = variant.folder / "alignment.onnx", variant.alignment.layer
    check_alignment(path, variant.shape, layer)
    with pytest.raises(GraphError, match="inputs are"):
        check_alignment(path, variant.shape, layer + 1)
    with pytest.raises(GraphError, match=r"cross_key.0 has shape"):
        check_alignment(path, dataclasses.replace(variant.shape, head_size=variant.shape.head_size + 8), layer)


def test_nothing_above_the_attention_is_in_the_graph(variant: Variant) -> None:
    """No layer above, no values of the last one, and no projection: otherwise half of a model would be dead weight."""
    graph = onnx.load(variant.folder / "alignment.onnx", load_external_data=False).graph
    layer = variant.alignment.layer
    own = 0 if variant.shape.is_recurrent else layer + 1  # beside those to the source
    assert len([node for node in graph.node if node.op_type == "MultiHeadAttention"]) == layer + own
    # Each lower layer has three projections, its output layer, the same for cross-attention without keys and values,
    # and two of the feed-forward, or three; the last one has those of its self-attention and one query. A recurrence
    # has two.
    per_attention = 1 if variant.model.config.attention_output == "none" else 2
    per_layer = 2 if variant.shape.is_recurrent else 3 + (per_attention - 1)
    expected = layer * (per_layer + per_attention + 2 + variant.model.config.gated) + per_layer + 1
    assert len([node for node in graph.node if node.op_type == "Gemm"]) == expected
