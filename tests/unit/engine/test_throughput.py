from random import Random

import pytest

from service.engine.throughput import Pace, Throughput
from tests.unit.engine.recorder import new_sequence


def source(num_tokens: int) -> tuple[int, ...]:
    return tuple(range(2, 2 + num_tokens))


def test_nothing_is_known_at_first() -> None:
    throughput = Throughput(num_workers=2, max_rows=8)
    assert throughput.seconds_per_row == throughput.full_turn_seconds == throughput.turn_seconds(3) == 0.0
    assert throughput.expected_tokens(new_sequence(source(10))) == 10


def test_what_was_tried_counts_until_there_is_something_better() -> None:
    throughput = Throughput(num_workers=2, max_rows=8, full_turn_seconds=0.8)
    assert throughput.seconds_per_row == pytest.approx(0.05)
    assert throughput.full_turn_seconds == pytest.approx(0.8)
    for _ in range(1000):
        throughput.turned(7, 0.35)
    assert throughput.seconds_per_row == pytest.approx(0.025, rel=0.02)


def test_a_nearly_empty_batch_says_nothing_about_a_full_one() -> None:
    throughput = Throughput(num_workers=1, max_rows=32, full_turn_seconds=0.032)
    for _ in range(100):
        throughput.turned(1, 0.01)
    assert throughput.seconds_per_row == pytest.approx(0.001)
    assert throughput.turn_seconds(1) == pytest.approx(0.01)


def test_turns_are_told_by_their_rows_and_from_the_nearest_where_there_were_none() -> None:
    throughput = Throughput(num_workers=1, max_rows=32)
    throughput.turned(1, 0.01)
    throughput.turned(9, 0.02)
    assert throughput.turn_seconds(1) == 0.01
    assert throughput.turn_seconds(5) == pytest.approx(0.015)
    assert throughput.turn_seconds(9) == throughput.turn_seconds(32) == 0.02
    tried = Throughput(num_workers=1, max_rows=32, full_turn_seconds=0.063)
    tried.turned(1, 0.01)
    assert tried.turn_seconds(1) == pytest.approx(0.01)


def test_new_sequences_are_encoded_as_often_as_rows_end() -> None:
    throughput = Throughput(num_workers=1, max_rows=8)
    throughput.ended(10, 20)
    throughput.turned(4, 0.05, num_encoded=2, encode_seconds=0.04)
    assert throughput.turn_seconds(4) == pytest.approx(0.01 + 4 * 0.02 / 20)
    assert throughput.turn_seconds(8) <= 2 * throughput.turn_seconds(4)


def test_as_long_as_no_sequence_has_ended_nothing_is_known_of_how_often_rows_do() -> None:
    throughput = Throughput(num_workers=1, max_rows=8)
    throughput.turned(4, 0.05, num_encoded=2, encode_seconds=0.04)
    assert throughput.turn_seconds(4) == pytest.approx(0.01)


def test_who_gives_up_in_time_says_nothing_and_who_waited_as_long_as_expected_does() -> None:
    throughput = Throughput(num_workers=1, max_rows=8)
    for _ in range(100):
        throughput.given_up(1.0, 0.5)
    assert throughput.excess == 1.0
    throughput.given_up(1.0, 0.95)
    assert throughput.excess > 1.0


def test_estimates_are_corrected_by_what_came_of_them() -> None:
    throughput = Throughput(num_workers=1, max_rows=8)
    assert throughput.excess == 1.0
    random = Random(1)
    for _ in range(2000):
        throughput.took(1.0, random.uniform(1.0, 2.0))
    assert throughput.excess == pytest.approx(1.75, rel=0.1), "three of four take less"
    for _ in range(2000):
        throughput.took(1.0, 0.01)
    assert throughput.excess == 0.85
    for _ in range(2000):
        throughput.took(0.01, 10.0)
    assert throughput.excess == 4.0


def test_what_is_known_of_estimates_is_forgotten_where_nothing_is_compared() -> None:
    throughput = Throughput(num_workers=1, max_rows=8)
    for _ in range(200):
        throughput.took(0.01, 10.0)
    assert throughput.excess == 4.0
    for _ in range(300):
        throughput.not_compared()
    assert throughput.excess == pytest.approx(1.0, abs=0.2)
    for _ in range(400):
        throughput.took(1.0, 0.01)
        throughput.not_compared()
    assert throughput.excess < 0.9, "what is compared counts more"


