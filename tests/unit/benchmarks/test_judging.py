"""Benchmarks find what they look for: missed goals and wrong rows."""

import sys
from pathlib import Path
from typing import Any

import click
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from benchmarks.bulk import _Way
from benchmarks.overload import judged

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


def point(load: float, **changed: float) -> dict[str, Any]:
    usual = {
        "goodput": 40.0,
        "goodput_per_cpu": 20.0,
        "accepted_p99_ms": 1000.0,
        "refused_p99_ms": 10.0,
        "memory_mib": 500.0,
        "other_statuses": 0,
    }
    return {"load": load, **usual, **changed}


def held(points: list[dict[str, Any]]) -> dict[str, bool]:
    return {goal: is_held for goal, (_, is_held) in judged(points).items()}


def test_a_server_that_stays_as_it_was_holds_all_goals() -> None:
    assert all(held([point(0.9), point(1.0), point(5.0)]).values())


@pytest.mark.parametrize(
    ("changed", "goal"),
    [
        ({"goodput": 27.0}, "goodput at 5x, of that at 1x"),
        ({"goodput_per_cpu": 13.0}, "the same, by the CPUs that callers left"),
        ({"accepted_p99_ms": 2001.0}, "p99 of accepted calls at 5x, of that at 0.9x"),
        ({"refused_p99_ms": 21.0}, "p99 of refusals at 5x, seconds"),
        ({"memory_mib": 700.0}, "memory at 5x, of that at 1x"),
        ({"other_statuses": 1}, "calls with another status"),
    ],
)
def test_each_goal_can_be_missed(changed: dict[str, float], goal: str) -> None:
    found = held([point(0.9), point(1.0), point(5.0, **changed)])
    assert [name for name, is_held in found.items() if not is_held] == [goal]


def test_rounds_are_compared_within_themselves() -> None:
    """A machine that is half as fast in one round changes nothing."""
    slow = [point(load, goodput=20.0, accepted_p99_ms=2000.0) for load in (0.9, 1.0, 5.0)]
    verdict = judged([point(0.9), point(1.0), point(5.0), *slow])
    assert verdict["goodput at 5x, of that at 1x"] == (1.0, True)
    assert verdict["p99 of accepted calls at 5x, of that at 0.9x"][0] == 1.0
