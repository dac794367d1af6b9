"""Every benchmark, run once at its smallest size in a process of its own: it measures, prints and stores something.

The figures of such a run mean nothing. It writes into a temporary folder, not over what was measured.
"""

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.patience import patient
from tests.servers import REPOSITORY

SENTENCES = "checkpoints/en-de/sentences.tsv"
RUNS = (
    f"load {SENTENCES} --count 4 --callers 2",
    f"bulk --texts {SENTENCES} --rows 100 --way one --kills 0",
    f"bulk_overhead --texts {SENTENCES} --rows 100 --rounds 1 --threads 1",
    "offline --model en-de --seconds 0.1 --batch 8",
    "serving --model en-de --seconds 0.3 --rounds 1",
    "overload --model en-de --seconds 1 --rounds 1 --no-control",
    "autoscaling --window 5s --scenario 'one model'",
    "inside",
    "scale --model en-de --rounds 1",
    "limit --model en-de --rounds 1",
    "kernel_rates --rounds 1",
    "call_costs --seconds 6 --callers 4",
    "cli_file --lines 100",
    "streams --count 4",
    f"invariance {SENTENCES} --count 4",
    f"load {SENTENCES} --face http --callers 2",
    "int8_quality",
    "real_sizes --only en-de",
)


@pytest.mark.full
@pytest.mark.parametrize("line", RUNS)
@pytest.mark.timeout(patient(600))
def test_it_measures_something(line: str, tmp_path: Path) -> None:
    for name in ("checkpoints", "models", "deploy", "build/float32"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).symlink_to(REPOSITORY / name)
    name, *arguments = shlex.split(line)
    command = [sys.executable, "-m", f"benchmarks.{name}", *arguments]
    environment = {**os.environ, "PYTHONPATH": f"{REPOSITORY}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"}
    subprocess.run(command, cwd=tmp_path, env=environment, check=True, timeout=patient(500))
    written = list((tmp_path / "build" / "bench").glob("*.json"))
    assert written
    assert all(json.loads(path.read_text(encoding="utf-8")) for path in written)
