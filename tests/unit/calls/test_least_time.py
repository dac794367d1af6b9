import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.calls.least_time import LeastTime

TYPICAL = 0.005
CALLS_PER_SECOND = 1000


def learned(num_late: int, least: LeastTime | None = None) -> LeastTime:
    least = least or LeastTime()
    for _ in range(100):
        least.in_time(TYPICAL, 0.0)
    for _ in range(num_late):
        least.late(0.0)
    return least


def test_nothing_is_asked_for_while_calls_are_in_time() -> None:
    assert LeastTime().seconds(0.0) == 0.0
    assert learned(0).seconds(0.0) == 0.0


def test_without_a_call_in_time_late_ones_teach_nothing() -> None:
    least = LeastTime()
    for _ in range(100):
        least.late(0.0)
    assert least.seconds(0.0) == 0.0


def test_late_calls_raise_it_up_to_a_few_typical_times() -> None:
    few, many = learned(5).seconds(0.0), learned(1000).seconds(0.0)
    assert 0.0 < few < many == pytest.approx(3 * TYPICAL)


def test_it_fades_when_nothing_ends() -> None:
    least = learned(1000)
    assert least.seconds(0.5) == pytest.approx(least.seconds(0.0) / 2)
    assert least.seconds(60.0) < 1e-9


@pytest.mark.parametrize("left_seconds", [0.010, 0.040])
def test_few_of_the_accepted_calls_are_late(left_seconds: float) -> None:
    rng = random.Random(7)
    least, accepted, late = LeastTime(), 0, 0
    for number in range(20 * CALLS_PER_SECOND):
        now = number / CALLS_PER_SECOND
        left, needed = rng.uniform(0.0, left_seconds), rng.gauss(TYPICAL, TYPICAL / 5)
        if left < least.seconds(now):
            continue
        if number > 5 * CALLS_PER_SECOND:
            accepted += 1
            late += left < needed
        if left < needed:
            least.late(now)
        else:
            least.in_time(needed, now)
    assert accepted > 0.3 * 15 * CALLS_PER_SECOND * (1 - TYPICAL / left_seconds)  # not by rejecting all of them
    assert late / accepted < 0.1


def test_short_deadlines_are_not_all_rejected_because_some_calls_are_late() -> None:
    rng = random.Random(7)
    least, num_accepted = LeastTime(), 0
    for number in range(20 * CALLS_PER_SECOND):
        now, left, needed = number / CALLS_PER_SECOND, 2.5 * TYPICAL, rng.expovariate(1 / TYPICAL)
        if left < least.seconds(now):
            continue
        num_accepted += 1
        if left < needed:
            least.late(now)
        else:
            least.in_time(needed, now)
    assert num_accepted > 0.9 * 20 * CALLS_PER_SECOND


@given(
    st.lists(
        st.tuples(st.booleans(), st.floats(0.0, 100.0), st.floats(0.0, 10.0)), max_size=100
    )  # late, duration, time since the last
)
def test_it_stays_between_0_and_the_most(events: list[tuple[bool, float, float]]) -> None:
    least, now, longest = LeastTime(), 0.0, 0.0
    for is_late, seconds, since in events:
        now += since
        if is_late:
            least.late(now)
        else:
            least.in_time(seconds, now)
            longest = max(longest, seconds)
        assert 0.0 <= least.seconds(now) <= 3.0 * longest * (1 + 1e-9)
