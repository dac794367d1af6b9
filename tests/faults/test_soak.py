"""A short soak with a tiny model: it finds nothing wrong with our server, but finds the injected leak."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.patience import patient
from tests.servers import REPOSITORY, environment
from tests.tiny_bundle import write_tiny_bundle

# Five processes, and two reference servers: long on a machine that does other things too.
pytestmark = pytest.mark.timeout(300)


class Soaked(NamedTuple):
    exit_code: int
    said: str
    record: dict[str, Any]


def soak(place: Path, seconds: float, *flags: str) -> Soaked:
    """Soak a server for so long, or until versions have come and gone and clients were killed."""
    for version in ("first", "second"):
        write_tiny_bundle(place / version / "tiny" / "1", seed=len(version))
    output = place / "soak.json"
    command = [
        *(sys.executable, "-m", "tests.soak", "--calls-per-kind", "1", "--most-rate", "15"),
        *("--models", str(place / "first"), "--second-models", str(place / "second")),
        *("--minutes", str(seconds / 60), "--output", str(output), *flags),
    ]
    streams: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    ended = subprocess.run(
        command, cwd=REPOSITORY, env=environment(), text=True, timeout=patient(140), check=False, **streams
    )
    assert ended.returncode in (0, 1), ended.stdout
    return Soaked(ended.returncode, ended.stdout, json.loads(output.read_text()))


def test_a_server_under_mixed_traffic_stays_as_it_was(tmp_path: Path) -> None:
    exit_code, said, record = soak(tmp_path, 6.0)
    numbers = record["numbers"]
    assert (exit_code, record["findings"]) == (0, []), said
    assert record["calls"] >= 20
    assert numbers["code_OK"] > 0
    assert numbers["reloads"] >= 2
    assert numbers["killed_clients"] >= 1


@pytest.mark.full
def test_a_leak_is_found(tmp_path: Path) -> None:
    exit_code, said, record = soak(tmp_path, 4.0, "--plant", "leak")
    (finding,) = (each for each in record["findings"] if each.startswith("memory grows by "))
    assert f"FOUND: {finding}" in said
    assert exit_code == 1