def test_a_first_turn_that_the_machine_stood_still_in_makes_nobody_slow() -> None:
    """The first full turn took 33 ms instead of 1, and calls were rejected that would have been in time."""
    tried = Throughput(num_workers=1, max_rows=8, full_turn_seconds=0.0005)
    tried.turned(8, 0.033)
    assert tried.seconds_per_row < 4 * 0.0005 / 8
    known = Throughput(num_workers=1, max_rows=8)
    known.turned(4, 0.0005)
    known.turned(8, 0.033)
    assert known.turn_seconds(8) <= 4 * 0.001
    for _ in range(40):
        tried.turned(8, 0.002)  # as slow as it really is
    assert tried.seconds_per_row == pytest.approx(0.002 / 8, rel=0.1)


def test_the_past_is_forgotten() -> None:
    throughput = Throughput(num_workers=1, max_rows=8)
    throughput.turned(8, 4.0)
    for _ in range(600):
        throughput.turned(8, 0.08)
        throughput.ended(10, 30)
    assert throughput.seconds_per_row == pytest.approx(0.01, rel=0.05)
    assert throughput.typical_tokens == pytest.approx(30)


def test_outputs_are_as_long_as_their_sources_make_them() -> None:
    throughput = Throughput(num_workers=1, max_rows=8)
    throughput.ended(10, 20)
    sequence = new_sequence(source(15), max_output_tokens=38)
    assert throughput.expected_tokens(sequence) == pytest.approx(30)
    assert throughput.expected_rows(new_sequence(source(15), beam_size=4, max_output_tokens=38)) == pytest.approx(120)
    assert throughput.expected_tokens(new_sequence(source(15), max_output_tokens=12)) == 12, "its limit"
    assert throughput.expected_tokens(new_sequence(source(1))) == 2


def taught(token_seconds: float = 0.0001, step_seconds: float = 0.01) -> Pace:
    pace = Pace(1000)
    for _ in range(50):
        pace.encoded(20, 200, 200 * token_seconds)
        pace.stepped(step_seconds)
    return pace


def test_nobody_runs_so_nobody_is_held_up() -> None:
    assert taught().encode_tokens(num_rows=0, num_free=64) == 1000


def test_before_anything_was_measured_only_the_bound_counts() -> None:
    assert Pace(1000).encode_tokens(num_rows=3, num_free=1) == 1000


def test_encoding_takes_as_long_as_a_step_when_half_of_the_slots_are_in_use() -> None:
    assert taught().encode_tokens(num_rows=32, num_free=32) == pytest.approx(100, abs=1)
    assert taught().encode_tokens(num_rows=60, num_free=4) == pytest.approx(100, abs=1)


def test_empty_slots_let_it_take_longer() -> None:
    assert taught().encode_tokens(num_rows=8, num_free=56) == pytest.approx(700, abs=7)
    assert taught().encode_tokens(num_rows=1, num_free=63) == 1000


@pytest.mark.parametrize(
    ("token_seconds", "awaited_seconds", "num_tokens"),
    [(0.00001, 0.006, 600), (0.0003, 0.012, 40), (0.001, 0.02, 20)],
)
def test_encoding_may_take_as_long_as_four_sources_though_steps_are_faster(
    token_seconds: float, awaited_seconds: float, num_tokens: int
) -> None:
    pace = taught(token_seconds, step_seconds=0.001)
    assert pace.awaited_seconds == pytest.approx(awaited_seconds)
    assert pace.encode_tokens(num_rows=32, num_free=32) == pytest.approx(num_tokens, abs=1)


def test_there_is_always_room_for_one() -> None:
    assert taught(token_seconds=1.0).encode_tokens(num_rows=64, num_free=1) == 1


def test_it_follows_what_changes() -> None:
    pace = taught()
    before = pace.encode_tokens(num_rows=32, num_free=32)
    for _ in range(20):
        pace.stepped(0.03)
    assert pace.encode_tokens(num_rows=32, num_free=32) == pytest.approx(3 * before, rel=0.05)


def test_rows_that_end_within_a_run_do_not_make_it_faster() -> None:
    throughput = Throughput(1, 8)
    throughput.turned(8, 0.1, num_steps=10, num_row_steps=50)
    assert throughput.seconds_per_row == pytest.approx(0.002)
    assert throughput.turn_seconds(8) == pytest.approx(0.01)
