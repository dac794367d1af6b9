"""Folders that cannot be converted are rejected in one error that lists all problems, and leave nothing behind."""

import json
import pickle
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from export.architecture.names import ENCODER_TABLE
from export.importers.selection import import_checkpoint
from tests.export.folders import edit, edit_weights, problems_of
from tests.export.huggingface import checkpoints

PARALLEL, COMPILED = "module.", "_orig_mod."  # what DataParallel and torch.compile put before names
Damage = Callable[[Path], object]


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return checkpoints.marian(tmp_path_factory.mktemp("pristine") / "opus-mt-tiny")


@pytest.fixture
def folder(pristine: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(pristine, tmp_path / "checkpoint"))


def test_all_unsupported_choices_are_in_one_error(folder: Path) -> None:
    edit(
        folder / "config.json",
        rope_theta=10000.0,
        relative_attention_num_buckets=32,
        activation_function="gelu_new",
        encoder_attention_heads=8,
        normalize_embedding=True,
    )
    edit(folder / "generation_config.json", encoder_no_repeat_ngram_size=3, early_stopping="never", num_beams=12)
    message = problems_of(folder)
    for part in (
        "rope_theta is '10000.0'",
        "relative_attention_num_buckets is '32'",
        "activation_function is 'gelu_new'; supported: relu, gelu, swish, silu",
        "encoder_attention_heads is 8 and decoder_attention_heads 4",
        "normalize_embedding is True",
        "encoder_no_repeat_ngram_size is 3",
        "early_stopping is 'never'",
        "num_beams is 12; supported: 1 to 8",
    ):
        assert part in message


@pytest.mark.parametrize("value", [[], {}, ["marian"], 7])
def test_names_that_are_no_text_are_refused(folder: Path, value: Any) -> None:
    edit(folder / "config.json", activation_function=value)
    assert f"activation_function is {value!r}" in problems_of(folder)
    edit(folder / "config.json", model_type=value)
    assert f"model_type is {str(value)!r}" in problems_of(folder)


def test_a_message_is_not_as_long_as_what_it_quotes(folder: Path) -> None:
    edit(folder / "config.json", encoder_layers=500, **{f"rope_{number}": "x" * 10_000 for number in range(500)})
    assert len(message := problems_of(folder)) < 12_000
    assert message.endswith(" more.")


def changed(change: Callable[[dict[str, torch.Tensor]], object]) -> Damage:
    return lambda folder: edit_weights(folder, change)


def said(file: str, **changes: Any) -> Damage:
    return lambda folder: edit(folder / file, **changes)


def wrap(weights: dict[str, torch.Tensor]) -> None:
    for name in list(weights):
        weights[f"{PARALLEL}{COMPILED}{name}"] = weights.pop(name)


FC1, FC2 = "model.encoder.layers.1.fc1.weight", "model.decoder.layers.1.fc2.bias"
spoil = changed(lambda weights: weights[FC2].fill_(float("nan")))


def make_evil(folder: Path) -> None:
    class Evil:
        def __reduce__(self) -> Any:
            return (Path.touch, (folder / "pwned",))

    (folder / "model.safetensors").unlink()
    with (folder / "pytorch_model.bin").open("wb") as file:
        pickle.dump({"model.shared.weight": Evil()}, file)


