"""How many steps a run makes."""

from typing import Any

import pytest

from service.engine.run_length import RunLength


def measured(step_seconds: float, num_rows: int = 8) -> RunLength:
    length = RunLength()
    for _ in range(100):
        length.measured(num_rows, 10, 10 * step_seconds)
    return length


def steps(length: RunLength, num_rows: int = 8, awaited_seconds: float = 0.006, **given: Any) -> int:
    asked: dict[str, Any] = {"is_awaited": False, "needs_row": False, **given}
    return length.limits(num_rows, num_rows, awaited_seconds, **asked).max_steps


def test_the_first_run_is_one_step() -> None:
    assert steps(RunLength()) == 1


@pytest.mark.parametrize(
    ("step_seconds", "unhurried", "awaited"),
    [(0.00001, 64, 64), (0.0005, 20, 12), (0.001, 10, 6), (0.004, 2, 1), (0.1, 1, 1)],
)
def test_runs_are_shorter_when_somebody_waits(step_seconds: float, unhurried: int, awaited: int) -> None:
    length = measured(step_seconds * 0.999)
    assert steps(length) == unhurried
    assert steps(length, is_awaited=True) == awaited


def test_a_run_goes_on_for_the_time_of_an_awaited_one_whoever_comes() -> None:
    limits = measured(0.000999).limits(8, 8, 0.006, is_awaited=False, needs_row=False)
    assert (limits.max_steps, limits.least_steps) == (10, 6)


def test_a_run_that_nobody_waits_for_is_never_shorter_than_an_awaited_one() -> None:
    length = measured(0.000999)
    assert steps(length, awaited_seconds=0.012) == steps(length, awaited_seconds=0.012, is_awaited=True) == 12


def test_runs_end_at_a_deadline_and_with_the_first_token_that_somebody_reads() -> None:
    length = measured(0.000999)
    assert steps(length, seconds_left=0.004) == 4
    assert steps(length, seconds_left=-1.0) == 1
    assert steps(length, steps_to_first_token=2) == 2
    assert steps(length, steps_to_first_token=50) == 10


@pytest.mark.parametrize(
    ("step_seconds", "num_rows", "num_sequences", "returns_after"),
    [
        (0.01, 8, 8, 1),
        (0.00125, 8, 8, 2),
        (0.0005, 16, 16, 6),
        (0.0005, 16, 4, 4),
        (0.00001, 8, 8, 8),
        (0.0005, 1, 1, 1),
    ],
)
def test_a_run_lets_others_join_once_enough_sequences_have_ended(
    step_seconds: float, num_rows: int, num_sequences: int, returns_after: int
) -> None:
    length = measured(step_seconds, num_rows)
    limits = length.limits(num_rows, num_sequences, 0.006, is_awaited=False, needs_row=True)
    assert limits.returns_after == returns_after
    assert length.limits(num_rows, num_sequences, 0.006, is_awaited=False, needs_row=False).returns_after == 0


def test_before_anything_is_measured_the_first_row_that_ends_lets_others_join() -> None:
    assert RunLength().limits(8, 8, 0.006, is_awaited=False, needs_row=True).returns_after == 1


def test_steps_of_more_rows_are_taken_to_be_longer_until_they_are_measured() -> None:
    length = measured(0.001, num_rows=8)
    assert length.step_seconds(4) == pytest.approx(0.001)
    assert length.step_seconds(32) == pytest.approx(0.004)
    length.measured(32, 10, 0.02)
    assert length.step_seconds(32) == pytest.approx(0.002)


def test_a_stall_and_a_run_without_steps_predict_nothing() -> None:
    length = measured(0.001)
    length.measured(8, 0, 5.0)
    assert length.step_seconds(8) == pytest.approx(0.001)
    length.measured(8, 1, 5.0)
    assert length.step_seconds(8) <= 0.0017
