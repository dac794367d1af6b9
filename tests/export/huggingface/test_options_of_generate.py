"""Options that change scores, as a checkpoint's defaults and as `generate` has them: token for token the same."""

import dataclasses
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from export.fidelity import ask_reference, check_fidelity, closest_call
from export.importers.imported import ImportedCheckpoint, Row
from export.importers.selection import import_checkpoint
from export.verification_sentences import Sentence
from export.verify import TIE_GAP, VerificationError
from service.domain.options import OPTIONS
from tests.export.conftest import Converted
from tests.export.folders import edit
from tests.export.huggingface.engine_output import by_the_engine

SETTINGS: dict[str, dict[str, Any]] = {
    "a penalty": {"repetition_penalty": 1.4},
    "a reward": {"repetition_penalty": 0.7},
    "no bigram twice": {"no_repeat_ngram_size": 2},
    "no token twice": {"no_repeat_ngram_size": 1},
    "least new tokens": {"min_new_tokens": 16},
    "least length": {"min_length": 14},
    "all": {"repetition_penalty": 1.2, "no_repeat_ngram_size": 3, "min_new_tokens": 8},
    "all and a reward": {"repetition_penalty": 0.85, "no_repeat_ngram_size": 4, "min_length": 10},
}


def with_settings(source: Path, folder: Path, settings: dict[str, Any]) -> ImportedCheckpoint:
    shutil.copytree(source, folder)
    edit(folder / "generation_config.json", **settings)
    return import_checkpoint(folder)


def rows_of(checkpoint: ImportedCheckpoint, count: int) -> list[Row]:
    rng = np.random.default_rng(11)
    pair = next(iter(checkpoint.pairs()))
    drawn = [rng.integers(3, 150, rng.integers(1, 30)) for _ in range(count)]
    return [Row(checkpoint.tokenizer.source_ids(map(int, ids), pair), pair.target_prefix_ids) for ids in drawn]


@pytest.mark.parametrize(
    ("family", "name", "count"),
    [
        ("nllb", "all", 24),  # other tests convert it anyway
        *(pytest.param("m2m100", name, 300, marks=pytest.mark.full) for name in SETTINGS),
    ],
)
def test_tokens_are_those_of_generate(
    conversions: Callable[[str], Converted], tmp_path: Path, family: str, name: str, count: int
) -> None:
    """With a language token, which is forced; without one, see `test_generation_settings.py`."""
    source, bundle, manifest = conversions(family)
    settings, num_changed = SETTINGS[name], 0
    plain = import_checkpoint(source)
    checkpoint = with_settings(source, tmp_path / "checkpoint", settings)
    assert checkpoint.generation.options.keys() <= OPTIONS.keys()
    assert len(checkpoint.generation.options) == len(settings)
    rows, limit = rows_of(checkpoint, count), checkpoint.limits.max_output_tokens
    assert checkpoint.open_reference is not None
    with checkpoint.open_reference() as reference:
        for beam_size in (1, 4):
            given = by_the_engine(bundle, manifest, checkpoint, rows, beam_size=beam_size)
            assert given == reference.generate(rows, beam_size, limit)
            unchanged = by_the_engine(bundle, manifest, plain, rows, beam_size=beam_size)
            num_changed += sum(own != other for own, other in zip(given, unchanged, strict=True))
    assert num_changed > count // 10


def test_a_difference_from_generate_is_judged_by_the_changed_scores(
    conversions: Callable[[str], Converted], tmp_path: Path
) -> None:
    source, bundle, manifest = conversions("marian")
    checkpoint = with_settings(source, tmp_path / "checkpoint", {"repetition_penalty": 1.3, "min_length": 6})
    assert checkpoint.generation.options == {"repetition_penalty": 1.3, "min_output_tokens": 5}
    assert checkpoint.renormalizes
    manifest = dataclasses.replace(manifest, generation=checkpoint.generation)
    pair = next(iter(checkpoint.pairs()))
    rows = [Sentence(pair, row.source_ids, checkpoint.limits.max_output_tokens) for row in rows_of(checkpoint, 12)]
    expected = ask_reference(checkpoint, rows)
    assert expected is not None
    assert check_fidelity(bundle, manifest, expected, lambda: checkpoint).num_beam_ties == 0
    for name in ("greedy", "beams"):
        changed: dict[str, Any] = {name: ((5, 6, 7, 8, 9, 10, 11, 12), *getattr(expected, name)[1:])}
        wrong = dataclasses.replace(expected, **changed)
        with pytest.raises(VerificationError, match="goes on with"):
            check_fidelity(bundle, manifest, wrong, lambda: checkpoint)
    assert max(closest_call(checkpoint, row, 4, 8) for row in rows) > 100 * TIE_GAP
