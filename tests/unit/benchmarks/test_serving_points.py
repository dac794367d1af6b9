import math

import pytest

from benchmarks.load_generator import Outcome
from benchmarks.serving_points import judge, median_of


def test_only_answers_within_the_objective_are_good() -> None:
    outcome = Outcome(
        calls=[
            (0.5, 0.1, "OK", 5),  # before the judged period
            (2.0, 0.1, "OK", 5),
            (3.0, 0.5, "OK", 5),
            (4.0, 0.9, "OK", 5),
            (5.0, 0.01, "RESOURCE_EXHAUSTED", 0),
            (6.0, 1.0, "DEADLINE_EXCEEDED", 0),
        ]
    )
    found = judge(outcome, since=1.0, until=9.0, slo_seconds=0.5)
    assert found["calls"] == 5
    assert found["p50_ms"] == 500
    assert found["p99_ms"] == 900
    assert found["goodput"] == pytest.approx(2 / 8)
    assert (found["shed_share"], found["late_share"], found["failed_share"]) == (0.2, 0.2, 0.0)


def test_goodput_is_what_was_answered_in_the_time_not_what_was_asked_in_it() -> None:
    from_before = (0.8, 0.5, "OK", 5)
    after_the_end = (9.8, 0.5, "OK", 5)
    found = judge(Outcome(calls=[from_before, after_the_end, after_the_end]), 1.0, 10.0, 1.0)
    assert found["goodput"] == pytest.approx(1 / 9)
    assert found["calls"] == 2


def test_a_refusal_that_comes_fast_does_not_improve_latency() -> None:
    answered = [(5.0, 0.8, "OK", 5)] * 9
    refused = [(5.0, 0.001, "RESOURCE_EXHAUSTED", 0)] * 9
    assert judge(Outcome(calls=answered + refused), 1.0, 10.0, 1.0)["p50_ms"] == 800


def test_any_other_status_is_a_failure() -> None:
    assert judge(Outcome(calls=[(5.0, 0.1, "INTERNAL", 0)]), 1.0, 10.0, 1.0)["failed_share"] == 1.0


def test_nothing_answered_has_no_percentiles() -> None:
    assert math.isnan(judge(Outcome(), 1.0, 10.0, 1.0)["p99_ms"])


def test_rounds_of_one_load_become_their_median() -> None:
    points = [{"p99_ms": ms, "rate": 5.0} for ms in (10.0, 90.0, 20.0)]
    assert median_of(points) == {"p99_ms": 20.0, "rate": 5.0, "rounds": 3}
