"""A short soak with a tiny model: it finds nothing wrong with our server, but finds the injected leak."""

import json
import subprocess
import sys
from typing import Any, NamedTuple

import pytest

from tests.faults.proofs import Proved
from tests.patience import patient
from tests.servers import REPOSITORY, environment
from tests.tiny_bundle import write_tiny_bundle

# A leak is found at once; without one, versions have to come and go, and clients to be killed, however long that takes.
RUNS: dict[str, tuple[float, tuple[str, ...]]] = {"clean": (6.0, ()), "leaking": (4.0, ("--plant", "leak"))}
# Five processes for each, and two reference servers: long on a machine that does other things too.
pytestmark = pytest.mark.timeout(300)


class Soaked(NamedTuple):
    exit_code: int
    said: str
    record: dict[str, Any]


@pytest.fixture(scope="module")
def soaked(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Soaked]:
    """Return the outcomes of both soaks; the second one knows the answers from the first."""
    place = tmp_path_factory.mktemp("soak")
    for version in ("first", "second"):
        write_tiny_bundle(place / version / "tiny" / "1", seed=len(version))
    command = [
        *(sys.executable, "-m", "tests.soak", "--calls-per-kind", "1", "--most-rate", "15"),
        *("--answers", str(place / "answers.json")),
        *("--models", str(place / "first"), "--second-models", str(place / "second")),
    ]
    soaked = {}
    for name, (seconds, plant) in RUNS.items():
        output = place / name / "soak.json"
        ended = subprocess.run(
            [*command, "--minutes", str(seconds / 60), "--output", str(output), *plant],
            cwd=REPOSITORY,
            env=environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=patient(140),
        )
        assert ended.returncode in (0, 1), ended.stdout
        soaked[name] = Soaked(ended.returncode, ended.stdout, json.loads(output.read_text()))
    return soaked


def test_a_server_under_mixed_traffic_stays_as_it_was(soaked: dict[str, Soaked], proved: Proved) -> None:
    exit_code, said, record = soaked["clean"]
    numbers = record["numbers"]
    proved("soak", record["cases"], record["failures"], **numbers)
    assert (exit_code, record["findings"]) == (0, []), said
    assert record["cases"] >= 20
    assert numbers["code_OK"] > 0
    assert numbers["reloads"] >= 2
    assert numbers["killed_clients"] >= 1


def test_a_leak_is_found(soaked: dict[str, Soaked]) -> None:
    exit_code, said, record = soaked["leaking"]
    (finding,) = (each for each in record["findings"] if each.startswith("memory grows by "))
    assert f"FOUND: {finding}" in said
    assert exit_code == 1
    assert record["failures"] > 0
