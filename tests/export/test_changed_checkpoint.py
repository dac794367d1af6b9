"""`--set` and `--base`: settings of `generate` that are replaced, and adapters that are merged, for any family."""

import json
import math
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from click.testing import CliRunner
from safetensors.torch import load_file, save_file
from torch import Tensor

from export.changed_checkpoint import Changes, changed
from export.cli import main
from export.importers.imported import CheckpointError
from export.importers.selection import import_checkpoint
from service.bundle.manifest import Manifest
from tests.export.folders import edit
from tests.export.huggingface.checkpoints import FEW_LAYERS, marian

QUERY, INNER = "model.encoder.layers.0.self_attn.q_proj", "model.decoder.layers.0.fc1"


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return marian(tmp_path_factory.mktemp("good") / "opus-mt-tiny", **FEW_LAYERS)


@pytest.fixture
def folder(good: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(good, tmp_path / "opus-mt-tiny"))


def convert(*given: Any) -> tuple[int, str]:
    result = CliRunner().invoke(main, ["convert", *map(str, given)])
    return result.exit_code, result.stderr


def refusal(source: Path, changes: Changes) -> str:
    with pytest.raises(CheckpointError) as raised, changed(source, changes):
        pass
    assert str(raised.value).startswith(f"{source} can't be converted: ")
    return str(raised.value)


def test_a_refused_setting_is_replaced_and_an_adapter_merged_for_the_bundle_and_its_reference(
    folder: Path, tmp_path: Path
) -> None:
    """All weights are halves."""
    weights = {name: value.half() for name, value in load_file(folder / "model.safetensors").items()}
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    adapter = write_adapter(tmp_path / "tuned", {k: v.half() for k, v in matrices(QUERY, (32, 32)).items()})
    edit(folder / "generation_config.json", encoder_no_repeat_ngram_size=3, no_repeat_ngram_size=2)
    before = (folder / "generation_config.json").read_bytes()
    given = (adapter, "--base", folder, "--output", tmp_path / "out", "--precision", "int8")
    code, errors = convert(*given)
    assert code == 2
    assert "encoder_no_repeat_ngram_size is 3" in errors
    said = ("--set", "encoder_no_repeat_ngram_size=0", "--set", "no_repeat_ngram_size=4", "--set", "num_beams=2")
    code, errors = convert(*given, *said)
    assert code == 0, errors
    manifest = Manifest.load(tmp_path / "out")
    assert manifest.name == "tuned"
    assert manifest.generation.beam_size == 2
    assert manifest.generation.options == {"no_repeat_ngram_size": 4}
    assert manifest.verification["fidelity"]["num_sentences"] > 16
    settings = {"encoder_no_repeat_ngram_size": 0, "no_repeat_ngram_size": 4, "num_beams": 2}
    assert manifest.architecture["changes"] == {"adapter": "tuned", "settings": settings}
    assert (
        f'changed       "adapter": "tuned", "settings": {json.dumps(settings)}'
        in CliRunner().invoke(main, ["inspect", str(tmp_path / "out")]).output
    )
    assert (folder / "generation_config.json").read_bytes() == before
    with changed(folder, Changes(settings)) as (made, _):
        assert import_checkpoint(made).checkpoint_sha256 != manifest.checkpoint_sha256


@pytest.mark.parametrize("name", ["generation_config.json", "config.json"])
def test_null_removes_a_setting_where_it_stands(folder: Path, name: str) -> None:
    """Without generation_config.json, the settings of config.json count."""
    if name == "config.json":
        (folder / "generation_config.json").rename(folder / "other.json")
        edit(folder / name, **json.loads((folder / "other.json").read_text(encoding="utf-8")))
    edit(folder / name, penalty_alpha=0.6, num_beams=4)
    with pytest.raises(CheckpointError, match=r"penalty_alpha is 0\.6"):
        import_checkpoint(folder)
    with changed(folder, Changes({"penalty_alpha": None, "num_beams": 3})) as (made, done):
        assert made.name == folder.name
        assert import_checkpoint(made).generation.beam_size == 3
        assert done == {"settings": {"penalty_alpha": None, "num_beams": 3}}
    assert not made.exists()


def test_nothing_to_change_is_the_folder_itself(folder: Path) -> None:
    with changed(folder, Changes()) as (made, done):
        assert (made, done) == (folder, {})


