"""Whether `make serve` may serve the committed bundle as it is."""

import shutil
import subprocess
import sys
from pathlib import Path

from service.bundle.freshness import staleness
from service.bundle.manifest import Manifest
from tests.servers import REPOSITORY


def test_the_shipped_bundle_is_that_of_the_shipped_checkpoint() -> None:
    assert staleness(REPOSITORY / "models/en-de/1", REPOSITORY / "checkpoints/en-de/model.safetensors") is None


def test_other_weights_damage_and_absence_are_told(tiny_bundle: Path, tmp_path: Path) -> None:
    weights = tmp_path / "model.safetensors"
    weights.write_bytes(b"other weights")
    assert "was made from other weights" in (staleness(tiny_bundle, weights) or "")
    assert "holds no manifest.json" in (staleness(tmp_path, weights) or "")
    copy = Path(shutil.copytree(tiny_bundle, tmp_path / "copy"))
    (copy / Manifest.load(copy).graphs.encoder).write_bytes(b"")
    assert "is damaged" in (staleness(copy, weights) or "")


def test_without_a_checkpoint_the_bundle_is_all_there_is(tiny_bundle: Path, tmp_path: Path) -> None:
    assert staleness(tiny_bundle, tmp_path / "missing.safetensors") is None


def test_make_reads_the_exit_code(tiny_bundle: Path, tmp_path: Path) -> None:
    weights = tmp_path / "model.safetensors"
    weights.write_bytes(b"other weights")
    command = [sys.executable, "-m", "service.bundle.freshness", str(tiny_bundle), str(weights)]
    stale = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, cwd=REPOSITORY)
    assert stale.returncode == 1
    assert "other weights" in stale.stderr
    weights.unlink()
    assert subprocess.run(command, timeout=60, check=False, cwd=REPOSITORY).returncode == 0