def climb_out(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    index = {"weight_map": {"a": "../elsewhere.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index), encoding="utf-8")


def forbid_repetition(folder: Path) -> None:
    (folder / "generation_config.json").unlink()
    edit(folder / "config.json", encoder_no_repeat_ngram_size=3)


DAMAGES: dict[str, tuple[Damage, str]] = {
    "unknown weight": (
        changed(lambda weights: weights.update({FC1.replace("fc1", "fc9"): weights.pop(FC1)})),
        r"fc9.weight is a weight that the architecture does not have.*feed_forward.inner.weight is missing",
    ),
    "wrapped": (
        changed(wrap),
        r"can't be converted: module\._orig_mod\.\S+ is a name that DataParallel or torch.compile gives; [^;]+\.$",
    ),
    "nan": (spoil, r"layers.1.feed_forward.outer.bias holds NaN"),
    "shape": (
        changed(lambda weights: weights.update({FC1: weights[FC1][:10].clone()})),
        r"layers.1.feed_forward.inner.weight has shape \(10, 32\), the configuration asks for \(64, 32\)",
    ),
    "positions": (
        changed(lambda weights: weights.update({"model.encoder.embed_positions.weight": torch.randn(128, 32)})),
        r"embed_positions.weight is not the sinusoidal table",
    ),
    "evil pickle": (make_evil, r"pytorch_model.bin holds more than tensors .* might run code"),
    "path traversal": (climb_out, r"names '../elsewhere.safetensors'; allowed: plain names"),
    "no source language": (
        said("tokenizer_config.json", source_lang=None),
        r"names no source_lang; give --source-language",
    ),
    "another vocabulary": (said("config.json", vocab_size=10), r"pad_id 197 is outside the vocabulary of 10"),
    "no settings": (
        lambda folder: (folder / "generation_config.json").write_text("{}", encoding="utf-8"),
        r"generation_config.json: eos_token_id is missing.*decoder_start_token_id is missing",
    ),
    "a word beyond the vocabulary": (
        said("generation_config.json", bad_words_ids=[[5], [198]]),
        r"bad_words_ids has 198, the model has 198 tokens",
    ),
    "settings of config.json": (
        forbid_repetition,
        r"config.json: encoder_no_repeat_ngram_size is 3; supported: 0",
    ),
    "weights elsewhere": (
        said("config.json", transformers_weights="best.safetensors"),
        r"transformers_weights is 'best.safetensors'; remove it and name the weights model.safetensors",
    ),
    "another padding": (
        said("config.json", pad_token_id=3),
        r"config.json: pad_token_id is 3, the tokenizer's is 197",
    ),
    "another tokenizer": (
        said("config.json", tokenizer_class="NllbTokenizer"),
        r"tokenizer: config.json: tokenizer_class is 'NllbTokenizer'",
    ),
    "other ids": (said("generation_config.json", eos_token_id=7), r"eos_token_id is 7"),
    "no object": (lambda folder: (folder / "config.json").write_text("[]"), r"expected an object"),
}


@pytest.mark.parametrize(("damage", "message"), DAMAGES.values(), ids=DAMAGES)
def test_damages_get_a_clear_error(folder: Path, damage: Damage, message: str) -> None:
    import_checkpoint(folder)
    damage(folder)
    assert re.search(message, problems_of(folder))
    assert not (folder / "pwned").exists()


def test_shards_and_pickles_give_the_same_model(folder: Path) -> None:
    expected = import_checkpoint(folder)
    weights = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    names = sorted(weights)
    shards = {"pytorch_model-00001-of-00002.bin": names[::2], "pytorch_model-00002-of-00002.bin": names[1::2]}
    for file, chosen in shards.items():
        torch.save({name: weights[name] for name in chosen}, folder / file)
    index = {"weight_map": {name: file for file, chosen in shards.items() for name in chosen}}
    (folder / "pytorch_model.bin.index.json").write_text(json.dumps(index), encoding="utf-8")
    sharded = import_checkpoint(folder)
    for name, value in expected.model.weights.items():
        np.testing.assert_array_equal(value, sharded.model.weights[name])
    torch.save(weights, folder / "pytorch_model.bin", _use_new_zipfile_serialization=False)  # as before torch 1.6
    old = import_checkpoint(folder)
    np.testing.assert_array_equal(old.model.weights[ENCODER_TABLE], expected.model.weights[ENCODER_TABLE])


def test_targets_of_a_multilingual_model(tmp_path: Path) -> None:
    folder = checkpoints.marian(tmp_path / "opus-mt-en-mul", languages=("deu", "fra"))
    vocabulary = json.loads((folder / "vocab.json").read_text(encoding="utf-8"))
    pairs = import_checkpoint(folder).languages
    assert {pair.target_language_code: pair.source_prefix_ids for pair in pairs} == {
        code: (vocabulary[f">>{code}<<"],) for code in ("deu", "fra")
    }
