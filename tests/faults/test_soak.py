"""A short soak with a tiny model: it finds nothing wrong with our server, but finds the injected leak."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any, NamedTuple

import pytest

from tests.patience import patient
from tests.servers import REPOSITORY, distinct_texts, environment
from tests.tiny_bundle import write_tiny_bundle

SECONDS = 8.0
PLANTS = {"clean": (), "leaking": ("--plant", "leak")}
# Five processes and two reference servers for each: long on a machine that does other things too.
pytestmark = pytest.mark.timeout(300)


class Soaked(NamedTuple):
    exit_code: int
    said: str
    record: dict[str, Any]


@pytest.fixture(scope="module")
def soaked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Soaked]]:
    """Yield the outcomes of both soaks, which run side by side."""
    place = tmp_path_factory.mktemp("soak")
    for version in ("first", "second"):
        write_tiny_bundle(place / version / "tiny" / "1", seed=len(version))
    (place / "texts.tsv").write_text("".join(f"{text}\n" for text in distinct_texts(60)))
    command = [
        *(sys.executable, "-m", "tests.soak", "--minutes", str(SECONDS / 60), "--calls-per-kind", "1"),
        *("--models", str(place / "first"), "--second-models", str(place / "second")),
        *("--texts", str(place / "texts.tsv")),
    ]
    with ExitStack() as stack:
        running = {}
        for name, plant in PLANTS.items():
            output = ("--output", str(place / name / "soak.json"))
            running[name] = stack.enter_context(
                subprocess.Popen(
                    [*command, *output, *plant],
                    cwd=REPOSITORY,
                    env=environment(),
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    text=True,
                )
            )
            stack.callback(running[name].kill)
        soaked = {}
        for name, process in running.items():
            said, _ = process.communicate(timeout=patient(240))
            assert process.returncode in (0, 1), said
            record = json.loads((place / name / "soak.json").read_text())
            soaked[name] = Soaked(process.returncode, said, record)
        yield soaked


def test_a_server_under_mixed_traffic_stays_as_it_was(soaked: dict[str, Soaked], proved: Callable[..., None]) -> None:
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
