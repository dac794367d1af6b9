"""IndicTrans2's folders become bundles that compute what its model does, in all languages and scripts."""

import contextlib
import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import M2M100ForConditionalGeneration

from export.architecture.transformer import Transformer
from export.convert import convert
from export.fidelity import ask_reference, check_fidelity, check_reading
from export.importers.huggingface.reference import TransformersReference
from export.importers.imported import CheckpointError, ImportedCheckpoint
from export.importers.options import ImportOptions
from export.importers.selection import import_checkpoint
from service.bundle.manifest import Manifest
from tests.export.folders import edit
from tests.export.importers.indictrans2.checkpoints import MAX_LENGTH, indictrans2, read_model
from tests.export.importers.indictrans2.conftest import SHAPES
from tests.export.random_sentences import random_sentences
from tests.tokenizer_folders import INDIC_TAGS


def reading_of(folder: Path) -> M2M100ForConditionalGeneration:
    """Return the independent reading of a checkpoint's model."""
    return read_model(json.loads((folder / "config.json").read_text("utf-8")))


def with_reference(folder: Path) -> ImportedCheckpoint:
    """Return the checkpoint with the independent reading of its model as its reference."""
    reference = TransformersReference(reading_of(folder), folder)
    return dataclasses.replace(import_checkpoint(folder), open_reference=lambda: contextlib.nullcontext(reference))


@pytest.mark.parametrize(
    ("direction", "count"),
    [*((each, 40) for each in SHAPES), *(pytest.param(each, 500, marks=pytest.mark.full) for each in SHAPES)],
)
def test_sentences_come_out_as_from_the_independent_reading(
    folders: dict[str, Path], tmp_path: Path, direction: str, count: int
) -> None:
    """Issue 37: greedy output is identical in all, beam 4, of a bundle in float32, in all but ties."""
    folder, bundle = folders[direction], tmp_path / "bundle"
    checkpoint = with_reference(folder)
    expected = ask_reference(checkpoint, random_sentences(checkpoint, count))
    assert expected is not None
    assert len(set(expected.greedy)) > count // 3
    assert len({len(output) for output in expected.greedy}) > 2, "some end by themselves, some at the limit"
    if count == 40:
        report = check_reading(checkpoint, expected)
    else:
        report = check_fidelity(bundle, convert(folder, bundle), expected, lambda: checkpoint)
    print(report.line())
    assert report.num_greedy_ties == 0
    assert report.num_beam_ties <= count // 250


@pytest.mark.parametrize("direction", SHAPES)
def test_our_model_is_the_independent_reading(folders: dict[str, Path], direction: str) -> None:
    """Pre-norm and post-norm, with and without a norm of the embedding and a projection of its own."""
    checkpoint = with_reference(folders[direction])
    model, theirs = Transformer.of(checkpoint.model), reading_of(folders[direction])
    rng = np.random.default_rng(9)
    for sentence in random_sentences(checkpoint, 10):
        source = torch.tensor([sentence.source_ids])
        target = torch.tensor([[2, *rng.integers(2, checkpoint.model.config.target_vocabulary_size, 20).tolist()]])
        with torch.no_grad():
            expected = theirs(input_ids=source, decoder_input_ids=target).logits
            torch.testing.assert_close(model(source, target), expected, atol=2e-3, rtol=1e-4)


@pytest.mark.parametrize("direction", SHAPES)
def test_int8_is_the_rounded_model(models: Path, direction: str) -> None:
    measured = Manifest.load(models / direction / "1").verification["int8"]
    assert measured["with_rounded"] > 0.98
    assert 0.5 < measured["agreement"] < 1.0


def test_a_model_from_english_has_all_other_languages_as_targets(tmp_path: Path) -> None:
    checkpoint = import_checkpoint(indictrans2(tmp_path / "folder"))
    tags = INDIC_TAGS.split()
    vocabulary = json.loads((tmp_path / "folder" / "dict.SRC.json").read_text("utf-8"))
    assert {pair.source_language_code for pair in checkpoint.languages} == {"eng_Latn"}
    assert [pair.target_language_code for pair in checkpoint.languages] == [tag for tag in tags if tag != "eng_Latn"]
    hindi = next(pair for pair in checkpoint.languages if pair.target_language_code == "hin_Deva")
    assert hindi.source_prefix_ids == (vocabulary["eng_Latn"], vocabulary["hin_Deva"])
    assert hindi.target_prefix_ids == ()
    assert (checkpoint.family, checkpoint.limits.max_output_tokens) == ("IndicTrans2", MAX_LENGTH - 1)


def test_a_model_among_the_languages_of_india_has_no_english(tmp_path: Path) -> None:
    checkpoint = import_checkpoint(indictrans2(tmp_path / "folder", "indic-indic"))
    codes = [language.code for language in checkpoint.any_to_any]
    assert codes == [tag for tag in INDIC_TAGS.split() if tag != "eng_Latn"]
    assert all(len(pair.source_prefix_ids) == 2 for pair in checkpoint.pairs())


def test_one_pair_may_be_chosen(tmp_path: Path) -> None:
    folder = indictrans2(tmp_path / "folder", "indic-en")
    [pair] = import_checkpoint(folder, options=ImportOptions(source_language="ta")).languages
    assert (pair.source_language_code, pair.target_language_code) == ("tam_Taml", "eng_Latn")
    with pytest.raises(CheckpointError, match="--target-language is 'hin_Deva'; this model has English there"):
        import_checkpoint(folder, options=ImportOptions(source_language="ta", target_language="hi"))


def remove(name: str) -> Callable[[Path], object]:
    return lambda folder: (folder / name).unlink()


def configure(**changes: Any) -> Callable[[Path], object]:
    return lambda folder: edit(folder / "config.json", **changes)


def add_piece(file: str, piece: str) -> Callable[[Path], object]:
    return lambda folder: edit(folder / file, **{piece: len(json.loads((folder / file).read_text("utf-8")))})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (remove("model.TGT"), "model.TGT"),
        (remove("dict.SRC.json"), "dict.SRC.json: it is missing"),
        (remove("config.json"), "it has no config.json"),
        (configure(model_type="RotaryIndicTrans"), "model_type is 'RotaryIndicTrans'; supported: .*IndicTrans"),
        (configure(decoder_normalize_before=False), "encoder_normalize_before is True and decoder_normalize_before"),
        (configure(decoder_embed_dim=40), "encoder_embed_dim is 36 and decoder_embed_dim 40; they must be the same"),
        (configure(layernorm_embedding=False), "layernorm|embedding.norm"),
        (configure(max_target_positions=None), "max_position_embeddings is None"),
        (configure(tokenizer_class=None), ""),
        (add_piece("dict.SRC.json", "bod_Tibt"), "bod_Tibt has a script that is not known"),
    ],
)
def test_what_is_wrong_with_a_folder_is_said(tmp_path: Path, change: Callable[[Path], object], message: str) -> None:
    folder = indictrans2(tmp_path / "folder")
    change(folder)
    if not message:
        import_checkpoint(folder)
        return
    with pytest.raises(CheckpointError, match=message):
        import_checkpoint(folder)
