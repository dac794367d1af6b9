"""Alignment graphs of models that differ from the shipped one in every choice, compared with torch's own attention."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch

from export.alignment import Translated
from export.alignment_choice import ByLayer, cross_attention, mean_of
from export.architecture import Transformer
from export.graphs.alignment_graph import AlignmentHeads
from export.graphs.checks import GraphError, check_alignment
from export.graphs.dense import padded_head_size
from export.graphs.execution import AlignmentRun, GraphPair
from export.graphs.tracing import trace_alignment, trace_encoder
from export.graphs.weights_file import WeightsFile
from service.bundle.manifest_parts import LanguagePair, ModelShape
from tests.export.graphs.test_variants import VARIANTS
from tests.export.tiny_models import random_sources, tiny_config, tiny_model

LENGTHS = [2, 9, 30, 5, 17]
LARGEST_ERROR = 1e-5
CHOICES = {
    "plain": AlignmentHeads(2, (2, 0)),
    "by hand": AlignmentHeads(1, (1,), reads=True),
}


@pytest.fixture(scope="module", params=VARIANTS)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def model(name: str) -> Transformer:
    model = tiny_model(tiny_config(**VARIANTS[name]))
    with torch.no_grad():
        model.decoder.embedding.tokens.weight.normal_(std=3.0)  # otherwise only the position decides
    return model


@pytest.fixture(scope="module")
def shape(model: Transformer) -> ModelShape:
    config = model.config
    return ModelShape(3, config.num_heads, padded_head_size(config.head_size), config.target_vocabulary_size)


@pytest.fixture(scope="module")
def files(name: str, model: Transformer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("alignment")
    with WeightsFile(directory) as file:
        trace_encoder(model, directory / "encoder.onnx", file)
        trace_alignment(model, CHOICES[name], directory / "alignment.onnx", file)
    return directory


@pytest.fixture(scope="module")
def run(files: Path, shape: ModelShape) -> AlignmentRun:
    encoder = files / "encoder.onnx"
    pair = GraphPair(encoder, encoder, shape, num_threads=1)  # nothing is decoded
    return AlignmentRun(files / "alignment.onnx", pair, num_threads=1)


def attention_of(model: Transformer, sources: Any, targets: Any) -> list[ByLayer]:
    languages = LanguagePair("en", "de")
    translated = [
        Translated("", languages, tuple(source), tuple(target)) for source, target in zip(sources, targets, strict=True)
    ]
    return cross_attention(model.config, model.weights(), translated)


def largest_difference(given: list[np.ndarray], expected: list[np.ndarray]) -> float:
    assert [each.shape for each in given] == [each.shape for each in expected]
    return max(float(np.abs(one - other).max()) for one, other in zip(given, expected, strict=True))


def test_attention_is_torchs_in_a_ragged_batch(name: str, model: Transformer, run: AlignmentRun) -> None:
    chosen, config = CHOICES[name], model.config
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
        AlignmentHeads((chosen.layer + 1) % 3, chosen.heads, chosen.reads),
        AlignmentHeads(chosen.layer, tuple({*range(config.num_heads)} - {chosen.heads[0]}), chosen.reads),
        AlignmentHeads(chosen.layer, chosen.heads, not chosen.reads),
    ]
    for other in others:
        assert largest_difference(given, [mean_of(each, other) for each in by_layer]) > 1000 * LARGEST_ERROR


def test_the_longest_target_fits(model: Transformer, name: str, run: AlignmentRun) -> None:
    longest = model.config.max_target_positions - CHOICES[name].reads
    source = random_sources(model.config.source_vocabulary_size, [5])[0]
    target = np.random.default_rng(1).integers(4, 90, longest).tolist()
    given = run.attention([source], [target], model.config.pad_id)
    expected = [mean_of(attention_of(model, [source], [target])[0], CHOICES[name])]
    assert largest_difference(given, expected) < LARGEST_ERROR


def test_checks_pass_and_must_fit_the_model(files: Path, shape: ModelShape, name: str) -> None:
    layer = CHOICES[name].layer
    check_alignment(files / "alignment.onnx", shape, layer)
    with pytest.raises(GraphError, match="inputs are"):
        check_alignment(files / "alignment.onnx", shape, layer + 1)
    other = ModelShape(3, shape.num_heads, shape.head_size + 8, shape.vocabulary_size)
    with pytest.raises(GraphError, match=r"cross_key.0 has shape"):
        check_alignment(files / "alignment.onnx", other, layer)


def test_nothing_above_the_attention_is_in_the_graph(files: Path, name: str) -> None:
    """No layer above, no values of the last one, and no projection: otherwise half of a model would be dead weight."""
    graph = onnx.load(files / "alignment.onnx", load_external_data=False).graph
    layer = CHOICES[name].layer
    assert len([node for node in graph.node if node.op_type == "MultiHeadAttention"]) == 2 * layer + 1
    # Each lower layer has three projections, its output layer, the same for cross-attention without keys and values,
    # and two of the feed-forward; the last one has those of its self-attention and one query.
    per_attention = 1 if VARIANTS[name].get("attention_output") == "none" else 2
    expected = layer * (3 + (per_attention - 1) + per_attention + 2) + 3 + (per_attention - 1) + 1
    assert len([node for node in graph.node if node.op_type == "Gemm"]) == expected
