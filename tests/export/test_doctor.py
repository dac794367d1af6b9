"""`doctor` says of any checkpoint what `convert` would do, and writes nothing."""

import shutil
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from export.cli import main
from service.bundle.manifest import Manifest
from tests.export.folders import edit
from tests.export.huggingface.checkpoints import FEW_LAYERS, marian, nllb


def ask(*given: Any) -> tuple[int, dict[str, list[str]]]:
    """Return the exit code and the lines by their headings."""
    result = CliRunner().invoke(main, ["doctor", *map(str, given)])
    assert result.stderr == ""
    found: dict[str, list[str]] = {}
    for line in result.stdout.splitlines():
        heading, _, text = line.partition(" ")
        found.setdefault(heading, []).append(text.strip())
    return result.exit_code, found


def test_a_checkpoint_is_described_with_what_it_becomes(tmp_path: Path) -> None:
    folder = marian(tmp_path / "opus-mt-en-xx", ("deu", "nld"), **FEW_LAYERS)
    (folder / "README.md").write_text("---\nlicense: cc-by-nc-4.0\n---\n")
    before = sorted(tmp_path.rglob("*"))
    code, found = ask(folder)
    assert code == 0
    assert sorted(tmp_path.rglob("*")) == before
    assert found["kind"] == ["marian"]
    assert found["model"][0].startswith("opus-mt-en-xx: Marian, 0.0 M parameters, 1+1 layers, d_model 32")
    assert found["languages"] == ["en-deu, en-nld"]
    assert found["tokenizer"] == ["marian: source.spm, vocab.json"]
    assert found["licence"] == ["cc-by-nc-4.0: not for commercial use"]
    assert found["weights"][0].endswith(" MB in float32")
    assert found["int8"][0].startswith("a bundle of about ")
    assert found["converts"] == [
        f"with: python -m export convert {folder} --precision int8 --output models/opus-mt-en-xx/1"
    ]


def test_its_sizes_are_those_of_the_bundle(checkpoint: Path, exported: tuple[Path, Manifest]) -> None:
    """Of a large model: this one's graphs and tokenizer are larger than its weights."""
    num_weights = exported[1].architecture["num_parameters"]
    _, found = ask(checkpoint)
    assert found["float32"] == [
        f"a bundle of about {num_weights * 4.1 / 1e6:.1f} MB; the conversion takes about 0.4 GB of memory"
    ]


def test_what_is_missing_or_refused_has_a_line_each(tmp_path: Path) -> None:
    folder = nllb(tmp_path / "nllb", encoder_layers=1)
    (folder / "model.safetensors").unlink()
    edit(folder / "generation_config.json", penalty_alpha=0.6)
    code, found = ask(folder)
    assert code == 1
    refused = found["refused"]
    assert [each.partition(" ")[0] for each in refused] == ["weights:", "generation_config.json:"]
    assert found["licence"] == ["unknown"]
    assert "folder" in found
    code, found = ask(folder, "--set", "penalty_alpha=0")
    assert (code, [each.partition(" ")[0] for each in found["refused"]]) == (1, ["weights:"])


def test_options_count_as_in_a_conversion(tmp_path: Path) -> None:
    folder = nllb(tmp_path / "nllb", encoder_layers=1)
    code, found = ask(folder)
    assert (code, "each into each other" in found["languages"][0]) == (0, True)
    assert found["licence"][0].startswith("unknown; Meta's NLLB-200 weights are CC-BY-NC-4.0")
    code, found = ask(folder, "--source-language", "en", "--target-language", "de")
    assert (code, found["languages"]) == (0, ["eng_Latn-deu_Latn"])
    assert found["converts"][0].endswith(", and the options given here")


@pytest.mark.parametrize(("given", "reason"), [("none", "no such file"), ("file.gguf", "a file of llama.cpp")])
def test_what_is_no_folder_is_told(given: str, reason: str, tmp_path: Path) -> None:
    (tmp_path / "file.gguf").write_bytes(b"GGUF\x03")
    code, found = ask(tmp_path / given)
    assert code == 1
    assert found.keys() == {"refused"}
    assert reason in found["refused"][0]


def test_a_bundle_is_one_already(exported: tuple[Path, Manifest], tmp_path: Path) -> None:
    code, found = ask(shutil.copytree(exported[0], tmp_path / "1"))
    assert code == 1
    assert found["refused"][0].startswith("it is a bundle of Dragoman (manifest.json, encoder.onnx): it is already")
