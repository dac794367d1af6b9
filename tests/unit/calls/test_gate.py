"""Usage in the last minute, and when there is room again."""

import time

import pytest

from service.calls.gate import Usage
from tests.clock import Clock


@pytest.fixture
def clock() -> Clock:
    clock = Clock()
    clock.now = 6_000_000.0  # the beginning of a minute
    return clock


@pytest.mark.parametrize("used", [10, 11, 25, 1000])
@pytest.mark.parametrize("second", [0.0, 20.0, 59.0])
def test_room_comes_when_it_was_promised(clock: Clock, used: int, second: float) -> None:
    usage = Usage(clock)
    clock.now += second
    usage.add("a", used)
    promised = usage.seconds_until_below("a", 10)
    clock.now += promised - 0.001
    assert usage.seconds_until_below("a", 10) > 0.0
    clock.now += 0.002
    assert usage.seconds_until_below("a", 10) == 0.0


def test_what_was_used_in_the_minute_before_counts_by_its_share(clock: Clock) -> None:
    usage = Usage(clock)
    usage.add("a", 20)
    clock.now += 75.0  # three quarters of that minute are still within the last one
    assert usage.seconds_until_below("a", 16) == 0.0
    assert usage.seconds_until_below("a", 15) == pytest.approx(0.0, abs=1e-6)
    usage.add("a", 5)
    assert usage.seconds_until_below("a", 16) == pytest.approx(60 * (4 / 20), abs=1e-6)
    clock.now += 200.0
    assert usage.seconds_until_below("a", 1) == 0.0


def test_more_than_any_quota_is_counted_too(clock: Clock) -> None:
    usage = Usage(clock)
    usage.add("a", 5)
    usage.add("a", 10**9)
    assert usage.seconds_until_below("a", 10**9) > 0.0
    assert usage.seconds_until_below("a", 10**9 + 6) == 0.0


def test_the_amount_used_is_that_of_the_last_minute(clock: Clock) -> None:
    usage = Usage(clock)
    assert usage.of("a") == 0
    usage.add("a", 20)
    assert usage.of("a") == 20
    clock.now += 75.0  # three quarters of that minute are still within the last one
    usage.add("a", 5)
    assert usage.of("a") == 20
    assert usage.of("b") == 0
    clock.now += 200.0
    assert usage.of("a") == 0


@pytest.mark.parametrize("jump_seconds", [-7200.0, 61.0, 7200.0])
def test_a_jump_of_the_wall_clock_opens_no_new_window(monkeypatch: pytest.MonkeyPatch, jump_seconds: float) -> None:
    """As an operator, a virtual machine or NTP sets it."""
    usage, really = Usage(), time.time
    usage.add("a", 10)
    monkeypatch.setattr(time, "time", lambda: really() + jump_seconds)
    assert usage.of("a") == 10
    assert 0.0 < usage.seconds_until_below("a", 10) <= 60.1
