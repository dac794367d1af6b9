"""What steps, encoder runs and outputs will take, from what was measured."""

import pytest

from service.engine.costs import Average, Costs
from tests.unit.engine.recorder import new_sequence


def source(length: int) -> tuple[int, ...]:
    return (5,) * length


def stepped(costs: Costs, num_rows: int, seconds: float, times: int = 200) -> Costs:
    for _ in range(times):
        costs.stepped(num_rows, 1, num_rows, seconds)
    return costs


def test_an_average_is_of_all_at_first_and_of_the_latest_later() -> None:
    average = Average()
    assert average.mean == 0.0
    for seconds in (1.0, 2.0, 3.0):
        average.add(seconds, 1)
    assert average.mean == pytest.approx(2.0, rel=0.01)
    for _ in range(300):
        average.add(10 * 4.0, 10)
    assert average.mean == pytest.approx(4.0, rel=0.01)


def test_what_was_measured_before_the_first_turn_holds_until_turns_say_otherwise() -> None:
    costs = Costs(2, 8, {1: 0.1, 8: 0.8})
    assert costs.seconds_per_row == pytest.approx(0.05)
    assert costs.step_seconds(4) == pytest.approx(0.4)
    stepped(costs, 7, 0.35)
    assert costs.seconds_per_row == pytest.approx(0.025, rel=0.02)


def test_between_measured_numbers_of_rows_is_a_line_and_more_rows_never_take_less() -> None:
    costs = Costs(1, 64, {1: 0.004, 16: 0.007, 64: 0.019})
    assert [costs.step_seconds(number) for number in (1, 6, 40, 64, 99)] == pytest.approx(
        [0.004, 0.005, 0.013, 0.019, 0.019]
    )
    noisy = Costs(1, 8, {1: 0.002, 4: 0.001, 8: 0.003})
    assert noisy.step_seconds(4) == pytest.approx(0.002)


def test_a_machine_that_changes_its_speed_changes_it_for_all_numbers_of_rows() -> None:
    """Kept at 4 rows, a server would otherwise never learn that 20 are slower now."""
    costs = stepped(Costs(1, 64, {1: 0.010, 64: 0.073}), 4, 2 * 0.013)
    assert costs.step_seconds(20) == pytest.approx(2 * 0.029, rel=0.02)


def test_without_a_measured_shape_any_number_of_rows_takes_as_long() -> None:
    costs = stepped(Costs(1, 32), 8, 0.01)
    assert costs.step_seconds(2) == costs.step_seconds(32) == pytest.approx(0.01)


def test_a_first_turn_that_the_machine_stood_still_in_makes_nobody_slow() -> None:
    """The first full turn took 33 ms instead of 1, and calls were rejected that would have been in time."""
    costs = Costs(1, 8, {8: 0.0005})
    costs.stepped(8, 1, 8, 0.033)
    assert costs.seconds_per_row < 4 * 0.0005 / 8
    stepped(costs, 8, 0.002, 40)  # as slow as it really is
    assert costs.seconds_per_row == pytest.approx(0.002 / 8, rel=0.1)


def test_a_clock_that_stands_still_does_no_harm() -> None:
    costs = stepped(stepped(Costs(1, 64), 4, 0.0), 8, -0.001)
    assert 0.0 < costs.step_seconds(4) < 0.001
    assert stepped(costs, 4, 0.004, 1000).step_seconds(4) == pytest.approx(0.004, rel=0.05)
    costs.encoded(1, 10, 0.0)
    costs.encoded(1, 10, 0.004)
    assert costs.source_seconds > 0.0


def test_rows_that_end_within_a_run_do_not_make_it_faster() -> None:
    costs = Costs(1, 8)
    for _ in range(200):
        costs.stepped(8, 10, 50, 0.1)
    assert costs.step_seconds(8) == pytest.approx(0.01)
    assert costs.seconds_per_row == pytest.approx(0.002, rel=0.02)


def test_encoding_is_known_by_source_and_by_token_and_adds_to_turns() -> None:
    costs = Costs(1, 8)
    costs.ended(new_sequence(source(10)), 20)
    costs.encoded(2, 80, 0.04)
    assert (costs.source_seconds, costs.token_seconds) == pytest.approx((0.02, 0.0005))
    assert costs.turn_seconds(4) == 0.0, "steps are unknown"
    costs.stepped(4, 1, 4, 0.01)
    assert costs.turn_seconds(4) == pytest.approx(0.01 + 4 * 0.02 / 20), "each that ends is followed by a new one"
    assert costs.full_turn_seconds == costs.turn_seconds(8) <= 2 * costs.turn_seconds(4)


def test_what_else_a_turn_takes_is_no_part_of_its_steps() -> None:
    costs = Costs(1, 8, {8: 0.01})
    costs.stepped(8, 10, 80, 0.1, other_seconds=0.02)
    assert costs.step_seconds(8) == pytest.approx(0.01)
    assert costs.turn_seconds(8) == pytest.approx(0.012)


def test_outputs_are_as_long_as_their_sources_make_them() -> None:
    costs = Costs(1, 8)
    costs.ended(new_sequence(source(10)), 20)
    assert costs.typical_tokens == 20
    assert costs.expected_tokens(new_sequence(source(15), max_output_tokens=38)) == pytest.approx(30)
    assert costs.expected_tokens(new_sequence(source(15), max_output_tokens=12)) == 12, "its limit"
    assert costs.expected_tokens(new_sequence(source(1))) == 2
