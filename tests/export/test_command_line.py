"""The exporter's command line starts quickly, and says how to install what is missing."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from click.testing import CliRunner
from safetensors.torch import load_file

from export.cli import main
from service.bundle.manifest import MANIFEST_NAME, Manifest
from service.engine.runtime.kernels import PATH
from tests.export.extras import EXPORT, run_with_only
from tests.export.huggingface.checkpoints import FEW_LAYERS, marian
from tests.export.importers.ctranslate2.variants import write_folder
from tests.export.importers.marian_files.folders import student
from tests.export.tiny_checkpoint import write_tiny_checkpoint
from tests.patience import patient

SLOW = ("torch", "numpy", "onnx", "onnxruntime", "sentencepiece", "safetensors", "transformers", "huggingface_hub")


def run(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=patient(60))


@pytest.mark.parametrize("command", ["", "convert", "doctor", "inspect", "shortlist", "train", "score"])
def test_help_imports_nothing_that_is_slow(command: str) -> None:
    """These take 2 s of CPU, and --help 0.06 s."""
    code = (
        "import json, sys; from export.cli import main; main(sys.argv[1:], standalone_mode=False); "
        "print(json.dumps([*sys.modules]))"
    )
    ended = run(code, *filter(None, [command]), "--help")
    assert ended.returncode == 0, ended.stderr
    loaded = json.loads(ended.stdout.splitlines()[-1])
    assert "click" in loaded
    assert set(loaded).isdisjoint(SLOW)


@pytest.mark.parametrize(
    ("package", "extras", "arguments"),
    [
        ("torch", "cpu,export", ("convert", "FOLDER", "--output", "OUT")),
        ("onnx", "cpu,convert", ("convert", "FOLDER", "--output", "OUT")),
        ("safetensors", "cpu,convert", ("convert", "FOLDER", "--output", "OUT")),
        ("sentencepiece", "cpu", ("convert", "FOLDER", "--output", "OUT")),
        ("onnxruntime", "cpu", ("convert", "FOLDER", "--output", "OUT")),
        (
            "matplotlib",
            "cpu,export",
            ("train", "FOLDER/config.json", "--data", "FOLDER/config.json", "--output", "OUT"),
        ),
    ],
)
def test_a_missing_package_is_a_line_that_installs_it(
    package: str, extras: str, arguments: tuple[str, ...], checkpoint: Path, tmp_path: Path
) -> None:
    places = {"FOLDER": str(checkpoint), "OUT": str(tmp_path / "out")}
    for name, path in places.items():
        arguments = tuple(each.replace(name, path) for each in arguments)
    code = f"import sys; sys.modules[{package!r}] = None; from export.cli import main; main(sys.argv[1:])"
    ended = run(code, *arguments)
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr == (
        f"export: {package} is not installed, which this command needs; "
        f"pip install ./client '.[{extras}]' in a checkout of Dragoman.\n"
    )
    assert not (tmp_path / "out").exists()


def _marian_pickle(directory: Path) -> Path:
    folder = marian(directory, **FEW_LAYERS)
    torch.save(load_file(folder / "model.safetensors"), folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()
    return folder


FOLDERS: dict[str, Callable[[Path], Path]] = {
    "native": write_tiny_checkpoint,
    "transformers": lambda path: marian(path, **FEW_LAYERS),
    "student": student,
    "ctranslate2": lambda path: write_folder(path, "pre"),
}


@pytest.mark.parametrize("kind", FOLDERS)
def test_int8_needs_only_the_extra_convert(kind: str, tmp_path: Path) -> None:
    folder = FOLDERS[kind](tmp_path / "checkpoint")
    languages = ("--source-language", "en", "--target-language", "de") if kind == "ctranslate2" else ()
    arguments = ("convert", folder, "--precision", "int8", "-o", tmp_path / "out", *languages)
    ended = run_with_only("cpu,convert", EXPORT, arguments)
    assert ended.returncode == 0, ended.stderr
    assert Manifest.load(tmp_path / "out").verification["int8"]["num_positions"] > 0
    missing = "not compared with the original, as torch is not installed; pip install"
    assert (missing in ended.stderr) == (kind == "transformers")


def test_a_pickle_needs_torch(tmp_path: Path) -> None:
    folder = _marian_pickle(tmp_path / "checkpoint")
    arguments = ("convert", folder, "--precision", "int8", "-o", tmp_path / "out")
    ended = run_with_only("cpu,convert", EXPORT, arguments)
    assert ended.returncode == 1
    assert ended.stderr.startswith("export: torch is not installed, which this command needs; pip install")


def test_without_transformers_the_same_bundle_is_written_and_not_compared_with_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    folder = marian(tmp_path / "checkpoint", **FEW_LAYERS)
    said = []
    for out in ("with", "without"):
        given = ["convert", str(folder), "--output", str(tmp_path / out), "--precision", "int8"]
        result = CliRunner().invoke(main, given)
        assert result.exit_code == 0, result.output
        said.append("not compared with the original, as transformers is not installed; pip install" in result.stderr)
        monkeypatch.setitem(sys.modules, "transformers", None)
    assert said == [False, True]
    for name in Manifest.load(tmp_path / "with").checksums:
        assert (tmp_path / "without" / name).read_bytes() == (tmp_path / "with" / name).read_bytes(), name
    expected, given = (json.loads((tmp_path / out / MANIFEST_NAME).read_text("utf-8")) for out in ("with", "without"))
    assert expected["verification"].pop("fidelity")["num_sentences"] > 16
    assert given == expected
    assert given["verification"]["int8"]["num_positions"] > 0


def test_a_missing_package_of_others_is_not_ours_to_explain(checkpoint: Path) -> None:
    ended = run("import sys; sys.modules['json'] = None; from export.cli import main; main(sys.argv[1:])", "--help")
    assert ended.returncode == 1
    assert "ModuleNotFoundError" in ended.stderr


@pytest.mark.parametrize("precision", ["float32", "int8"])
def test_without_the_kernels_library_nothing_is_begun(
    precision: str, checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(PATH, str(tmp_path / "none.so"))
    out = tmp_path / "out"
    result = CliRunner().invoke(main, ["convert", str(checkpoint), "--precision", precision, "--output", str(out)])
    assert result.exit_code == 2
    assert result.stderr == f"export: {tmp_path}/none.so is missing; build it with 'make serve'\n"
    assert not out.exists()


def test_a_shortlist_needs_the_kernels_library(
    exported: tuple[Path, Manifest], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(PATH, str(tmp_path / "none.so"))
    texts = tmp_path / "texts"
    texts.write_text("Where is the train station?\n", encoding="utf-8")
    given = ["shortlist", str(exported[0]), "--texts", str(texts), "--output", str(tmp_path / "out")]
    result = CliRunner().invoke(main, given)
    assert result.exit_code == 2
    assert result.stderr.endswith("none.so is missing; build it with 'make serve'\n")
    assert len(result.stderr.splitlines()) == 1