def test_problems_of_a_changed_folder_are_those_of_the_given_one(folder: Path) -> None:
    with (
        pytest.raises(CheckpointError, match=rf"^{folder} can't be converted: .*num_beams is 99"),
        changed(folder, Changes({"num_beams": 99})) as (made, _),
    ):
        import_checkpoint(made)


def test_settings_are_refused_by_name(folder: Path, checkpoint: Path) -> None:
    assert "--set num_beam; did you mean num_beams" in refusal(folder, Changes({"num_beam": 4}))
    assert "--set xyz, which transformers does not know" in refusal(folder, Changes({"xyz": 1, "zzz": 1}))
    assert "--set changes the generation settings of" in refusal(checkpoint, Changes({"num_beams": 4}))
    for text in ("num_beams", "=4", "num_beams=four", "num_beams="):
        code, errors = convert(folder, "--output", folder.parent / "out", "--set", text)
        assert code == 2
        assert f"'{text}' is not NAME=VALUE with a value in JSON" in errors


def test_a_bundle_is_kept_without_force(folder: Path, tmp_path: Path) -> None:
    assert convert(folder, "--output", tmp_path / "out", "--precision", "int8")[0] == 0
    before = (tmp_path / "out" / "manifest.json").read_bytes()
    code, errors = convert(folder, "--output", tmp_path / "out", "--precision", "int8", "--name", "other")
    assert (code, errors) == (2, f"export: {tmp_path / 'out'} already is a bundle; add --force to replace it.\n")
    assert (tmp_path / "out" / "manifest.json").read_bytes() == before
    assert convert(folder, "--output", tmp_path / "out", "--precision", "int8", "--name", "other", "--force")[0] == 0
    assert Manifest.load(tmp_path / "out").name == "other"


def write_adapter(folder: Path, weights: Mapping[str, Tensor], **settings: Any) -> Path:
    folder.mkdir(exist_ok=True)
    config = {"peft_type": "LORA", "r": 3, "lora_alpha": 6, "bias": "none", "use_dora": False, "lora_dropout": 0.1}
    (folder / "adapter_config.json").write_text(json.dumps(config | settings), encoding="utf-8")
    named = {f"base_model.model.{name}": value for name, value in weights.items()}
    save_file(named, folder / "adapter_model.safetensors")
    return folder


def matrices(module: str, shape: tuple[int, int], rank: int = 3) -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(rank)
    down, up = (torch.randn(size, generator=generator) for size in ((rank, shape[1]), (shape[0], rank)))
    return {f"{module}.lora_A.weight": down, f"{module}.lora_B.weight": up}


def merged_weights(source: Path, base: Path | None = None) -> dict[str, Tensor]:
    with changed(source, Changes(base=base)) as (made, done):
        import_checkpoint(made)
        assert done == {"adapter": source.name}
        return dict(load_file(made / "model.safetensors"))


@pytest.mark.parametrize(
    ("settings", "scales"),
    [
        ({}, (2.0, 2.0)),
        ({"use_rslora": True}, (6 / math.sqrt(3), 6 / math.sqrt(3))),
        ({"alpha_pattern": {"fc1": 9, "k_proj": 1}}, (2.0, 3.0)),
        ({"alpha_pattern": {r"encoder\.layers\.\d+\.self_attn\.q_proj": 1.5}, "rank_pattern": {"fc1": 3}}, (0.5, 2.0)),
    ],
)
def test_products_are_added_to_the_weights(
    folder: Path, tmp_path: Path, settings: dict[str, Any], scales: tuple[float, float]
) -> None:
    """A layer with its adapter, computed as two branches, is the merged one."""
    before = load_file(folder / "model.safetensors")
    parts = {module: matrices(module, (64, 32) if module == INNER else (32, 32)) for module in (QUERY, INNER)}
    adapter = write_adapter(tmp_path / "tuned", parts[QUERY] | parts[INNER], **settings)
    after = merged_weights(adapter, folder)
    assert after.keys() == before.keys()
    inputs = torch.randn(5, 32, generator=torch.Generator().manual_seed(9))
    for module, scale in zip((QUERY, INNER), scales, strict=True):
        down, up = parts[module].values()
        expected = inputs @ before[f"{module}.weight"].T + scale * ((inputs @ down.T) @ up.T)
        torch.testing.assert_close(inputs @ after[f"{module}.weight"].T, expected, rtol=1e-4, atol=1e-4)
    others = before.keys() - {f"{QUERY}.weight", f"{INNER}.weight"}
    assert all(torch.equal(after[name], before[name]) for name in others)


