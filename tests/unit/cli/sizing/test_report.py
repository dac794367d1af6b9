"""What is said of a measurement: the notes on what spoils it, and both forms of the answer."""

import json
import math
from dataclasses import replace
from typing import Any

import pytest

from service.cli.sizing.advice import Memory, advise
from service.cli.sizing.measured_server import Reading
from service.cli.sizing.measurement import Measurement, Point
from service.cli.sizing.report import document, milliseconds, notes_on, report

POINT = Point(90.0, 0.02, 0.15, 0.0, 0.6, 0.9, 0.3, 0.02, True, 0.001, 500)
LAST = Reading(0.0, 0.0, 0.0, {}, {}, {}, {}, 160 * 2**20)
FOUND = Measurement(120.0, 100.0, 0.7, (POINT, replace(POINT, rate=110.0, p99_seconds=math.inf)), LAST)
ADVICE = advise(300.0, 100.0, 0.7, 1, Memory(160 * 2**20, [10 * 2**20], 0.0))


def notes(found: Measurement, *, are_shared: bool = False, has_sample: bool = True) -> list[str]:
    return list(notes_on(found, 0.2, 1, are_shared=are_shared, has_sample=has_sample))


def test_nothing_is_said_of_a_clean_measurement() -> None:
    assert notes(FOUND) == []


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"others_cpus": 0.5}, "other processes took up to 0.50"),
        ({"callers_cpus": 0.95}, "the callers were the limit"),
        ({"late_seconds": 0.1}, "sent up to 100 ms late"),
    ],
)
def test_what_spoils_the_figures_is_said(changes: dict[str, Any], told: str) -> None:
    (note,) = notes(replace(FOUND, points=(POINT, replace(POINT, **changes))))
    assert told in note


def test_shared_cpus_and_a_missing_sample_are_said() -> None:
    sample, shared = notes(FOUND, are_shared=True, has_sample=False)
    assert "--file" in sample
    assert "0.30 of them" in shared


def test_the_report_has_all_that_is_needed() -> None:
    text = report(300.0, 0.2, 3.0, FOUND, ADVICE)
    assert text.startswith("300 calls/s, 99 % of them within 200 ms:")
    for part in ("up to  100.0 calls/s", "0.90 CPUs, load 0.70", "5: 3 carry", "2 to 10, at a load of 0.45", "512 MiB"):
        assert part in text


def test_json_has_null_for_what_was_not_reached() -> None:
    found = json.loads(document(3.0, FOUND, ADVICE, ["a"]), parse_constant=pytest.fail)
    assert [point["p99_seconds"] for point in found["points"]] == [0.15, None]
    assert (found["pod_rate"], found["advice"]["pods"], found["notes"]) == (100.0, 5, ["a"])


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.2, "200 ms"), (1.5, "1500 ms"), (0.00123, "1.2 ms"), (math.inf, "not reached")]
)
def test_times(seconds: float, text: str) -> None:
    assert milliseconds(seconds) == text
