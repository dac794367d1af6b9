"""Verification must fail when the graphs compute something else, and show where."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from export.graphs.execution import GraphPair
from export.importers.imported import ImportedCheckpoint
from export.importers.native.importer import import_native
from export.trace import model_shape
from export.verify import VerificationError, first_difference, top_two_gap, verify, verify_engine
from service.bundle.manifest import Manifest
from service.text.tokenizers import Tokenizer, load_tokenizer

Parts = tuple[ImportedCheckpoint, GraphPair, Tokenizer]


@pytest.fixture
def parts(checkpoint: Path, exported: tuple[Path, Manifest]) -> Parts:
    directory, manifest = exported
    imported = import_native(checkpoint).in_float32()
    graphs = GraphPair(
        directory / manifest.graphs.encoder, directory / manifest.graphs.decoder_step, model_shape(imported)
    )
    return imported, graphs, load_tokenizer(manifest.tokenizer, directory)


def test_right_graphs_pass(parts: Parts, exported: tuple[Path, Manifest]) -> None:
    report = verify(*parts)
    assert report.num_positions > 200
    assert 0 < report.max_relative_error < 1e-3
    assert tuple(report.golden) == exported[1].golden


@pytest.mark.parametrize(
    "name",
    [
        "encoder.layers.0.self_attention.query.weight",
        "encoder.final_norm.bias",
        "decoder.layers.0.cross_attention.value.bias",
        "decoder.layers.1.self_attention.key.weight",
        "decoder.layers.1.feed_forward.outer.weight",
    ],
)
def test_a_changed_weight_is_noticed(parts: Parts, name: str) -> None:
    imported, graphs, tokenizer = parts
    imported.model.weights[name] *= 1.5
    with pytest.raises(VerificationError, match=r"position|range"):
        verify(imported, graphs, tokenizer)


def test_another_suppressed_set_is_noticed(parts: Parts) -> None:
    imported, graphs, tokenizer = parts
    with pytest.raises(VerificationError, match="not just the suppressed ones"):
        verify(dataclasses.replace(imported, suppressed_ids=(0, 1)), graphs, tokenizer)


def test_a_changed_golden_pair_is_noticed_by_the_engine(exported: tuple[Path, Manifest]) -> None:
    directory, manifest = exported
    verify_engine(directory, manifest)
    first, *others = manifest.golden
    changed = dataclasses.replace(first, output_ids=(*first.output_ids[:-1], 77, 2))
    with pytest.raises(VerificationError, match=rf"position {len(first.output_ids) - 1}"):
        verify_engine(directory, dataclasses.replace(manifest, golden=(changed, *others)))


def test_first_difference_and_gap() -> None:
    assert first_difference([1, 2, 3], [1, 2, 4]) == 2
    assert first_difference([1, 2], [1, 2, 3]) == 2
    logits = np.array([0.0, 5.0, 9.0, 4.5], dtype=np.float32)
    assert top_two_gap(logits, []) == 4.0
    assert top_two_gap(logits, [2]) == 0.5
