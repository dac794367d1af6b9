"""`ray_translate` on a real Ray of two CPUs. It is installed where someone asks for it: pip install -e .[cpu,ray]."""

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.patience import patient
from tests.servers import REPOSITORY, distinct_texts, environment

pytest.importorskip("ray.data")
pytestmark = [pytest.mark.full, pytest.mark.timeout(600)]  # each job starts a dozen processes

NUM_ROWS = 4000


@pytest.fixture
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("r") / "in"  # short, for Ray's sockets are below it
    folder.mkdir()
    texts = distinct_texts(NUM_ROWS)
    for file in range(4):
        ids = range(file, NUM_ROWS, 4)
        pq.write_table(pa.table({"id": list(ids), "text": [texts[each] for each in ids]}), folder / f"{file}.parquet")
    return folder


def job(tables: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [
        sys.executable,
        "-m",
        "benchmarks.ray_job",
        str(tables),
        str(tables.parent / "out"),
        "--folder",
        str(tables.parent),
        *options,
    ]
    command += ["--models", str(REPOSITORY / "models" / "en-de" / "1")]
    return subprocess.run(
        command, capture_output=True, text=True, cwd=REPOSITORY, env=environment(), timeout=patient(240), check=False
    )


def test_a_job_resumes_on_two_cpus_where_it_was(tables: Path) -> None:
    answer = job(tables, "--rows-per-block", "1000")
    assert answer.returncode == 0, answer.stderr
    checkpoint = sorted((tables.parent / "checkpoint").iterdir())
    (written,) = {len(checkpoint), len(list((tables.parent / "out").iterdir()))}
    assert written >= 4, "one block: one actor would do all, and a crash would lose all"
    lost = pq.read_table(checkpoint[0])["id"].to_pylist()
    checkpoint[0].unlink()  # as if the job had been killed before it
    answer = job(tables, "--rows-per-block", "1000")
    assert answer.returncode == 0, answer.stderr
    ids = pa.concat_tables(map(pq.read_table, (tables.parent / "out").iterdir()))["id"].to_pylist()
    assert sorted(ids) == sorted([*range(NUM_ROWS), *lost])


def test_a_checkpoint_with_one_cpu_is_refused_rather_than_hangs(tables: Path) -> None:
    answer = job(tables, "--cpus", "1")
    assert answer.returncode == 1
    assert "with fewer than 2, a job with a checkpoint hangs" in answer.stderr


def test_actors_that_no_node_can_hold_are_an_error(tables: Path) -> None:
    answer = job(tables, "--resource", "translator", "--start-seconds", "10")
    assert answer.returncode == 1
    assert "Timed out while starting actors" in answer.stderr
