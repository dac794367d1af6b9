"""Which rates to try, and the highest one that keeps the objective. Pure: no clock, no network."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

_FIRST = 0.75  # of the capacity: most objectives are kept there, and few much above
_MOST = 1.05  # of it, and
_BEYOND = 1.25  # of a rate that was kept, are tried next: what a closed loop found may be too low
_TRIES_IF_DISTURBED = 3
_CAP = 10.0  # times the objective; beyond it, how much longer says nothing


@dataclass(frozen=True, slots=True)
class Trial:
    """A rate that was tried, in calls per second, and its 99th percentile in seconds, of all calls, failed ones too.

    It is disturbed if other processes took a part of the server's CPUs.
    """

    rate: float
    p99_seconds: float
    is_disturbed: bool = False


def next_rate(capacity: float, objective_seconds: float, trials: Sequence[Trial]) -> float:
    """Return the rate to try next: halfway between those that keep the objective and those that don't.

    One that did not, but was disturbed, is tried again at once. Others are not: with a second chance for each, rates
    that are too high would pass by luck.
    """
    if not trials:
        return _FIRST * capacity
    last = trials[-1]
    tries = sum(trial.rate == last.rate for trial in trials)
    if objective_seconds < last.p99_seconds and last.is_disturbed and tries < _TRIES_IF_DISTURBED:
        return last.rate
    best = best_of_each(trials)
    kept = [trial.rate for trial in best if trial.p99_seconds <= objective_seconds]
    lost = [trial.rate for trial in best if trial.p99_seconds > objective_seconds]
    low = max(kept, default=0.0)
    ceiling = max(_MOST * capacity, _BEYOND * low)
    return (low + min((rate for rate in lost if rate > low), default=ceiling)) / 2


def best_of_each(trials: Sequence[Trial]) -> list[Trial]:
    """Return the best trial of each rate, by rate: disturbances only add to latencies."""
    best: dict[float, Trial] = {}
    for trial in trials:
        found = best.setdefault(trial.rate, trial)
        if trial.p99_seconds < found.p99_seconds:
            best[trial.rate] = trial
    return [best[rate] for rate in sorted(best)]


def highest_rate(objective_seconds: float, trials: Sequence[Trial]) -> float:
    """Return the highest rate that keeps the objective; 0 if none of those tried does.

    Latencies are first made to rise with the rate, by averaging neighbours that don't (in their logarithms); the rate
    is then read off between the neighbours of the objective.
    """
    ceiling = math.log(_CAP * objective_seconds)
    rates: list[float] = []
    levels: list[tuple[float, int]] = []  # mean logarithm, number of trials
    for trial in best_of_each(trials):
        rates.append(trial.rate)
        levels.append((min(math.log(max(trial.p99_seconds, 1e-6)), ceiling), 1))
        while len(levels) > 1 and levels[-2][0] > levels[-1][0]:
            (first, one), (second, two) = levels[-2:]
            levels[-2:] = [((first * one + second * two) / (one + two), one + two)]
    smooth = [level for level, count in levels for _ in range(count)]
    goal = math.log(objective_seconds)
    kept = sum(level <= goal for level in smooth)
    if kept in (0, len(smooth)):
        return rates[-1] if kept else 0.0
    low, high = smooth[kept - 1], smooth[kept]
    return rates[kept - 1] + (rates[kept] - rates[kept - 1]) * (goal - low) / (high - low)
