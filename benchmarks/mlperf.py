"""MLPerf's Server and Offline scenarios, as its inference rules define them; these are no MLPerf results.

"MLPerf Inference Rules", https://github.com/mlcommons/inference_policies, inference_rules.adoc, sections 3 (scenarios)
and 5.1 (the load generator), and Reddi et al., "MLPerf Inference Benchmark", ISCA 2020.

- Server: queries of one sample arrive as a Poisson process. The metric is the highest rate at which the 99th percentile
  of all latencies, from each query's schedule on, keeps a bound. Every query must be answered: one that is refused or
  fails makes the run invalid. The rate is found by a binary search and confirmed by more runs; when one of them fails,
  the rate is lowered a little and confirmed again.
- Offline: all samples are there at the start, in any order. The metric is samples per second to the last answer.

The bound for the shipped model is that of MLPerf 0.5 and 0.7 for translation (GNMT): 250 ms. There it held at the 97th
percentile; here, as for the other tasks, at the 99th. The base shape takes some five times as long: it has 1,000 ms.

Where ours are shorter: MLPerf asks for 600 s and, for a percentile of 99 with its confidence, 270,336 queries in a
Server run, and for 600 s and 24,576 samples (or the whole data set, if that is smaller) in an Offline run; it confirms
a rate by five runs. Ours take what `Length` says, which the records repeat. Schedules are drawn by NumPy's generator
from fixed seeds, not by MLPerf's; texts of a Server run are drawn with replacement, as there.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from benchmarks.load_generator import Load
from benchmarks.servers import RunningServer
from benchmarks.serving_points import Keep, closed_loop, open_loop

BOUND_SECONDS = {"en-de": 0.25, "base": 1.0, "big": 4.0, "nllb": 8.0}
MLPERF_SECONDS, MLPERF_SERVER_QUERIES, MLPERF_OFFLINE_SAMPLES, MLPERF_CONFIRMATIONS = 600, 270_336, 24_576, 5
SAMPLES_PER_CALL = 64  # of an Offline query, which no server takes in one message


@dataclass(frozen=True, slots=True)
class Length:
    """How long the scenarios take: of each Server run and of the Offline run, in seconds at the server's capacity, and
    how many runs confirm a rate. A search ends when it knows the rate to `resolution` of the capacity."""

    seconds: float
    least_samples: int = 512
    confirmations: int = 2
    resolution: float = 0.03


def offline(server: RunningServer, load: Load, capacity: float, length: Length, keep: Keep | None) -> dict[str, Any]:
    """Return samples per second with all samples there at the start; `capacity` says how many are as many seconds."""
    num_calls = -(-max(length.least_samples, round(capacity * length.seconds)) // SAMPLES_PER_CALL)
    all_at_once = replace(load, calls_at_once=num_calls, texts_per_call=SAMPLES_PER_CALL)
    return {"samples": num_calls * SAMPLES_PER_CALL, **closed_loop(server, all_at_once, keep)}


def server_rate(
    server: RunningServer, load: Load, capacity: float, bound_seconds: float, length: Length, keep: Keep | None
) -> Iterator[dict[str, Any]]:
    """Search for the highest rate that keeps the bound, from 0 to a little above capacity, and yield each run as a
    point with `holds`; the last one also has `found_rate`."""
    points: list[dict[str, Any]] = []

    def holds(rate: float) -> bool:
        asked = replace(load, rate=rate, seconds=length.seconds, seed=load.seed + len(points))
        point = open_loop(server, asked, bound_seconds, keep)
        points.append({**point, "holds": keeps_bound(point)})
        return bool(points[-1]["holds"])

    rate = highest_rate(holds, 1.1 * capacity, length.resolution * capacity, length.confirmations)
    yield from points[:-1]
    yield {**points[-1], "found_rate": rate}


def keeps_bound(point: dict[str, Any]) -> bool:
    """Return whether a run is valid: every query was answered, and the 99th percentile keeps the bound."""
    unanswered = point["shed_share"] + point["late_share"] + point["failed_share"]
    return not unanswered and bool(point["p99_ms"] <= point["slo_ms"])


def highest_rate(holds: Callable[[float], bool], most: float, resolution: float, confirmations: int) -> float:
    """Return the highest rate below `most` that holds, by bisection, and then again `confirmations` times.

    A rate that fails to be confirmed is lowered by `resolution`, by twice that if it fails again, and so on; 0 if none
    holds.
    """
    low, high = 0.0, most
    while high - low > resolution:
        middle = (low + high) / 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    lower_by = resolution
    while low > 0 and not all(holds(low) for _ in range(confirmations)):
        low, lower_by = max(low - lower_by, 0.0), lower_by + resolution
    return low
