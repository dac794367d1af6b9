"""Whether a server stayed stable: pure functions of samples taken while it worked.

A warmed-up server's memory may go up and down, with every reload for example; it must not grow in the long run.
Threads, descriptors and tasks come and go; their minimum must be the same at the end as at the beginning.
"""

import math
import statistics
from collections.abc import Mapping, Sequence

import numpy as np

from benchmarks.measures import percentile

MAX_SLOPE_MIB_PER_MINUTE = 1.0
# Allocators and caches take memory in steps: growth below this cannot be told from such steps.
MIN_GROWTH_MIB = 40.0
# Pools of threads and connections are filled on first use, which may be late.
MAX_FLOOR_GROWTH = {"threads": 2.0, "descriptors": 4.0, "tasks": 2.0}
# In a shorter run a busy machine may leave no moment without calls. What remains at its end is counted in any case.
MIN_FLOOR_SECONDS = 60.0
MAX_P99_FACTOR = 1.5
MIN_P99_DIFFERENCE_MS = 20.0
MIN_CALLS = 500  # in each third: the 99th percentile of fewer is chance
_WINDOWS = 20  # in each third
_BLOCKS = 12  # longer than most fluctuations: their means show how far a slope may be chance


def slope_per_minute(seconds: Sequence[float], values: Sequence[float]) -> float:
    """Return the slope of the best-fitting straight line (least squares); 0 for fewer than three points."""
    if len(seconds) < 3 or seconds[0] == seconds[-1]:
        return 0.0
    return float(np.polyfit(seconds, values, 1)[0]) * 60.0


def slope_error_per_minute(seconds: Sequence[float], values: Sequence[float]) -> float:
    """Return the standard error of that slope, from the deviations of twelve block means; 0 for fewer values.

    Neighbouring samples are nearly the same: taken individually, they would make any slope look certain.
    """
    if len(values) < _BLOCKS:
        return 0.0
    times = np.array([np.mean(block) for block in np.array_split(seconds, _BLOCKS)])
    means = np.array([np.mean(block) for block in np.array_split(values, _BLOCKS)])
    off = means - np.polyval(np.polyfit(times, means, 1), times)
    spread = float(np.sum((times - times.mean()) ** 2))
    return math.sqrt(float(np.sum(off**2)) / (_BLOCKS - 2) / spread) * 60.0 if spread else 0.0


def floor_growth(values: Sequence[float]) -> float:
    """Return by how much the minimum of the last third exceeds that of the first; 0 for fewer than three values."""
    third = len(values) // 3
    return min(values[-third:]) - min(values[:third]) if third else 0.0


def p99_of_thirds(calls: Sequence[tuple[float, float]]) -> list[float]:
    """Return the typical 99th percentile of first, second and last third of the time, of calls (second, milliseconds).

    It is the median over short windows, so that moments in which the machine was busy with other work count little. NaN
    where a third has too few calls.
    """
    if not calls:
        return [math.nan] * 3
    first, last = calls[0][0], calls[-1][0]
    width = (last - first) / 3 or 1.0
    found = []
    for number in range(3):
        start = first + number * width
        third = [call for call in calls if start <= call[0] < start + width or (number == 2 and call[0] == last)]
        if len(third) < MIN_CALLS:
            found.append(math.nan)
            continue
        count = min(_WINDOWS, len(third) // 100)
        windows = [third[i * len(third) // count : (i + 1) * len(third) // count] for i in range(count)]
        found.append(statistics.median(percentile([ms for _, ms in window], 0.99) for window in windows))
    return found


def judge(
    seconds: Sequence[float], series: Mapping[str, Sequence[float]], calls: Mapping[str, Sequence[tuple[float, float]]]
) -> list[str]:
    """Return what is wrong, one line each; empty if all is well.

    `series` has memory as `rss_mib`, `threads`, `descriptors` and `tasks` at `seconds`, all after the warm-up; `calls`
    has, by kind and in the order of time, when each call ended and how many milliseconds it took.
    """
    found = []
    slope = slope_per_minute(seconds, series["rss_mib"])
    error = slope_error_per_minute(seconds, series["rss_mib"])
    growth = slope * (seconds[-1] - seconds[0]) / 60.0 if seconds else 0.0
    if slope - 2 * error > MAX_SLOPE_MIB_PER_MINUTE and growth > MIN_GROWTH_MIB:
        found.append(
            f"memory grows by {slope:.2f} +- {error:.2f} MiB a minute, {growth:.0f} MiB in all; allowed: "
            f"{MAX_SLOPE_MIB_PER_MINUTE:g} a minute."
        )
    is_long = bool(seconds) and seconds[-1] - seconds[0] >= MIN_FLOOR_SECONDS
    for name, allowed in MAX_FLOOR_GROWTH.items() if is_long else ():
        if (more := floor_growth(series[name])) > allowed:
            found.append(f"{name}: {more:.0f} more at the end than at the beginning; allowed: {allowed:.0f}.")
    for kind, of_kind in calls.items():
        first, _, last = p99_of_thirds(of_kind)
        if last > first * MAX_P99_FACTOR and last > first + MIN_P99_DIFFERENCE_MS:
            found.append(
                f"calls of the kind {kind!r} became slower: p99 was {first:.0f} ms in the first third and is "
                f"{last:.0f} ms in the last; allowed: a factor of {MAX_P99_FACTOR:g}."
            )
    return found
