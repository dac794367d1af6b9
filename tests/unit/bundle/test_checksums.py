"""Whether `make serve` may serve the committed bundle without exporting again."""

import shutil
import subprocess
import sys
from pathlib import Path

from service.bundle.checksums import stale, staleness
from service.bundle.manifest import Manifest
from tests.patience import patient
from tests.servers import REPOSITORY


def test_the_shipped_bundles_are_those_of_the_shipped_checkpoints() -> None:
    assert stale(REPOSITORY / "models", REPOSITORY / "checkpoints") == []


def test_other_weights_damage_and_absence_are_told(tiny_bundle: Path, tmp_path: Path) -> None:
    weights = tmp_path / "model.safetensors"
    weights.write_bytes(b"other weights")
    assert "was made from other weights" in (staleness(tiny_bundle, weights) or "")
    assert "holds no manifest.json" in (staleness(tmp_path, weights) or "")
    copy = Path(shutil.copytree(tiny_bundle, tmp_path / "copy"))
    (copy / Manifest.load(copy).graphs.encoder).write_bytes(b"")
    assert "is damaged" in (staleness(copy, weights) or "")


def test_make_reads_the_exit_code(tiny_bundle: Path, tmp_path: Path) -> None:
    """Each checkpoint needs its bundle; without checkpoints, existing bundles are enough."""
    models, checkpoints = tmp_path / "models", tmp_path / "checkpoints"
    command = [sys.executable, "-m", "service.bundle.checksums", str(models), str(checkpoints)]
    assert subprocess.run(command, timeout=patient(60), check=False, cwd=REPOSITORY).returncode == 0
    shutil.copytree(tiny_bundle, models / "a" / "1")
    for name in "ab":
        (checkpoints / name).mkdir(parents=True)
        (checkpoints / name / "model.safetensors").write_bytes(b"other weights")
    answer = subprocess.run(command, capture_output=True, text=True, timeout=patient(60), check=False, cwd=REPOSITORY)
    assert answer.returncode == 1
    assert "a/1 was made from other weights" in answer.stderr.splitlines()[0]
    assert "b/1 holds no manifest.json" in answer.stderr.splitlines()[1]
