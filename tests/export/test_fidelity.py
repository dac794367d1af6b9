"""A model as it was read is compared with its original before it becomes int8 or float16, and misreadings are told."""

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from export import fidelity
from export.architecture import PositionConfig
from export.architecture.stored import Array
from export.convert import write_bundle
from export.fidelity import ReferenceOutputs, ask_reference, check_reading, free_bytes
from export.importers.ctranslate2.importer import import_ctranslate2
from export.importers.imported import ImportedCheckpoint
from export.importers.options import ImportOptions
from export.importers.selection import import_checkpoint
from export.verify import TIE_GAP, VerificationError
from tests.export.conftest import Converted
from tests.export.folders import edit
from tests.export.huggingface.checkpoints import FEW_LAYERS, marian, nllb
from tests.export.importers.ctranslate2.variants import write_folder
from tests.export.random_sentences import random_sentences

OPTIONS = {"repetition_penalty": 1.3, "no_repeat_ngram_size": 3, "min_length": 8}


@pytest.fixture(scope="module")
def read(tmp_path_factory: pytest.TempPathFactory) -> ImportedCheckpoint:
    folder = marian(tmp_path_factory.mktemp("reading") / "marian", **FEW_LAYERS)
    edit(folder / "generation_config.json", **OPTIONS)
    return import_checkpoint(folder)


@pytest.fixture(scope="module")
def expected(read: ImportedCheckpoint) -> ReferenceOutputs:
    found = ask_reference(read, random_sentences(read, 40), beam_sizes=[1])
    assert found is not None
    assert len(set(found.greedy)) > 20, "a model that says the same to everyone would prove nothing"
    return found


def with_config(**changes: Any) -> Callable[[ImportedCheckpoint], ImportedCheckpoint]:
    def change(checkpoint: ImportedCheckpoint) -> ImportedCheckpoint:
        config = dataclasses.replace(checkpoint.model.config, **changes)
        return dataclasses.replace(checkpoint, model=dataclasses.replace(checkpoint.model, config=config))

    return change


def with_weight(name: str, change: Callable[[Array], Array]) -> Callable[[ImportedCheckpoint], ImportedCheckpoint]:
    def changed(checkpoint: ImportedCheckpoint) -> ImportedCheckpoint:
        weights = {**checkpoint.model.weights, name: change(checkpoint.model.weights[name])}
        return dataclasses.replace(checkpoint, model=dataclasses.replace(checkpoint.model, weights=weights))

    return changed


MISREADINGS: dict[str, Callable[[ImportedCheckpoint], ImportedCheckpoint]] = {
    "activation": with_config(activation="gelu"),
    "offset of positions": with_config(positions=PositionConfig("halves", offset=2)),
    "layout of positions": with_config(positions=PositionConfig()),
    "scale of embeddings": with_config(scale_embeddings=False),
    "norm": with_config(norm="pre"),
    "heads": with_config(num_heads=8),
    "a transposed weight": with_weight("encoder.layers.0.self_attention.value.weight", lambda weight: weight.T),
    "a bias left out": with_weight("decoder.layers.0.feed_forward.inner.bias", np.zeros_like),
    "start token": lambda checkpoint: dataclasses.replace(
        checkpoint, tokenizer=dataclasses.replace(checkpoint.tokenizer, decoder_start_id=5)
    ),
    "suppressed tokens": lambda checkpoint: dataclasses.replace(checkpoint, suppressed_ids=(9, 12, 40)),
    "options": lambda checkpoint: dataclasses.replace(
        checkpoint, generation=dataclasses.replace(checkpoint.generation, options={})
    ),
    "no numbers": with_weight("decoder.layers.0.feed_forward.inner.bias", lambda bias: bias * np.nan),
}


def test_what_is_read_rightly_gives_the_same_tokens(read: ImportedCheckpoint, expected: ReferenceOutputs) -> None:
    report = check_reading(read, expected)
    assert (report.num_sentences, report.num_greedy_ties) == (40, 0)
    assert report.line().startswith("same tokens as transformers 5.")


@pytest.mark.parametrize("misread", MISREADINGS.values(), ids=MISREADINGS)
def test_a_misreading_is_found(
    misread: Callable[[ImportedCheckpoint], ImportedCheckpoint], read: ImportedCheckpoint, expected: ReferenceOutputs
) -> None:
    with pytest.raises(VerificationError, match=r"position \d+: the model as it was read goes on with token \d+"):
        check_reading(misread(read), expected)


@pytest.mark.parametrize(("gap", "is_tie"), [(0.1 * TIE_GAP, True), (10 * TIE_GAP, False)])
def test_only_a_tie_is_excused(
    gap: float, is_tie: bool, read: ImportedCheckpoint, expected: ReferenceOutputs, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = dataclasses.replace(expected, sentences=expected.sentences[:1], greedy=((7,),), max_output_tokens=1)
    scores = np.zeros((1, read.model.config.target_vocabulary_size), np.float32)
    scores[0, 8] = gap
    monkeypatch.setattr(fidelity, "_changed", lambda *given: scores.copy())
    if is_tie:
        assert check_reading(read, one).num_greedy_ties == 1
        return
    with pytest.raises(VerificationError, match=r"goes on with token 8, .* with 7; .* are 0\.001 apart"):
        check_reading(read, one)


@pytest.mark.parametrize(
    ("kind", "precision"), [("transformers", "int8"), ("ctranslate2", "int8"), ("transformers", "float16")]
)
def test_a_misread_model_is_not_written(
    kind: str, precision: str, conversions: Callable[[str], Converted], tmp_path: Path
) -> None:
    if kind == "ctranslate2":
        options = ImportOptions(source_language="en", target_language="de")
        checkpoint = import_ctranslate2(write_folder(tmp_path / "checkpoint", "pre"), options)
    else:
        checkpoint = import_checkpoint(nllb(tmp_path / "checkpoint", **FEW_LAYERS))
    if precision == "int8":
        manifest = write_bundle(lambda: checkpoint, tmp_path / "right" / "1", precision=precision)
    else:
        _, _, manifest = conversions("halves")
    assert manifest.verification["fidelity"]["beam_size"] == 1
    assert manifest.verification["fidelity"]["num_sentences"] > 16
    with pytest.raises(VerificationError, match="is misread"):
        write_bundle(lambda: with_config(norm="post")(checkpoint), tmp_path / "wrong" / "1", precision=precision)
    assert not (tmp_path / "wrong" / "1").exists()


def test_an_original_that_does_not_fit_into_memory_is_not_loaded(
    read: ImportedCheckpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert 1e8 < free_bytes() < 1e14
    monkeypatch.setattr(fidelity, "free_bytes", lambda: 5e8)
    said: list[str] = []
    manifest = write_bundle(lambda: read, tmp_path / "1", precision="int8", say=said.append)
    assert "fidelity" not in manifest.verification
    (line,) = (line for line in said if "not compared with the original" in line)
    assert "takes about 0.8 GB of memory, and 0.5 GB are free" in line
