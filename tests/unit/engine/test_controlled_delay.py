"""The permitted length of a queue, from times and waits alone."""

import pytest

from service.engine.controlled_delay import BURST_SECONDS, INTERVAL_SECONDS, ControlledDelay

TARGET = 0.25
LONG, SHORT = 2.0, 0.1


def limits(*asked: tuple[float, float], delay: ControlledDelay | None = None) -> list[float]:
    """Return the limits at these moments, in intervals, with the waits then."""
    delay = delay or ControlledDelay()
    return [delay.limit_seconds(moment * INTERVAL_SECONDS, wait, TARGET) for moment, wait in asked]


def test_a_burst_may_wait() -> None:
    assert limits((5.0, 0.0), (5.0, LONG), (5.9, 2 * LONG)) == [BURST_SECONDS] * 3


def test_a_queue_that_stands_for_an_interval_may_not() -> None:
    assert limits((5.0, LONG), (5.5, LONG), (6.0, TARGET), (6.1, LONG))[2:] == [TARGET, TARGET]


def test_a_queue_that_was_short_once_within_the_interval_has_not_stood() -> None:
    assert limits((5.0, LONG), (5.8, SHORT), (6.0, LONG), (6.7, LONG)) == [BURST_SECONDS] * 4


def test_one_that_has_stood_is_held_until_it_was_short_for_an_interval() -> None:
    delay = ControlledDelay()
    assert limits((5.0, LONG), (6.0, LONG), delay=delay)[-1] == TARGET
    held = [(6.0 + 0.1 * n, LONG if n % 3 == 0 else SHORT) for n in range(60)]  # as an effective limit produces it
    assert set(limits(*held, delay=delay)) == {TARGET}
    assert limits((12.0, SHORT), (12.6, SHORT), delay=delay) == [TARGET, TARGET]
    assert limits((12.8, SHORT), (12.9, LONG), delay=delay) == [BURST_SECONDS, BURST_SECONDS]


def test_a_silent_server_trusts_again() -> None:
    assert limits((5.0, LONG), (6.0, LONG), (60.0, 0.0), (60.0, LONG))[2:] == [BURST_SECONDS] * 2
    assert limits((5.0, LONG), (6.0, LONG), (7.5, LONG))[-1] == TARGET, "nobody asked, and it was long all the time"


@pytest.mark.parametrize("target", [0.25, 30.0])
def test_a_slow_models_target_may_be_longer_than_a_burst(target: float) -> None:
    assert ControlledDelay().limit_seconds(0.0, 0.0, target) == max(BURST_SECONDS, target)
