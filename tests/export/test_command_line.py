"""The exporter's command line starts quickly, and says how to install what is missing."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from export.cli import main
from service.bundle.manifest import Manifest
from tests.export.huggingface.checkpoints import FEW_LAYERS, marian
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
        ("torch", "cpu,export", ("doctor", "FOLDER")),
        ("onnx", "cpu,export", ("convert", "FOLDER", "--output", "OUT")),
        ("safetensors", "cpu,export", ("convert", "FOLDER", "--output", "OUT")),
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


def test_without_transformers_a_checkpoint_is_converted_and_not_compared_with_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    folder = marian(tmp_path / "opus-mt-tiny", **FEW_LAYERS)
    monkeypatch.setitem(sys.modules, "transformers", None)
    result = CliRunner().invoke(main, ["convert", str(folder), "--output", str(tmp_path / "out")])
    assert result.exit_code == 0, result.output
    assert "not compared with transformers, which is not installed; pip install" in result.stderr
    verification = Manifest.load(tmp_path / "out").verification
    assert "fidelity" not in verification
    assert verification["num_positions"] > 0


def test_a_missing_package_of_others_is_not_ours_to_explain(checkpoint: Path) -> None:
    ended = run("import sys; sys.modules['json'] = None; from export.cli import main; main(sys.argv[1:])", "--help")
    assert ended.returncode == 1
    assert "ModuleNotFoundError" in ended.stderr
