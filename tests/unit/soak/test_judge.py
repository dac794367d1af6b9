"""The judge of a soak on synthetic series: leaks are found, mere fluctuations are not."""

import math
import random
from collections.abc import Callable, Mapping, Sequence

import pytest

from tests.soak.judge import judge

HOUR = [5.0 * number for number in range(720)]
CHANCE = random.Random(7)


def noise(size: float) -> float:
    return CHANCE.gauss(0.0, size)


def saw_tooth(second: float) -> float:
    """Return the memory of reloads: every four minutes another version is loaded for two."""
    return 120.0 * (second % 240 < 120) + 30.0 * (second % 120) / 120


def steady(_: float) -> float:
    return 20.0


def found(
    memory: Callable[[float], float] = lambda _: 300.0,
    seconds: Sequence[float] = HOUR,
    calls: Mapping[str, Sequence[tuple[float, float]]] | None = None,
    counts: Mapping[str, Callable[[float], float]] | None = None,
) -> list[str]:
    series = {"rss_mib": [memory(second) for second in seconds]}
    for name in ("threads", "descriptors", "tasks"):
        count = (counts or {}).get(name, steady)
        series[name] = [count(second) for second in seconds]
    return judge(seconds, series, calls or {})


@pytest.mark.parametrize(
    "memory",
    [
        lambda _: 300.0,
        lambda second: 300.0 + saw_tooth(second) + noise(5.0),
        lambda second: 300.0 + 40.0 * (1 - math.exp(-second / 300)),  # warms up more slowly than it should
    ],
    ids=["flat", "saw-tooth", "warm-up"],
)
def test_memory_that_only_moves_is_no_leak(memory: Callable[[float], float]) -> None:
    assert found(memory) == []


@pytest.mark.parametrize("other", [lambda _: noise(20.0), saw_tooth], ids=["noise", "saw-tooth"])
def test_a_leak_is_found_under_what_moves(other: Callable[[float], float]) -> None:
    (line,) = found(lambda second: 300.0 + 2.0 * second / 60 + other(second))
    assert line.startswith("memory grows by ")


@pytest.mark.parametrize("name", ["threads", "descriptors", "tasks"])
def test_counts_that_come_back_are_fine_and_others_are_found(name: str) -> None:
    def busy(second: float) -> float:
        return 20.0 + abs(noise(10.0)) + 8 * (second % 60 < 10)

    assert found(counts={name: busy}) == []
    (line,) = found(counts={name: lambda second: busy(second) + second // 240})
    assert line.startswith(f"{name}: ")


def latencies(ms: Callable[[float], float], per_second: int = 2) -> list[tuple[float, float]]:
    return [
        (number / per_second, max(ms(number / per_second) * CHANCE.lognormvariate(0, 0.5), 0.1))
        for number in range(3600 * per_second)
    ]


def test_a_flat_p99_is_fine_and_one_that_grows_is_found() -> None:
    assert found(calls={"one": latencies(lambda _: 50.0)}) == []
    (line,) = found(calls={"one": latencies(lambda _: 50.0), "html": latencies(lambda second: 50.0 + second / 30)})
    assert "'html'" in line
