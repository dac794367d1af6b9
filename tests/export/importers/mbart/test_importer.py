"""What a folder of mBART, BART, PLBart or SMaLL-100 says of languages: before or after a text, or nowhere."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from export.importers.imported import ImportedCheckpoint
from export.importers.options import NOTHING_SAID, ImportOptions
from export.importers.selection import import_checkpoint
from service.bundle.manifest_parts import LanguagePair
from tests.export.folders import edit, problems_of
from tests.export.huggingface import checkpoints
from tests.export.huggingface.checkpoints import FEW_LAYERS

FIRST = 268  # of the languages' tokens: 263 pieces and 4 special tokens come before
EN, RO = FIRST + 3, FIRST + 19


@pytest.fixture
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    write: Callable[..., Path] = request.param
    return write(tmp_path / "model", **FEW_LAYERS)


def change(folder: Path, name: str = "generation_config.json", **settings: Any) -> None:
    """Change settings of a file; `None` removes one."""
    edit(folder / name, **{key: ... if value is None else value for key, value in settings.items()})


def pairs_of(checkpoint: ImportedCheckpoint) -> dict[tuple[str, str], LanguagePair]:
    return {(pair.source_language_code, pair.target_language_code): pair for pair in checkpoint.pairs()}


@pytest.mark.parametrize("folder", [checkpoints.mbart_50], indirect=True)
def test_mbart_50_names_a_language_on_both_sides(folder: Path) -> None:
    checkpoint = import_checkpoint(folder)
    assert len(checkpoint.any_to_any) == 52
    pair = pairs_of(checkpoint)["en", "ro"]
    assert (pair.source_prefix_ids, pair.target_prefix_ids) == ((EN,), (RO,))
    assert checkpoint.tokenizer.source_ids((5, 6), pair) == (EN, 5, 6, 2)
    assert (checkpoint.tokenizer.decoder_start_id, checkpoint.generation.forces_end) == (2, True)
    for options, expected in (
        (ImportOptions("en_XX", "ro_RO"), {("en", "ro")}),
        (ImportOptions("en"), {("en", each.code) for each in checkpoint.any_to_any if each.code != "en"}),
        (ImportOptions("", "ro"), {(each.code, "ro") for each in checkpoint.any_to_any if each.code != "ro"}),
    ):
        assert pairs_of(import_checkpoint(folder, options=options)).keys() == expected
    change(folder, forced_bos_token_id=EN)  # as many-to-one has it
    assert {target for _, target in pairs_of(import_checkpoint(folder))} == {"en"}


@pytest.mark.parametrize("folder", [checkpoints.mbart_50], indirect=True)
def test_mbart_50_without_its_start_is_refused(folder: Path) -> None:
    """`generate` would start from 0, and the model was trained to start from 2."""
    change(folder, decoder_start_token_id=None)
    problem = problems_of(folder)
    assert "translations start from the token 0 (decoder_start_token_id or else bos_token_id)" in problem
    assert "set decoder_start_token_id to 2 in generation_config.json" in problem
    change(folder, decoder_start_token_id=2, forced_bos_token_id=5)
    assert "forced_bos_token_id is 5; supported: the languages' tokens" in problems_of(folder)
    assert "--target-language is 'xx', none of the model's 52" in problems_of(folder, ImportOptions("", "xx"))


@pytest.mark.parametrize("folder", [checkpoints.mbart], indirect=True)
def test_mbart_names_the_source_after_its_end_and_starts_from_the_target(folder: Path) -> None:
    checkpoint = import_checkpoint(folder)
    pairs = pairs_of(checkpoint)
    assert (len(pairs), checkpoint.tokenizer.decoder_start_id) == (24, RO)
    assert checkpoint.tokenizer.source_ids((5, 6), pairs["en", "ro"]) == (5, 6, 2, EN)
    assert pairs["en", "ro"].target_prefix_ids == ()
    assert pairs_of(import_checkpoint(folder, options=ImportOptions("en", "ro"))).keys() == {("en", "ro")}
    problem = problems_of(folder, ImportOptions("en", "de"))
    assert "--target-language is 'de'; this model starts its translations with 'ro'" in problem
    change(folder, "tokenizer_config.json", src_lang="en_XX")
    assert pairs_of(import_checkpoint(folder)).keys() == {("en", "ro")}
    change(folder, decoder_start_token_id=2)
    problem = problems_of(folder)
    assert "translations start from the token 2" in problem
    assert "to the target language's token, such as 268" in problem
    change(folder, forced_bos_token_id=RO)  # as transformers' pipeline fine-tunes and calls it
    assert pairs_of(import_checkpoint(folder))["en", "ro"].target_prefix_ids == (RO,)


@pytest.mark.parametrize("folder", [checkpoints.mbart], indirect=True)
def test_tokenizers_of_other_classes_are_refused_by_name(folder: Path) -> None:
    change(folder, "tokenizer_config.json", tokenizer_class="BarthezTokenizer")
    problem = problems_of(folder)
    assert "tokenizer_class is 'BarthezTokenizer'; supported: MBartTokenizer or MBart50Tokenizer or" in problem
    change(folder, "tokenizer_config.json", tokenizer_class="MBartTokenizerFast")
    (folder / "sentencepiece.bpe.model").unlink()
    assert "tokenizer.json: it is not a tokenizer like mBART's: it is missing" in problems_of(folder)


@pytest.mark.parametrize("folder", [checkpoints.plbart], indirect=True)
def test_plbart_translates_between_programming_languages(folder: Path) -> None:
    checkpoint = import_checkpoint(folder, options=ImportOptions("python"))
    assert checkpoint.tokenizer.source_ids((5,), pairs_of(checkpoint)["python", "en"]) == (5, 2, FIRST + 1)
    assert checkpoint.model.config.scale_embeddings
    change(folder, "tokenizer_config.json", language_codes="none", additional_special_tokens=["<x>"])
    assert "language_codes is 'none'; known: base, multi" in problems_of(folder)
    change(folder, "tokenizer_config.json", language_codes="base")
    assert "the special token '<x>' is not supported" in problems_of(folder)


@pytest.mark.parametrize("folder", [checkpoints.bart], indirect=True)
def test_bart_has_no_languages_and_a_summarisers_settings(folder: Path) -> None:
    assert "BART names no languages; give --source-language and --target-language" in problems_of(folder)
    checkpoint = import_checkpoint(folder, options=ImportOptions("en", "de"))
    pair = pairs_of(checkpoint)["en", "de"]
    assert (checkpoint.tokenizer.source_ids((5,), pair), pair.target_prefix_ids) == ((0, 5, 2), (0,))
    assert checkpoint.generation.length_penalty == 2.0
    # Of the 6 tokens at least, two are the one that starts and the one that is forced.
    assert checkpoint.generation.options == {"no_repeat_ngram_size": 3, "min_output_tokens": 4}
    change(folder, forced_bos_token_id=None)
    (pair,) = import_checkpoint(folder, options=ImportOptions("en", "en")).pairs()
    assert pair.target_prefix_ids == ()
    (folder / "merges.txt").write_text("#version: 0.2\nx yz q\n", encoding="utf-8")
    assert "vocab.json: it is not a tokenizer like BART's" in problems_of(folder, ImportOptions("en", "de"))


@pytest.mark.parametrize("folder", [checkpoints.bart], indirect=True)
def test_published_bart_has_no_row_for_the_mask_and_fairseqs_version(folder: Path) -> None:
    """As facebook/bart-large-cnn: 50,265 tokens, 50,264 rows."""
    size = len(json.loads((folder / "vocab.json").read_text(encoding="utf-8")))
    path = folder / "model.safetensors"
    weights = load_file(path)
    weights["model.shared.weight"] = weights["model.shared.weight"][:-1].clone()
    weights["final_logits_bias"] = weights["final_logits_bias"][:, :-1].clone()
    versions = {f"model.{side}.version": torch.tensor([3.0]) for side in ("encoder", "decoder")}
    save_file(weights | versions, path)
    change(folder, "config.json", vocab_size=size - 1)
    checkpoint = import_checkpoint(folder, options=ImportOptions("en", "en"))
    assert checkpoint.model.config.source_vocabulary_size == size - 1
    change(folder, "config.json", vocab_size=size - 2)
    assert f"the source tokenizer has {size - 1} tokens, the model {size - 2}" in problems_of(folder)


@pytest.mark.parametrize("folder", [checkpoints.mbart_50, checkpoints.bart], indirect=True)
def test_flags_that_transformers_ignores_must_say_what_it_does(folder: Path) -> None:
    is_pre_norm = json.loads((folder / "config.json").read_text(encoding="utf-8"))["model_type"] == "mbart"
    options = NOTHING_SAID if is_pre_norm else ImportOptions("en", "en")
    published = {"normalize_embedding": True, "static_position_embeddings": False, "extra_pos_embeddings": 2}
    flags = {**published, "normalize_before": is_pre_norm, "add_final_layer_norm": is_pre_norm}
    change(folder, "config.json", **flags)
    import_checkpoint(folder, options=options)
    for name, value in flags.items():
        change(folder, "config.json", **{**flags, name: 0 if name == "extra_pos_embeddings" else not value})
        assert f"{name} is " in problems_of(folder, options)


@pytest.mark.parametrize("folder", [checkpoints.small100], indirect=True)
def test_small100_names_only_the_target_in_front_of_the_source(folder: Path) -> None:
    by_class = import_checkpoint(folder)
    pairs = pairs_of(by_class)
    german = pairs["en", "de"].source_prefix_ids
    assert len(german) == 1
    assert pairs["fr", "de"] == LanguagePair("fr", "de", german)
    (folder / "tokenizer_config.json").unlink()
    plain = import_checkpoint(folder)
    assert pairs_of(plain)["en", "de"].target_prefix_ids == german
    assert pairs_of(plain)["de", "en"].source_prefix_ids == german
    assert plain.notes == ()
    assert pairs_of(import_checkpoint(folder, "small100")) == pairs
    for name, settings in (
        ("tokenizer_config.json", {"auto_map": {"AutoTokenizer": ["tokenization_small100.SMALL100Tokenizer", None]}}),
        ("config.json", {"tokenizer_class": "SMALL100Tokenizer"}),
    ):
        change(folder, name, **settings)
        assert pairs_of(import_checkpoint(folder)) == pairs
        change(folder, name, **dict.fromkeys(settings))
    (folder / "tokenization_small100.py").touch()
    assert pairs_of(import_checkpoint(folder)) == pairs
    change(folder, forced_bos_token_id=german[0])
    assert "forced_bos_token_id is" in problems_of(folder)


def test_what_has_the_shape_of_small100_is_asked_for(tmp_path: Path) -> None:
    folder = checkpoints.m2m100(tmp_path / "model", encoder_layers=12, decoder_layers=3)
    (note,) = import_checkpoint(folder).notes
    assert "give --from small100" in note


def test_experts_are_refused_by_name(tmp_path: Path) -> None:
    folder = checkpoints.m2m100(tmp_path / "model", **FEW_LAYERS)
    change(folder, "config.json", num_experts=128)
    assert "num_experts is '128'; M2M100 models have no such setting" in problems_of(folder)
