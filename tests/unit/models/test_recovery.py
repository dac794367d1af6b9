"""The policy for restarting engines, on a clock that the test advances."""

from service.models.recovery import MAX_RESTARTS, Recovery
from tests.clock import Clock


def fail_at_once(recovery: Recovery, clock: Clock) -> float:
    """Fail, wait for the required delay, restart; return the delay."""
    recovery.failed()
    delay = recovery.seconds_left
    clock.now += delay
    assert recovery.seconds_left == 0
    recovery.restarted()
    return delay


def test_each_failure_in_a_row_doubles_the_delay_up_to_half_a_minute() -> None:
    clock = Clock()
    recovery = Recovery(clock)
    delays = [round(fail_at_once(recovery, clock), 6) for _ in range(MAX_RESTARTS)]
    assert delays == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30.0]
    before = recovery.has_given_up
    recovery.failed()
    assert (before, recovery.has_given_up) == (False, True)
    assert recovery.num_failures == MAX_RESTARTS + 1


def test_a_restart_that_fails_is_one_more_failure() -> None:
    recovery = Recovery(Clock())
    for _ in range(MAX_RESTARTS + 1):
        assert not recovery.has_given_up
        recovery.failed()
    assert recovery.has_given_up


def test_a_minute_of_work_ends_the_row() -> None:
    clock = Clock()
    recovery = Recovery(clock)
    for seconds, delay in ((59.9, 0.1), (60.0, 0.2), (61.0, 0.1), (1.0, 0.1), (1.0, 0.2), (1.0, 0.4)):
        assert round(fail_at_once(recovery, clock), 6) == delay
        clock.now += seconds


def test_time_in_a_run_that_hangs_is_no_work() -> None:
    clock = Clock()
    recovery = Recovery(clock)
    for number in range(3):
        assert recovery.num_failures == number
        recovery.failed(stuck_seconds=60.0)
        recovery.restarted()
        clock.now += 60.5


def test_many_days_of_a_failure_now_and_then() -> None:
    clock = Clock()
    recovery = Recovery(clock)
    for _ in range(1000):
        assert round(fail_at_once(recovery, clock), 6) == 0.1
        clock.now += 3600
    assert not recovery.has_given_up
