"""Arrivals and answers of the planner's callers; a real server is called in tests/clients/test_plan_command.py."""

import itertools
import math

import pytest

from service.cli.percentile import percentile
from service.cli.sizing.callers import Answers, arrivals


def test_arrivals_are_a_poisson_process() -> None:
    due = [when for when, _ in arrivals(200.0, 100.0, 7, seed=3)]
    assert due == sorted(due)
    assert len(due) == pytest.approx(20_000, rel=0.03)
    gaps = [later - earlier for earlier, later in itertools.pairwise(due)]
    mean = sum(gaps) / len(gaps)
    variance = sum((gap - mean) ** 2 for gap in gaps) / len(gaps)
    assert variance == pytest.approx(mean**2, rel=0.05)  # as of an exponential distribution
    assert {text for _, text in arrivals(200.0, 100.0, 7, seed=3)} == set(range(7))


def test_a_failed_call_is_slower_than_any_answer() -> None:
    answers = Answers(latencies=[0.1] * 98 + [math.inf] * 2, seconds=10.0)
    assert percentile(answers.latencies, 0.98) == 0.1
    assert math.isinf(percentile(answers.latencies, 0.99))
    assert answers.failed_share == pytest.approx(0.02)
    assert answers.rate == pytest.approx(9.8)


def test_there_may_be_no_answers() -> None:
    assert (Answers().rate, Answers().failed_share) == (0.0, 1.0)
