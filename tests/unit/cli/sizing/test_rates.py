"""The search for the highest rate, on servers whose latency is known: the 99th percentile of a queue with one place."""

import math

import pytest

from service.cli.sizing.rates import Trial, best_of_each, highest_rate, next_rate
from tests.unit.cli.sizing.simulated_queue import SimulatedQueue

NUM_TRIALS = 8
CAPACITY = 500.0


def p99_of(rate: float) -> float:
    """Return the 99th percentile of an M/M/1 queue's sojourn time; infinite beyond its capacity."""
    return -math.log(0.01) / (CAPACITY - rate) if rate < CAPACITY else math.inf


def true_rate(objective: float) -> float:
    return CAPACITY + math.log(0.01) / objective


def searched(objective: float, measured_capacity: float = CAPACITY, disturbed: tuple[int, ...] = ()) -> float:
    """Search; the trials of these numbers are disturbed and take half a second longer."""
    trials: list[Trial] = []
    while len(trials) < NUM_TRIALS + len(disturbed):
        rate = next_rate(measured_capacity, objective, trials)
        is_disturbed = len(trials) in disturbed
        trials.append(Trial(rate, p99_of(rate) + 0.5 * is_disturbed, is_disturbed))
    return highest_rate(objective, trials)


@pytest.mark.parametrize("objective", [0.02, 0.05, 0.2, 1.0])
@pytest.mark.parametrize("measured_capacity", [0.7 * CAPACITY, CAPACITY, 1.2 * CAPACITY])
def test_the_rate_is_found_even_if_the_capacity_was_measured_badly(objective: float, measured_capacity: float) -> None:
    assert searched(objective, measured_capacity) == pytest.approx(true_rate(objective), rel=0.05)


@pytest.mark.parametrize("disturbed", [(0,), (1,), (0, 1), (2, 4)])
def test_disturbed_trials_are_repeated(disturbed: tuple[int, ...]) -> None:
    assert searched(0.1, disturbed=disturbed) == pytest.approx(true_rate(0.1), rel=0.05)


def test_without_repeating_a_disturbance_would_decide() -> None:
    last = Trial(375.0, 0.6, is_disturbed=True)
    assert next_rate(CAPACITY, 0.1, [last]) == 375.0
    assert next_rate(CAPACITY, 0.1, [Trial(375.0, 0.6)]) < 375.0  # the same, undisturbed, is believed


def test_an_objective_that_nothing_keeps_has_no_rate() -> None:
    assert searched(0.001) == 0.0
    assert highest_rate(0.1, []) == 0.0


def test_the_best_trial_of_a_rate_counts() -> None:
    assert best_of_each([Trial(2.0, 0.3), Trial(1.0, 0.5), Trial(2.0, 0.2)]) == [Trial(1.0, 0.5), Trial(2.0, 0.2)]


def test_a_rate_that_is_faster_than_a_lower_one_is_averaged_with_it() -> None:
    trials = [Trial(100.0, 0.01), Trial(200.0, 0.2), Trial(210.0, 0.02), Trial(300.0, 1.0)]
    rate = highest_rate(0.1, trials)
    assert 210.0 < rate < 300.0


def searched_rate(queue: SimulatedQueue, objective: float, seconds: float, seed: int) -> float:
    trials: list[Trial] = []
    for number in range(NUM_TRIALS):
        rate = next_rate(1 / queue.service_seconds, objective, trials)
        num_calls = max(500, round(rate * seconds))
        trials.append(Trial(rate, queue.p99(rate, num_calls, 100 * seed + number + 1, lead=0.3)))
    return highest_rate(objective, trials)


@pytest.mark.parametrize(
    ("service_seconds", "objective", "most_error"),
    [(0.002, 0.01, 0.2), (0.002, 0.05, 0.2), (0.002, 0.2, 0.2), (0.01, 0.1, 0.2), (0.04, 0.5, 0.25)],
)
def test_trials_of_the_length_that_a_minute_allows_come_within_a_fifth(
    service_seconds: float, objective: float, most_error: float
) -> None:
    queue = SimulatedQueue(service_seconds)
    true = queue.true_rate(objective)
    found = [searched_rate(queue, objective, 6.4, seed) for seed in range(10)]
    assert found == pytest.approx([true] * len(found), rel=most_error)
