"""`benchmarks.bulk` finds what it looks for: rows that are missing, repeated or wrong, and processes that are left."""

import subprocess
import sys
from pathlib import Path

import click
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from benchmarks.bulk import _Tree, _Way
from tests.servers import eventually

LINES = ["one", "two", "three"]


def way(folder: Path, rows: list[tuple[int, str, str | None]]) -> _Way:
    """Return a way with this output: each row's number, text and error."""
    result = _Way("one", folder / "in", folder / "run", folder, sys.executable)
    output = folder / "run" / "out"
    output.mkdir()
    columns = {
        "id": [f"row-{number}" for number, _, _ in rows],
        "text": [text for _, text, _ in rows],
        "error": pa.array([error for _, _, error in rows], pa.string()),
    }
    pq.write_table(pa.table(columns), output / "0.parquet")
    return result


GOOD: list[tuple[int, str, str | None]] = [(0, "one", None), (2, "three", None), (1, "two", None)]


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        (GOOD, ""),
        (GOOD[:2], "2 different rows of 3, 2 in all"),
        ([*GOOD, GOOD[0]], "3 different rows of 3, 4 in all"),
        ([*GOOD[:2], GOOD[0]], "2 different rows of 3, 3 in all"),
        ([*GOOD[:2], (1, "three", None)], "texts of others"),
        ([*GOOD[:2], (1, "two", "failed")], "errors"),
    ],
)
def test_every_row_is_there_once(rows: list[tuple[int, str, str | None]], told: str, tmp_path: Path) -> None:
    checked = way(tmp_path, rows)
    if not told:
        checked.check(LINES)
        return
    with pytest.raises(click.ClickException, match=told):
        checked.check(LINES)


def test_a_tree_has_children_with_another_environment_and_session() -> None:
    """As some of Ray's are, which write their title over their environment."""
    child = "import subprocess; subprocess.Popen(['sleep', '60'], env={}, start_new_session=True)\nwhile True: pass"
    parent = subprocess.Popen([sys.executable, "-c", child], env={"BENCHMARKS_BULK": "a test"})
    tree = _Tree("a test")
    try:
        eventually(lambda: len(tree.look()) == 2 and tree.cpu_seconds() > 0, timeout_seconds=20)
    finally:
        tree.kill()
        parent.wait()
    assert tree.look() == []
