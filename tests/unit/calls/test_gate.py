"""Usage in the last minute, and when there is room again."""

import subprocess
import sys
from types import SimpleNamespace

import pytest
from limits.storage import memory

from service.calls.gate import Usage
from tests.patience import patient
from tests.servers import REPOSITORY


class Clock:
    """The clock of the limits' storage."""

    def __init__(self) -> None:
        self.now = 6_000_000.0  # the beginning of a minute


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(memory, "time", SimpleNamespace(time=lambda: clock.now))
    return clock


def test_there_is_room_until_the_quota_is_used(clock: Clock) -> None:
    usage = Usage()
    assert usage.seconds_until_below("a", 10) == 0.0
    usage.add("a", 9)
    assert usage.seconds_until_below("a", 10) == 0.0
    usage.add("a", 1)
    assert usage.seconds_until_below("a", 10) > 0.0
    assert usage.seconds_until_below("b", 10) == 0.0


@pytest.mark.parametrize("used", [10, 11, 25, 1000])
@pytest.mark.parametrize("second", [0.0, 20.0, 59.0])
def test_room_comes_when_it_was_promised(clock: Clock, used: int, second: float) -> None:
    usage = Usage()
    clock.now += second
    usage.add("a", used)
    promised = usage.seconds_until_below("a", 10)
    clock.now += promised - 0.001
    assert usage.seconds_until_below("a", 10) > 0.0
    clock.now += 0.002
    assert usage.seconds_until_below("a", 10) == 0.0


def test_what_was_used_in_the_minute_before_counts_by_its_share(clock: Clock) -> None:
    usage = Usage()
    usage.add("a", 20)
    clock.now += 75.0  # three quarters of that minute are still within the last one
    assert usage.seconds_until_below("a", 16) == 0.0
    assert usage.seconds_until_below("a", 15) == pytest.approx(0.0, abs=1e-6)
    usage.add("a", 5)
    assert usage.seconds_until_below("a", 16) == pytest.approx(60 * (4 / 20), abs=1e-6)
    clock.now += 200.0
    assert usage.seconds_until_below("a", 1) == 0.0


def test_more_than_any_quota_is_counted_too(clock: Clock) -> None:
    usage = Usage()
    usage.add("a", 5)
    usage.add("a", 10**9)
    assert usage.seconds_until_below("a", 10**9) > 0.0
    assert usage.seconds_until_below("a", 10**9 + 6) == 0.0


def test_the_amount_used_is_that_of_the_last_minute(clock: Clock) -> None:
    usage = Usage()
    assert usage.of("a") == 0
    usage.add("a", 20)
    assert usage.of("a") == 20
    clock.now += 75.0  # three quarters of that minute are still within the last one
    usage.add("a", 5)
    assert usage.of("a") == 20
    assert usage.of("b") == 0
    clock.now += 200.0
    assert usage.of("a") == 0


def test_a_server_without_keys_does_not_load_the_library() -> None:
    names = ("service.domain.call", "limits")
    script = f"import sys, service.server.server; print(*(name in sys.modules for name in {names}))"
    run = subprocess.run(
        [sys.executable, "-c", script], cwd=REPOSITORY, timeout=patient(60), capture_output=True, text=True
    )
    assert run.stdout.split() == ["True", "False"], run.stderr
