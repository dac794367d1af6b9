"""The soak in short, with a tiny model: it finds nothing wrong with our server, and the leak that was planted."""

import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.servers import REPOSITORY, distinct_texts, environment
from tests.tiny_bundle import write_tiny_bundle

SECONDS = 6.0


@pytest.fixture(scope="module")
def arguments(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    place = tmp_path_factory.mktemp("soak")
    for version in ("first", "second"):
        write_tiny_bundle(place / version / "tiny" / "1", seed=len(version))
    (place / "texts.tsv").write_text("".join(f"{text}\n" for text in distinct_texts(60)))
    return [
        *("--models", str(place / "first"), "--second-models", str(place / "second")),
        *("--texts", str(place / "texts.tsv"), "--calls-per-kind", "1", "--minutes", str(SECONDS / 60)),
    ]


def soak(arguments: Sequence[str], output: Path, *more: str) -> tuple[int, str, dict[str, Any]]:
    run = subprocess.run(
        [sys.executable, "-m", "tests.soak", *arguments, "--output", str(output), *more],
        cwd=REPOSITORY,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert run.returncode in (0, 1), run.stdout + run.stderr
    return run.returncode, run.stdout, json.loads(output.read_text())


def test_a_server_under_mixed_traffic_stays_as_it_was(
    arguments: list[str], tmp_path: Path, proved: Callable[..., None]
) -> None:
    code, said, record = soak(arguments, tmp_path / "clean.json")
    numbers = record["numbers"]
    proved("soak", record["cases"], record["failures"], **numbers)
    assert (code, record["findings"]) == (0, []), said
    assert record["cases"] > 50
    assert numbers["reloads"] >= 2
    assert numbers["killed_clients"] >= 1
    assert {"code_OK", "code_INVALID_ARGUMENT", "code_DEADLINE_EXCEEDED"} <= set(numbers)


def test_a_leak_is_found(arguments: list[str], tmp_path: Path) -> None:
    code, said, record = soak(arguments, tmp_path / "leaking.json", "--plant", "leak")
    (finding,) = record["findings"]
    assert finding.startswith("memory grows by ")
    assert f"FOUND: {finding}" in said
    assert (code, record["failures"]) == (1, 1)
