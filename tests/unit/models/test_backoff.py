"""Delays between restarts, on a simulated clock."""

from service.models.supervisor import MAX_RESTARTS, Backoff
from tests.clock import Clock


def fail_at_once(backoff: Backoff, clock: Clock) -> float:
    """Fail, wait as long as one should, restart; how long that was."""
    backoff.failed()
    delay = backoff.seconds_left
    clock.now += delay
    assert backoff.seconds_left == 0
    backoff.restarted()
    return delay


def test_each_failure_in_a_row_doubles_the_delay_up_to_half_a_minute() -> None:
    clock = Clock()
    backoff = Backoff(clock)
    delays = [round(fail_at_once(backoff, clock), 6) for _ in range(MAX_RESTARTS)]
    assert delays == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30.0]
    before = backoff.has_given_up
    backoff.failed()
    assert (before, backoff.has_given_up) == (False, True)
    assert backoff.num_failures == MAX_RESTARTS + 1


def test_a_restart_that_fails_is_one_more_failure() -> None:
    backoff = Backoff(Clock())
    for _ in range(MAX_RESTARTS + 1):
        assert not backoff.has_given_up
        backoff.failed()
    assert backoff.has_given_up


def test_a_minute_of_work_ends_the_row() -> None:
    clock = Clock()
    backoff = Backoff(clock)
    for seconds, delay in ((59.9, 0.1), (60.0, 0.2), (61.0, 0.1), (1.0, 0.1), (1.0, 0.2), (1.0, 0.4)):
        assert round(fail_at_once(backoff, clock), 6) == delay
        clock.now += seconds


def test_time_in_a_run_that_hangs_is_no_work() -> None:
    clock = Clock()
    backoff = Backoff(clock)
    for number in range(3):
        assert backoff.num_failures == number
        backoff.failed(stuck_seconds=60.0)
        backoff.restarted()
        clock.now += 60.5


def test_many_days_of_a_failure_now_and_then() -> None:
    clock = Clock()
    backoff = Backoff(clock)
    for _ in range(1000):
        assert round(fail_at_once(backoff, clock), 6) == 0.1
        clock.now += 3600
    assert not backoff.has_given_up
