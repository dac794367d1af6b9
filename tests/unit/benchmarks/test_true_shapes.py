"""The checkpoints of published shapes, in small: all three readers accept them, and translations are alive."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from benchmarks.true_shape import TrueShape
from benchmarks.true_shapes import TRUE_SHAPES, write_checkpoint

MARIAN = dataclasses.replace(
    TRUE_SHAPES["tc-big"], name="small", d_model=64, num_layers=2, d_ff=128, num_heads=4, vocabulary_size=9000
)
NLLB = dataclasses.replace(
    TRUE_SHAPES["nllb-3.3b"],
    name="small",
    d_model=64,
    num_layers=2,
    d_ff=128,
    num_heads=4,
    vocabulary_size=9000,
    shard_bytes=500_000,
)
MADLAD = dataclasses.replace(
    TRUE_SHAPES["madlad-3b"],
    name="small",
    d_model=64,
    num_layers=2,
    d_ff=128,
    num_heads=4,
    d_head=24,
    vocabulary_size=9000,
    shard_bytes=500_000,
)


@pytest.mark.parametrize("shape", [MARIAN, NLLB, MADLAD], ids=["marian", "nllb", "madlad"])
def test_transformers_translates_and_our_importer_reads(shape: TrueShape, tmp_path: Path) -> None:
    """Outputs end and differ between sources; a table cut off at a shard's size has an index."""

    from export.importers.huggingface.reference import open_transformers
    from export.importers.imported import Row
    from export.importers.selection import import_checkpoint

    write_checkpoint(shape, tmp_path / "small")
    assert ((tmp_path / "small" / "model.safetensors.index.json").exists()) == (shape.shard_bytes is not None)
    imported = import_checkpoint(tmp_path / "small")
    assert imported.model.num_weights > shape.vocabulary_size * shape.d_model
    assert all(bool(np.isfinite(value).all()) for value in imported.model.weights.values())
    pair = next(imported.pairs())
    sources = [imported.tokenizer.source_ids(range(start, start + 6), pair) for start in range(600, 680, 10)]
    with open_transformers(tmp_path / "small") as reference:
        outputs = reference.generate([Row(ids, pair.target_prefix_ids) for ids in sources], 1, 64)
    assert sum(len(ids) < 64 for ids in outputs) >= 3  # they end
    assert len(set(outputs)) >= 6
    assert sum(len(set(ids)) for ids in outputs) > sum(map(len, outputs)) / 3  # and don't repeat one token


def test_ctranslate2_converts(tmp_path: Path) -> None:
    """What its converter makes of a checkpoint translates."""
    from ctranslate2 import Translator
    from ctranslate2.converters import TransformersConverter

    write_checkpoint(MARIAN, tmp_path / "small")
    TransformersConverter(str(tmp_path / "small")).convert(str(tmp_path / "ct2"), quantization="int8")
    (found,) = Translator(str(tmp_path / "ct2")).translate_batch([["▁the", "▁and", "</s>"]], max_decoding_length=8)
    assert found.hypotheses[0]
