"""Judging what the autoscalers see."""

import pytest

from benchmarks.autoscaling import COLUMNS, TARGET, holds, table


@pytest.mark.parametrize(
    ("multiple", "answer", "is_right"),
    [
        (0.5, 0.43, True),
        (0.5, 0.42, False),
        (0.5, 0.57, True),
        (0.5, 0.58, False),
        (1.0, TARGET + 0.01, True),
        (2.0, 2.5, True),
        (2.0, TARGET, False),
    ],
)
def test_about_the_load_below_saturation_and_above_the_target_beyond(
    multiple: float, answer: float, is_right: bool
) -> None:
    assert holds(multiple, answer) is is_right


def test_a_row_for_each_load() -> None:
    point = {
        "load": 0.25,
        "rate": 100.4,
        "before": 400.0,
        "after": 403.2,
        "answer": 0.2512,
        "refused": 0.0,
        "behind": 0.0123,
        "verdict": "",
    }
    head, _, row = table([{"scenario": "one model", **point}]).splitlines()
    assert head.count("|") == row.count("|") == len(COLUMNS) + 1
    assert row == "| one model | 25% | 100 | 400 | 403 | 0.251 | 0.0% | 0.012 s |  |"
