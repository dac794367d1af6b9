"""The autoscalers: what their query answers, by a real Prometheus, and what replicas a day of load gets with it."""

import functools
import itertools
import math
import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
import yaml

from benchmarks.autoscaling import TARGET, shipped_query
from tests.call_kinds import KINDS
from tests.deploy.autoscaler import Autoscaler, Minute, Pod, day
from tests.deploy.deployed import Series, promtool
from tests.deploy.manifests import KUBERNETES

HPA: dict[str, Any] = yaml.safe_load((KUBERNETES / "components" / "hpa" / "autoscaler.yaml").read_text())["spec"]
TRANSLATE = "dragoman.v1.TranslationService/Translate"

# --- the query


def pod(
    name: str,
    busy: dict[str, float],
    calls: float = 100.0,
    refused: float = 0.0,
    *,
    deployment: str = "dragoman",
    namespace: str = "dragoman",
    batches: int = 2,
    method: str = TRANSLATE,
    **others: float,
) -> Series:
    """Return a pod's series: the share of time in which each model is busy, calls and refusals per second, and other
    rejections by reason."""
    labels = f'namespace="{namespace}",pod="{name}",deployment="{deployment}",job="dragoman",instance="{name}:9464"'
    of = f'{labels},method="{method}",kind="{KINDS[method]}"'
    probe = f'{labels},method="grpc.health.v1.Health/Check",kind="other"'
    rates = {
        f'dragoman_requests_total{{{of},code="OK"}}': calls - refused - sum(others.values()),
        f'dragoman_requests_total{{{of},code="RESOURCE_EXHAUSTED"}}': refused + sum(others.values()),
        f'dragoman_requests_total{{{probe},code="OK"}}': 50.0,
        f'dragoman_requests_total{{{probe},code="RESOURCE_EXHAUSTED"}}': 50.0,
        f'dragoman_rejected_total{{{probe},reason="memory_full"}}': 50.0,
        f'dragoman_rejected_total{{{of},reason="queue_full"}}': refused,
        **{f'dragoman_rejected_total{{{of},reason="{reason}"}}': rate for reason, rate in others.items()},
        **{
            f'dragoman_engine_busy_seconds_total{{{labels},model="{model}"}}': share * batches
            for model, share in busy.items()
        },
    }
    series = [{"series": each, "values": f"0+{15 * rate:.6f}x20"} for each, rate in rates.items()]
    gauges = [f'dragoman_engine_batches{{{labels},model="{model}"}}' for model in busy]
    return series + [{"series": gauge, "values": f"{batches}x20"} for gauge in gauges]


CASES: dict[str, tuple[Series, float | None]] = {
    "half of what a pod can do": (pod("a", {"en-de": 0.5}), 0.5),
    "a model that is not called changes nothing": (pod("a", {"en-de": 0.5, "en-hi": 0.0}), 0.5),
    "two models share what it can do": (pod("a", {"en-de": 0.5, "en-hi": 0.2}), 0.7),
    "nothing to do": (pod("a", {"en-de": 0.0}, calls=0.0), 0.0),
    "all the time": (pod("a", {"en-de": 1.0}), 1.0),
    "twice of what it can do": (pod("a", {"en-de": 1.0}, refused=50.0), 2.0),
    "all calls are refused": (pod("a", {"en-de": 1.0}, refused=100.0), 10.0),
    "messages find no memory": (pod("a", {"en-de": 0.6}, memory_full=50.0), 1.2),
    "a caller's quota is not the pod's load": (pod("a", {"en-de": 0.6}, quota=50.0), 0.6),
    "one of two is busy": (pod("a", {"en-de": 0.9}) + pod("b", {"en-de": 0.1}, batches=4), 1.0),
    "one that refuses asks for more, whatever the other does": (
        pod("a", {"en-de": 0.9}, refused=50.0) + pod("b", {"en-de": 0.1}),
        1.9,
    ),
    "another namespace": (pod("a", {"en-de": 0.5}) + pod("a", {"en-de": 0.9}, namespace="staging"), 0.5),
    "another Deployment": (pod("a", {"en-de": 0.5}) + pod("b", {"en-de": 0.9}, deployment="canary"), 0.5),
    "before the first call": (
        [each for each in pod("a", {"en-de": 0.0}, calls=0.0) if "requests" not in each["series"]],
        0.0,
    ),
    "before the first scrape of a counter of refusals": (
        [each for each in pod("a", {"en-de": 0.5}) if "rejected" not in each["series"]],
        0.5,
    ),
    "a server of a release without kinds, in an update": (
        [
            {**each, "series": each["series"].replace(',kind="translate"', "")}
            for each in pod("a", {"en-de": 1.0}, refused=50.0)
            if "Health" not in each["series"]
        ],
        2.0,
    ),
    "no server": ([], None),
    **{f"half is refused: {method}": (pod("a", {"en-de": 1.0}, refused=50.0, method=method), 2.0) for method in KINDS},
    # Which tells nothing of the load; it was once ten times as much where a list forgot the method.
    **{
        f"1 of 101 is refused: {method}": (pod("a", {"en-de": 0.5}, calls=101.0, refused=1.0, method=method), 0.505)
        for method in KINDS
    },
}


