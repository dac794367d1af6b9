"""`inspect` describes a bundle and reports whether it is intact."""

import json
import shutil
from pathlib import Path

import pytest

from export.cli import EXIT_BAD_CHECKPOINT, EXIT_FAILED, main
from service.bundle.manifest import Manifest
from tests.servers import REPOSITORY


def run(*arguments: str) -> int:
    with pytest.raises(SystemExit) as left:
        main(["inspect", *arguments])
    return int(left.value.code or 0)


def test_it_names_everything(exported: tuple[Path, Manifest], capsys: pytest.CaptureFixture[str]) -> None:
    directory, manifest = exported
    assert run(str(directory)) == 0
    output = capsys.readouterr().out
    for part in (
        "tiny: float32, licence unknown",
        "2+2 layers, d_model 32, d_ff 50/51, 4 heads, pre-norm, relu",
        "languages     en-de",
        "limits        64 source and 48 output tokens",
        "encoder.onnx",
        manifest.checksums["encoder.onnx"][:16],
        f"{len(manifest.golden)} golden sentences",
        "all files match their checksums",
    ):
        assert part in output


def test_json_holds_the_same(exported: tuple[Path, Manifest], capsys: pytest.CaptureFixture[str]) -> None:
    directory, manifest = exported
    assert run(str(directory), "--json") == 0
    document = json.loads(capsys.readouterr().out)
    assert document["files"]["encoder.onnx"]["sha256"] == manifest.checksums["encoder.onnx"]
    assert document["verification"] == manifest.verification
    assert document["faults"] == []


def test_a_damaged_bundle_is_told_by_the_exit_code(
    exported: tuple[Path, Manifest], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copy = shutil.copytree(exported[0], tmp_path / "bundle")
    (copy / "encoder.onnx").unlink()
    (copy / "tokenizer.model").write_bytes(b"other")
    assert run(str(copy)) == EXIT_FAILED
    output = capsys.readouterr().out
    assert "encoder.onnx is missing; tokenizer.model does not match its checksum" in output
    assert run(str(tmp_path)) == EXIT_BAD_CHECKPOINT
    assert "holds no manifest.json" in capsys.readouterr().err


def test_int8_is_described_by_how_near_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    main(["inspect", str(REPOSITORY / "models" / "en-de" / "1")], standalone_mode=False)
    said = capsys.readouterr().out
    assert "verified      int8 against float on 32 sentences: the same next token at 9" in said
    assert "weights.bin" in said
