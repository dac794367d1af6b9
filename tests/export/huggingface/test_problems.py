"""Folders that cannot be converted are rejected in one error that lists all problems, and leave nothing behind."""

import json
import pickle
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from export.cli import EXIT_BAD_CHECKPOINT, main
from export.importers.imported import CheckpointError
from export.importers.selection import import_checkpoint
from tests.export.huggingface import checkpoints

Damage = Callable[[Path], object]


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return checkpoints.marian(tmp_path_factory.mktemp("pristine") / "opus-mt-tiny")


@pytest.fixture
def folder(pristine: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(pristine, tmp_path / "checkpoint"))


def edit(path: Path, **changes: Any) -> None:
    document = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps({**document, **changes}), encoding="utf-8")


def change_weights(folder: Path, change: Callable[[dict[str, torch.Tensor]], object]) -> None:
    path = folder / "model.safetensors"
    weights = {name: value.clone() for name, value in load_file(path).items()}
    change(weights)
    save_file(weights, path)


def problems_of(folder: Path) -> str:
    with pytest.raises(CheckpointError) as error:
        import_checkpoint(folder)
    assert "\n" not in str(error.value)
    return str(error.value)


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
    told = problems_of(folder)
    for part in (
        "rope_theta is '10000.0'",
        "relative_attention_num_buckets is '32'",
        "activation_function is 'gelu_new'; supported are relu, gelu, swish, silu",
        "encoder_attention_heads is 8 and decoder_attention_heads 4",
        "normalize_embedding is True",
        "encoder_no_repeat_ngram_size is 3",
        "early_stopping is 'never'",
        "num_beams is 12; supported is 1 to 8",
    ):
        assert part in told


@pytest.mark.parametrize("value", [[], {}, ["marian"], 7])
def test_names_that_are_no_text_are_refused(folder: Path, value: Any) -> None:
    edit(folder / "config.json", activation_function=value)
    assert f"activation_function is {value!r}" in problems_of(folder)
    edit(folder / "config.json", model_type=value)
    assert f"model_type is {str(value)!r}" in problems_of(folder)


def test_a_message_is_not_as_long_as_what_it_quotes(folder: Path) -> None:
    edit(folder / "config.json", encoder_layers=500, **{f"rope_{number}": "x" * 10_000 for number in range(500)})
    assert len(told := problems_of(folder)) < 12_000
    assert told.endswith(" more.")


def replace_key(folder: Path) -> None:
    def change(weights: dict[str, torch.Tensor]) -> None:
        weights["model.encoder.layers.0.fc9.weight"] = weights.pop("model.encoder.layers.0.fc1.weight")

    change_weights(folder, change)


def wrap(folder: Path) -> None:
    def change(weights: dict[str, torch.Tensor]) -> None:
        for name in list(weights):
            weights[f"module._orig_mod.{name}"] = weights.pop(name)

    change_weights(folder, change)


def spoil(folder: Path) -> None:
    change_weights(folder, lambda weights: weights["model.decoder.layers.1.fc2.bias"].fill_(float("nan")))


def cut(folder: Path) -> None:
    def change(weights: dict[str, torch.Tensor]) -> None:
        weights["model.encoder.layers.1.fc1.weight"] = weights["model.encoder.layers.1.fc1.weight"][:10].clone()

    change_weights(folder, change)


def make_positions_learned(folder: Path) -> None:
    def change(weights: dict[str, torch.Tensor]) -> None:
        weights["model.encoder.embed_positions.weight"] = torch.randn(128, 32)

    change_weights(folder, change)


def make_evil(folder: Path) -> None:
    class Evil:
        def __reduce__(self) -> Any:
            return (Path.touch, (folder / "pwned",))

    (folder / "model.safetensors").unlink()
    with (folder / "pytorch_model.bin").open("wb") as file:
        pickle.dump({"model.shared.weight": Evil()}, file)