def test_layers_that_are_stored_transposed_and_modules_saved_as_a_whole(folder: Path, tmp_path: Path) -> None:
    before = load_file(folder / "model.safetensors")
    norm = "model.decoder.layers.0.final_layer_norm"
    given = {**matrices(QUERY, (32, 32)), f"{norm}.weight": torch.full((32,), 0.5)}
    write_adapter(folder, given, fan_in_fan_out=True, modules_to_save=["final_layer_norm"])  # beside its base
    after = merged_weights(folder)
    down, up = given[f"{QUERY}.lora_A.weight"], given[f"{QUERY}.lora_B.weight"]
    torch.testing.assert_close(after[f"{QUERY}.weight"], before[f"{QUERY}.weight"] + 2 * (up @ down).T)
    assert torch.equal(after[f"{norm}.weight"], given[f"{norm}.weight"])


def test_a_base_model_in_shards_and_pickles_is_merged_into_one_file(folder: Path, tmp_path: Path) -> None:
    before = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    names = sorted(before)
    shards = {f"pytorch_model-0000{number}-of-00002.bin": names[number - 1 :: 2] for number in (1, 2)}
    for shard, own in shards.items():
        torch.save({name: before[name] for name in own}, folder / shard)
    index = {"weight_map": {name: shard for shard, own in shards.items() for name in own}}
    (folder / "pytorch_model.bin.index.json").write_text(json.dumps(index), encoding="utf-8")
    parts = matrices(QUERY, (32, 32))
    after = merged_weights(write_adapter(tmp_path / "tuned", parts), folder)
    down, up = parts.values()
    torch.testing.assert_close(after[f"{QUERY}.weight"], before[f"{QUERY}.weight"] + 2 * up @ down)
    assert after.keys() == before.keys()


@pytest.mark.parametrize(
    ("weights", "settings", "message"),
    [
        ({}, {"peft_type": "IA3"}, "peft_type is 'IA3'; only LORA can be merged"),
        ({}, {"use_dora": True}, "use_dora is True; only plain LoRA can be merged"),
        ({}, {"bias": "all"}, "bias is 'all'; supported: none"),
        ({}, {"init_lora_weights": "pissa"}, "init_lora_weights is 'pissa'; supported: True, False, gaussian"),
        ({}, {"layer_replication": [[0, 1]]}, "layer_replication is"),
        ({}, {"lora_alpha": "many"}, "lora_alpha or alpha_pattern is not numeric"),
        ({}, {"alpha_pattern": {"(": 1}}, "alpha_pattern '(': "),
        ({f"{QUERY}.lora_magnitude_vector": torch.ones(32)}, {}, f"{QUERY}.lora_magnitude_vector is not plain LoRA"),
        ({"model.shared.lora_embedding_A": torch.ones(3, 9)}, {}, "model.shared.lora_embedding_A is not plain LoRA"),
        (
            matrices("model.encoder.layers.7.fc1", (64, 32)),
            {},
            "the base model has no model.encoder.layers.7.fc1.w",
        ),
        (matrices(QUERY, (32, 31)), {}, f"the matrices of {QUERY} do not fit the base model's (32, 32)"),
        ({f"{QUERY}.lora_A.weight": torch.ones(3, 32)}, {}, f"{QUERY} lacks a matrix"),
        ({f"{QUERY}.bias": torch.ones(31)}, {}, f"{QUERY}.bias has shape (31,), the base model's (32,)"),
    ],
)
def test_what_is_no_plain_lora_is_refused_by_name(
    folder: Path, tmp_path: Path, weights: dict[str, Tensor], settings: dict[str, Any], message: str
) -> None:
    adapter = write_adapter(tmp_path / "tuned", weights, **settings)
    assert f"its adapter can't be merged: {message}" in refusal(adapter, Changes(base=folder))
    assert "is not a folder" in refusal(adapter, Changes(base=tmp_path / "none"))
