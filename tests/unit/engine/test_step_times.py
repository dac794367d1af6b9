"""Durations of steps by the number of rows, from few that were measured."""

import pytest

from service.engine.step_times import StepTimes


def of_many(*steps: tuple[int, float], max_rows: int = 64) -> StepTimes:
    """Return what is known once many steps of each of these were measured, in this order."""
    times = StepTimes(max_rows)
    for num_rows, seconds in steps:
        for _ in range(200):
            times.measured(num_rows, seconds, 0.0)
    return times


def test_nothing_is_known_at_first() -> None:
    assert StepTimes(64).seconds(3, 0.0) == StepTimes(64).seconds(3, 0.02) == 0.0


def test_between_two_measured_numbers_of_rows_is_a_line() -> None:
    times = of_many((4, 0.004), (16, 0.007))
    assert [times.seconds(number, 0.0) for number in (4, 8, 16)] == pytest.approx([0.004, 0.005, 0.007])


def test_beyond_them_is_a_line_to_a_full_step() -> None:
    times = of_many((4, 0.004), (16, 0.007))
    assert times.seconds(40, 0.019) == pytest.approx(0.013)
    assert times.seconds(40, 0.0) == pytest.approx(0.007)


def test_fewer_than_were_measured_take_their_share() -> None:
    assert of_many((16, 0.008)).seconds(4, 0.0) == pytest.approx(0.002)


def test_what_was_measured_once_is_corrected_by_the_latest_steps() -> None:
    """Kept at 12 rows, a server would otherwise never learn that 20 are not as slow any more."""
    slow_once = of_many((20, 0.050), (12, 0.006))
    assert slow_once.seconds(20, 0.0) == pytest.approx(0.010, rel=0.01)
    fast_once = of_many((20, 0.002), (12, 0.006))
    assert fast_once.seconds(20, 0.0) == pytest.approx(0.006, rel=0.01)
    assert fast_once.seconds(4, 0.0) == pytest.approx(0.002, rel=0.01)


def test_a_step_in_which_the_machine_stood_still_hardly_counts() -> None:
    times = of_many((4, 0.004))
    assert times.measured(4, 1.0, 0.0) == pytest.approx(0.016)
    assert times.measured(8, 1.0, 0.0) < 0.05, "nor the first of its kind"
    assert StepTimes(8).measured(8, 1.0, 0.01) == pytest.approx(0.04)


def test_a_clock_that_stands_still_does_no_harm() -> None:
    times = of_many((4, 0.0), (8, -0.001))
    assert 0.0 < times.seconds(4, 0.0) < 0.001
    assert of_many((4, 0.0), (4, 0.004)).seconds(4, 0.0) > 0.0


def test_a_machine_that_changes_its_speed_changes_it_for_all_numbers_of_rows() -> None:
    times = of_many((20, 0.020), (4, 0.012))
    for _ in range(200):
        times.measured(4, 0.006, 0.0)
    assert times.seconds(20, 0.0) == pytest.approx(0.010, rel=0.15)
