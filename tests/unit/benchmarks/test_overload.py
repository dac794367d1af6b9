"""Judging a server under overload."""

import math
from typing import Any

import pytest

from benchmarks.load_generator import Outcome
from benchmarks.overload import SETTLE_SECONDS, judged, of_outcome


def point(load: float, **changed: float) -> dict[str, Any]:
    usual = {
        "goodput": 40.0,
        "goodput_per_cpu": 20.0,
        "accepted_p99_ms": 1000.0,
        "refused_p99_ms": 10.0,
        "memory_mib": 500.0,
        "other_statuses": 0,
    }
    return {"load": load, **usual, **changed}


def held(points: list[dict[str, Any]]) -> dict[str, bool]:
    return {goal: is_held for goal, (_, is_held) in judged(points).items()}


def test_a_server_that_stays_as_it_was_holds_all_goals() -> None:
    assert all(held([point(0.9), point(1.0), point(5.0)]).values())


@pytest.mark.parametrize(
    ("changed", "goal"),
    [
        ({"goodput": 27.0}, "goodput at 5x, of that at 1x"),
        ({"goodput_per_cpu": 13.0}, "the same, by the CPUs that callers left"),
        ({"accepted_p99_ms": 2001.0}, "p99 of accepted calls at 5x, of that at 0.9x"),
        ({"refused_p99_ms": 21.0}, "p99 of refusals at 5x, seconds"),
        ({"memory_mib": 700.0}, "memory at 5x, of that at 1x"),
        ({"other_statuses": 1}, "calls with another status"),
    ],
)
def test_each_goal_can_be_missed(changed: dict[str, float], goal: str) -> None:
    found = held([point(0.9), point(1.0), point(5.0, **changed)])
    assert [name for name, is_held in found.items() if not is_held] == [goal]


def test_rounds_are_compared_within_themselves() -> None:
    """A machine that is half as fast in one round changes nothing."""
    slow = [point(load, goodput=20.0, accepted_p99_ms=2000.0) for load in (0.9, 1.0, 5.0)]
    verdict = judged([point(0.9), point(1.0), point(5.0), *slow])
    assert verdict["goodput at 5x, of that at 1x"] == (1.0, True)
    assert verdict["p99 of accepted calls at 5x, of that at 0.9x"][0] == 1.0


def test_what_came_before_it_had_settled_is_not_counted() -> None:
    outcome = Outcome(
        calls=[
            (0.0, 1.0, "OK", 5),  # answered too early
            (SETTLE_SECONDS - 1, 2.0, "OK", 5),  # answered in time, sent too early
            (SETTLE_SECONDS + 1, 0.5, "OK", 5),
            (SETTLE_SECONDS + 2, 0.02, "RESOURCE_EXHAUSTED", 0),
            (SETTLE_SECONDS + 3, 0.1, "UNAVAILABLE", 0),
            (SETTLE_SECONDS + 9, 2.0, "OK", 5),  # answered after the end
        ],
        behind_seconds=[0.0, 0.0, 0.1, 0.01, 0.0, 0.0],
    )
    found = of_outcome(outcome, SETTLE_SECONDS + 10.0)
    assert found["goodput"] == pytest.approx(0.2)
    assert found["accepted_p50_ms"] == pytest.approx(400.0)
    assert found["refused_p99_ms"] == pytest.approx(10.0)
    assert (found["calls"], found["refused"], found["other_statuses"]) == (6, 1, 1)


def test_without_refusals_there_is_no_time_of_them() -> None:
    assert math.isnan(of_outcome(Outcome([(6.0, 1.0, "OK", 5)], [0.0]), 10.0)["refused_p99_ms"])
