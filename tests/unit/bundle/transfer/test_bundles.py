"""Copying bundles from a shared volume to a container's own disk; of damaged ones see `tests.faults`."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from service.bundle.checksums import check_intact
from service.bundle.errors import BundleError
from service.bundle.manifest import Manifest
from service.bundle.transfer.bundles import transfer
from tests.patience import patient
from tests.servers import REPOSITORY


def test_a_second_run_adds_what_is_missing_and_clears_what_was_half_done(tiny_models: Path, tmp_path: Path) -> None:
    source, destination = tmp_path / "source", tmp_path / "destination"
    shutil.copytree(tiny_models, source)
    transfer(source, destination)
    shutil.copytree(source / "tiny" / "1", source / "tiny" / "2")
    (destination / "tiny" / ".2.partial").mkdir()
    (destination / "tiny" / ".2.partial" / "encoder.onnx").write_bytes(b"half")
    (destination / "tiny" / "1" / "mark").touch()
    assert transfer(source, destination) == ["tiny/1", "tiny/2"]
    assert sorted(path.name for path in (destination / "tiny").iterdir()) == ["1", "2"]
    assert (destination / "tiny" / "1" / "mark").exists()
    check_intact(destination / "tiny" / "2", Manifest.load(destination / "tiny" / "2"))


def test_what_is_no_bundle_of_a_server_is_left_alone(tiny_models: Path, tmp_path: Path) -> None:
    """Another fetch may be under way in the source, and a store may list anything."""
    source = tmp_path / "source"
    shutil.copytree(tiny_models, source)
    for name in ("tiny/.2.partial", ".tiny/1", "tiny/two"):
        shutil.copytree(source / "tiny" / "1", source / name)
    assert transfer(source, tmp_path / "models") == ["tiny/1"]


def test_another_bundle_at_its_place_is_kept(tiny_versions: Path, tmp_path: Path) -> None:
    for number in ("1", "2"):
        shutil.copytree(tiny_versions / number, tmp_path / number / "tiny" / "1")
    transfer(tmp_path / "1", tmp_path / "models")
    before = sorted(tmp_path.joinpath("models").rglob("*"))
    with pytest.raises(BundleError, match=r"models/tiny/1 holds a different bundle"):
        transfer(tmp_path / "2", tmp_path / "models")
    assert sorted(tmp_path.joinpath("models").rglob("*")) == before
    check_intact(tmp_path / "models/tiny/1", Manifest.load(tmp_path / "1/tiny/1"))


def test_as_a_program(tiny_models: Path, tmp_path: Path) -> None:
    def run(source: Path) -> "subprocess.CompletedProcess[str]":
        command = [sys.executable, "-m", "service.bundle.transfer", str(source), str(tmp_path / "models")]
        return subprocess.run(command, capture_output=True, text=True, timeout=patient(60), cwd=REPOSITORY)

    assert run(tiny_models).stdout == f"{tmp_path}/models has tiny/1; all checksums match\n"
    empty = run(tmp_path / "nowhere")
    assert empty.returncode == 1
    assert empty.stderr.startswith(f"dragoman: {tmp_path}/nowhere holds no bundle")
    assert empty.stderr.count("\n") == 1