def lose_a_shard(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    index = {"weight_map": {"a": "model-00001-of-00002.safetensors", "b": "model-00002-of-00002.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index), encoding="utf-8")
    save_file({"a": torch.zeros(1)}, folder / "model-00001-of-00002.safetensors")


def climb_out(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    index = {"weight_map": {"a": "../elsewhere.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index), encoding="utf-8")


def truncate(name: str) -> Damage:
    def damage(folder: Path) -> None:
        data = (folder / name).read_bytes()
        (folder / name).write_bytes(data[: len(data) // 2])

    return damage


def make_no_object(folder: Path) -> None:
    (folder / "config.json").write_text("[]")


def forbid_repetition(folder: Path) -> None:
    (folder / "generation_config.json").unlink()
    edit(folder / "config.json", encoder_no_repeat_ngram_size=3)


def remove(name: str) -> Damage:
    return lambda folder: (folder / name).unlink()


DAMAGES: dict[str, tuple[Damage, str]] = {
    "unknown weight": (
        replace_key,
        r"fc9.weight is a weight that the architecture does not have.*feed_forward.inner.weight is missing",
    ),
    "wrapped": (
        wrap,
        r"can't be converted: module\._orig_mod\.\S+ is a name in DataParallel or torch.compile; [^;]+\.$",
    ),
    "nan": (spoil, r"layers.1.feed_forward.outer.bias holds NaN"),
    "shape": (cut, r"layers.1.feed_forward.inner.weight has shape \(10, 32\), the configuration asks for \(64, 32\)"),
    "positions": (make_positions_learned, r"embed_positions.weight is not the sinusoidal table"),
    "evil pickle": (make_evil, r"pytorch_model.bin holds more than tensors .* might run code"),
    "missing shard": (lose_a_shard, r"model-00002-of-00002.safetensors missing"),
    "path traversal": (climb_out, r"names '../elsewhere.safetensors'; allowed are plain names"),
    "truncated weights": (truncate("model.safetensors"), r"model.safetensors is damaged"),
    "truncated tokenizer": (truncate("source.spm"), r"source.spm"),
    "truncated vocabulary": (truncate("vocab.json"), r"vocab.json"),
    "no tokenizer": (remove("source.spm"), r"source.spm.*missing"),
    "no weights": (remove("model.safetensors"), r"no weights; expected is model.safetensors"),
    "no source language": (
        lambda folder: edit(folder / "tokenizer_config.json", source_lang=None),
        r"names no source_lang; give --source-language",
    ),
    "another architecture": (
        lambda folder: edit(folder / "config.json", model_type="t5"),
        r"model_type is 't5'; supported are m2m_100, marian",
    ),
    "another vocabulary": (
        lambda folder: edit(folder / "config.json", vocab_size=10),
        r"pad_id 197 is outside the vocabulary of 10",
    ),
    "no settings": (
        lambda folder: (folder / "generation_config.json").write_text("{}", encoding="utf-8"),
        r"generation_config.json: eos_token_id is missing.*decoder_start_token_id is missing",
    ),
    "a forced first token": (
        lambda folder: edit(folder / "generation_config.json", forced_bos_token_id=5),
        r"generation_config.json: forced_bos_token_id is 5; supported is none",
    ),
    "a watermark": (
        lambda folder: edit(folder / "generation_config.json", watermarking_config={}),
        r"watermarking_config is {}; supported is none",
    ),
    "several outputs": (
        lambda folder: edit(folder / "generation_config.json", num_return_sequences=2),
        r"num_return_sequences is 2; supported is 1",
    ),
    "token healing": (
        lambda folder: edit(folder / "generation_config.json", token_healing=True),
        r"token_healing is True; supported is False",
    ),
    "an empty bias": (
        lambda folder: edit(folder / "generation_config.json", sequence_bias={}),
        r"sequence_bias is {}; supported is none",
    ),
    "a word beyond the vocabulary": (
        lambda folder: edit(folder / "generation_config.json", bad_words_ids=[[5], [198]]),
        r"bad_words_ids has 198, the model has 198 tokens",
    ),
    "settings of config.json": (
        forbid_repetition,
        r"config.json: encoder_no_repeat_ngram_size is 3; supported is 0",
    ),
    "weights elsewhere": (
        lambda folder: edit(folder / "config.json", transformers_weights="best.safetensors"),
        r"transformers_weights is 'best.safetensors'; remove it and name the weights model.safetensors",
    ),
    "another padding": (
        lambda folder: edit(folder / "config.json", pad_token_id=3),
        r"config.json: pad_token_id is 3, the tokenizer's is 197",
    ),
    "another tokenizer": (
        lambda folder: edit(folder / "tokenizer_config.json", tokenizer_class="SMALL100Tokenizer"),
        r"tokenizer_config.json: tokenizer_class is 'SMALL100Tokenizer'; supported is MarianTokenizer",
    ),
    "another tokenizer in config.json": (
        lambda folder: edit(folder / "config.json", tokenizer_class="NllbTokenizer"),
        r"tokenizer: config.json: tokenizer_class is 'NllbTokenizer'",
    ),
    "a tokenizer of its own": (
        lambda folder: edit(folder / "tokenizer_config.json", auto_map={"AutoTokenizer": ["own.Own", None]}),
        r"auto_map names a tokenizer of its own code, which is not run",
    ),
    "other ids": (lambda folder: edit(folder / "generation_config.json", eos_token_id=7), r"eos_token_id is 7"),
    "config is no object": (make_no_object, r"expected an object"),
}


@pytest.mark.parametrize(("damage", "told"), DAMAGES.values(), ids=DAMAGES)
def test_damages_get_a_clear_error(folder: Path, damage: Damage, told: str) -> None:
    import_checkpoint(folder)
    damage(folder)
    assert re.search(told, problems_of(folder))
    assert not (folder / "pwned").exists()


def test_the_command_line_exits_with_2_and_leaves_nothing(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spoil(folder)
    output = folder.parent / "bundle"
    with pytest.raises(SystemExit) as exit_:
        main(["convert", str(folder), "--output", str(output)])
    assert exit_.value.code == EXIT_BAD_CHECKPOINT
    assert "holds NaN" in capsys.readouterr().err
    assert [entry.name for entry in folder.parent.iterdir()] == ["checkpoint"]


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
    for name, value in expected.model.state_dict().items():
        assert torch.equal(value, sharded.model.state_dict()[name])
    torch.save(weights, folder / "pytorch_model.bin", _use_new_zipfile_serialization=False)  # as before torch 1.6
    old = import_checkpoint(folder)
    assert torch.equal(old.model.projection.weight, expected.model.projection.weight)


def test_targets_of_a_multilingual_model(tmp_path: Path) -> None:
    folder = checkpoints.marian(tmp_path / "opus-mt-en-mul", languages=("deu", "fra"))
    vocabulary = json.loads((folder / "vocab.json").read_text(encoding="utf-8"))
    pairs = import_checkpoint(folder).languages
    assert {pair.target_language_code: pair.source_prefix_ids for pair in pairs} == {
        code: (vocabulary[f">>{code}<<"],) for code in ("deu", "fra")
    }
