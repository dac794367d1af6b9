import pytest

from service.engine.pace import Pace


def taught(token_seconds: float = 0.0001, step_seconds: float = 0.01) -> Pace:
    pace = Pace(1000)
    for _ in range(50):
        pace.encoded(200, 200 * token_seconds)
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


def test_there_is_always_room_for_one() -> None:
    assert taught(token_seconds=1.0).encode_tokens(num_rows=64, num_free=1) == 1


def test_it_follows_what_changes() -> None:
    pace = taught()
    before = pace.encode_tokens(num_rows=32, num_free=32)
    for _ in range(20):
        pace.stepped(0.03)
    assert pace.encode_tokens(num_rows=32, num_free=32) == pytest.approx(3 * before, rel=0.05)