def told(cases: Iterable[tuple[Series, float | None]], folder: Path) -> str:
    """Return what promtool complains of: loads that are not the expected ones."""
    samples = [(series, [] if load is None else [{"labels": "{}", "value": load}]) for series, load in cases]
    return promtool(f"round({shipped_query()}, 0.001)", samples, 3, folder)


def test_what_the_query_answers(tmp_path: Path) -> None:
    assert told(CASES.values(), tmp_path) == ""
    assert told([(CASES["half of what a pod can do"][0], 0.6)], tmp_path)


# --- a day


@functools.cache
def offered() -> list[float]:
    """Return the load of each minute of a day, in pods. Synthetic: a night, a ramp of two hours, office hours, a peak
    at noon that comes within four minutes, an evening; with 4 % of noise from minute to minute."""
    corners = {0: 0.4, 300: 0.25, 420: 0.5, 540: 3.2, 718: 3.4, 722: 5.2, 750: 5.0, 770: 3.0, 840: 3.6, 1020: 3.2}
    corners |= {1140: 1.4, 1260: 1.6, 1380: 0.7, 1440: 0.4}
    chance, found, places = random.Random(3), [], sorted(corners)
    for minute in range(1440):
        end = next(place for place in places if place > minute)
        start = places[places.index(end) - 1]
        load = corners[start] + (corners[end] - corners[start]) * (minute - start) / (end - start)
        found.append(load * chance.uniform(0.96, 1.04))
    return found


@functools.cache
def played() -> tuple[Minute, ...]:
    return tuple(day(HPA, offered()))


def changes(minutes: tuple[Minute, ...]) -> list[tuple[int, int]]:
    """Return when the number of replicas changed, in minutes, and by how many."""
    pairs = enumerate(itertools.pairwise(minutes), start=1)
    return [(at, b.replicas - a.replicas) for at, (a, b) in pairs if a.replicas != b.replicas]


def test_no_minute_refuses_more_than_a_hundredth() -> None:
    assert max(minute.refused_share for minute in played()) <= 0.01


def test_replicas_follow_the_load_without_flapping() -> None:
    changed = changes(played())
    turns = [(at, later) for (at, by), (later, next_by) in itertools.pairwise(changed) if by * next_by < 0]
    assert all(later - at >= 5 for at, later in turns), turns
    assert len(turns) <= 8
    assert max(minute.replicas for minute in played()) >= math.ceil(5.2 / TARGET)
    assert played()[-1].replicas == HPA["minReplicas"]
    spent = sum(minute.replicas for minute in played())
    needed = sum(max(math.ceil(minute.offered / TARGET), HPA["minReplicas"]) for minute in played())
    assert spent < 1.15 * needed


def test_a_signal_that_does_not_tell_the_load_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shares of slots in use, measured at these loads: they are high beyond saturation only."""
    slots = {0.0: 0.0, 0.46: 0.011, 0.69: 0.048, 0.92: 0.094, 1.23: 0.339, 1.7: 0.387}
    load_of = Pod.load

    def slots_of(pod: Pod, now: float) -> float | None:
        load = load_of(pod, now)
        return None if load is None else next(share for at, share in reversed(slots.items()) if load >= at)

    monkeypatch.setattr(Pod, "load", slots_of)
    assert max(minute.refused_share for minute in day(HPA, offered()[400:760])) > 0.1


# --- the autoscaler itself


def test_small_differences_change_nothing() -> None:
    assert Autoscaler(HPA).replicas(0, 4, 4 * TARGET * 1.09) == 4
    assert Autoscaler(HPA).replicas(0, 4, 4 * TARGET * 1.11) == 5
    assert Autoscaler(HPA).replicas(0, 4, None) == 4


def test_pods_come_at_once_and_go_one_a_minute_after_five() -> None:
    scaler = Autoscaler(HPA)
    assert scaler.replicas(0, 2, 6.5) == 4
    assert scaler.replicas(15, 4, 6.5) == 4
    assert scaler.replicas(30, 4, 6.5) == 8
    assert [scaler.replicas(now, 8, 0.1) for now in range(45, 330, 15)] == [8] * 19
    assert [scaler.replicas(330, 8, 0.1), scaler.replicas(345, 7, 0.1), scaler.replicas(390, 7, 0.1)] == [7, 7, 6]
