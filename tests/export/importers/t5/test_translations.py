"""T5 translates long sources to long outputs as transformers' `generate` does, across all buckets of distances."""

import dataclasses
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from export.fidelity import ask_reference, check_fidelity, check_reading
from export.verification_sentences import Sentence
from tests.export.conftest import Converted
from tests.export.folders import edit
from tests.export.huggingface import checkpoints

LENGTHS = (15, 16, 17, 91, 92, 127, 128, 129, 300)
NUM_TOKENS = 150


@pytest.mark.parametrize("family", ["t5", pytest.param("umt5", marks=pytest.mark.full)])
@pytest.mark.parametrize("is_engine", [False, pytest.param(True, marks=pytest.mark.full)])
def test_long_texts(family: str, is_engine: bool, conversions: Callable[[str], Converted], tmp_path: Path) -> None:
    """By the model as it was read, or the engine; `graphs/test_variants.py` has what the graphs make of distances."""
    folder = checkpoints.FAMILIES[family](tmp_path / family / "checkpoint")
    settings = {"max_length": NUM_TOKENS + 1, "min_new_tokens": NUM_TOKENS - 10, "no_repeat_ngram_size": 2}
    edit(folder / "generation_config.json", **settings)
    checkpoint = checkpoints.read(folder)
    rng, pair = np.random.default_rng(8), next(checkpoint.pairs())
    sources = [(*map(int, rng.integers(3, 340, length - 1)), checkpoint.tokenizer.eos_id) for length in LENGTHS]
    expected = ask_reference(checkpoint, [Sentence(pair, ids, NUM_TOKENS) for ids in sources])
    assert expected is not None
    assert len(set(expected.greedy)) == len(LENGTHS)
    assert min(map(len, expected.greedy)) >= NUM_TOKENS - 10
    assert min(len(set(output)) for output in expected.greedy) > 10, "what repeats itself would prove nothing"
    if is_engine:
        _, bundle, manifest = conversions(family)
        manifest = dataclasses.replace(manifest, limits=checkpoint.limits, generation=checkpoint.generation)
        report = check_fidelity(bundle, manifest, expected, lambda: checkpoint)
    else:
        report = check_reading(checkpoint, expected)
    assert report.num_greedy_ties + report.num_beam_ties <= 1
