"""Folders of other tools are recognised with advice: one line, exit code 2, with any `--from`."""

import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from export.cli import main
from export.importers.registry import NAMES
from export.importers.selection import import_checkpoint
from export.importers.weight_files import SINGLE_NAMES

ADAPTER = {"peft_type": "LORA", "base_model_name_or_path": "facebook/nllb-200-distilled-600M"}
FOLDERS: dict[str, tuple[dict[str, str], str, str]] = {
    "fairseq, M2M100": (
        {"418M_last_checkpoint.pt": "PK", "model_dict.128k.txt": "", "data_dict.128k.txt": "", "spm.128k.model": ""},
        "it is a checkpoint of fairseq (418M_last_checkpoint.pt, data_dict.128k.txt)",
        "take the folder for transformers",
    ),
    "fairseq, a pair": (
        {"checkpoint_best.pt": "PK", "dict.en.txt": "the 9\n", "dict.de.txt": "der 9\n", "bpecodes": ""},
        "it is a checkpoint of fairseq (checkpoint_best.pt, dict.de.txt)",
        "take the folder for transformers",
    ),
    "LoRA": (
        {"adapter_config.json": json.dumps(ADAPTER), "adapter_model.safetensors": "", "tokenizer.json": ""},
        "it is a PEFT adapter (adapter_config.json) of 'facebook/nllb-200-distilled-600M'",
        "give its base model with --base",
    ),
    "LoRA that says nothing": (
        {"adapter_config.json": "[", "adapter_model.bin": "", "config.json": '{"model_type": "marian"}'},
        "it is a PEFT adapter (adapter_config.json): ",
        "give its base model with --base",
    ),
}


def refused(folder: Path, *said: str) -> str:
    result = CliRunner().invoke(main, ["convert", str(folder), "--output", str(folder.parent / "out"), *said])
    assert result.exit_code == 2, result.output
    (line,) = result.stderr.splitlines()
    return line


@pytest.mark.parametrize("kind", [None, *NAMES])
@pytest.mark.parametrize(("files", "what", "advice"), FOLDERS.values(), ids=FOLDERS)
def test_other_tools_are_named(files: dict[str, str], what: str, advice: str, kind: str | None, tmp_path: Path) -> None:
    folder = tmp_path / "checkpoint"
    folder.mkdir()
    for name, content in files.items():
        (folder / name).write_text(content)
    line = refused(folder, *(("--from", kind) if kind else ()))
    assert what in line
    assert advice in line
    assert "--from" not in line
    assert " is missing" not in line  # only one problem, which is sufficient


@pytest.mark.parametrize("name", ["adapter_config.json", "adapter_model.safetensors", "adapter_model.bin"])
def test_an_adapter_beside_its_base_is_not_left_out_silently(name: str, checkpoint: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(checkpoint, tmp_path / "checkpoint"))
    (folder / name).write_text(json.dumps(ADAPTER))
    line = refused(folder)
    if name == "adapter_config.json":
        assert "its adapter can't be merged: its weights, adapter_model.safetensors or adapter_model.bin, are" in line
        return
    assert f"it holds a PEFT adapter ({name}) beside a model, and adapter_config.json is needed to merge it" in line
    assert "remove the adapter's files" in line


OTHERS = {name: files for name, (files, _, _) in FOLDERS.items() if "adapter_config.json" not in files}


@pytest.mark.parametrize("files", OTHERS.values(), ids=OTHERS)
def test_a_folder_with_weights_that_we_read_is_taken(files: dict[str, str], checkpoint: Path, tmp_path: Path) -> None:
    """A positive control: other files beside them do not matter."""
    folder = Path(shutil.copytree(checkpoint, tmp_path / "checkpoint"))
    assert (folder / SINGLE_NAMES[0]).is_file()
    for name in files.keys() - {"config.json"}:
        (folder / name).write_text(files[name])
    import_checkpoint(folder)


def test_nothing_known(tmp_path: Path) -> None:
    (tmp_path / "weights.pt").write_text("")
    line = refused(tmp_path)
    assert "it holds no config.json to tell its kind from; a bare state dict is for --from notebook" in line
