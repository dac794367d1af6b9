"""The highest rate of a sweep."""

import math

import pytest

from benchmarks.planner import highest_kept

SWEPT = {100.0: 10.0, 200.0: 20.0, 300.0: 80.0, 400.0: math.inf}


@pytest.mark.parametrize(
    ("objective", "expected"),
    [
        (5.0, 0.0),  # not even the lowest keeps it
        (10.0, 100.0),
        (50.0, 250.0),  # halfway between 20 and 80 ms
        (80.0, 300.0),
        (1000.0, 300.0),  # the next one fails whatever the objective
    ],
)
def test_it_lies_between_the_rates_around_the_objective(objective: float, expected: float) -> None:
    assert highest_kept(SWEPT, objective) == expected


def test_what_is_kept_above_a_lost_rate_does_not_count() -> None:
    assert highest_kept({100.0: 10.0, 200.0: 90.0, 300.0: 10.0}, 50.0) == 150.0


def test_all_may_be_kept_or_none_tried() -> None:
    assert highest_kept({100.0: 1.0, 200.0: 2.0}, 50.0) == 200.0
    assert highest_kept({}, 50.0) == 0.0
