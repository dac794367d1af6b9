"""One load on one server, with the plain numbers needed to judge it."""

import math
import statistics
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from benchmarks.cpu_times import cpu_figures
from benchmarks.load_generator import Load, Outcome
from benchmarks.measures import percentile
from benchmarks.servers import RunningServer, send


def open_loop(server: RunningServer, load: Load, slo_seconds: float) -> dict[str, Any]:
    """Send the load and judge it by the objective: an answer is good within `slo_seconds` after its schedule.

    The same load first runs for the time of one objective, only to fill the queue.
    """
    before = server.cpu()
    until = slo_seconds + load.seconds
    outcome = send(replace(load, seconds=until))
    spent = server.cpu() - before
    return {
        "rate": load.rate,
        "slo_ms": slo_seconds * 1e3,
        "seed": load.seed,
        "seconds": load.seconds,
        **judge(outcome, slo_seconds, until, slo_seconds),
        **cpu_figures(spent, outcome),
        "server_memory_mib": server.memory_mib(),
        "largest_send_delay_ms": outcome.largest_delay_seconds * 1e3,
    }


def closed_loop(server: RunningServer, load: Load) -> dict[str, Any]:
    """Let callers wait for their answers; return sentences and output tokens per second from the first call to the
    last answer.

    The last answers are counted with their time: as batches end together, any window would be arbitrary.
    """
    before = server.cpu()
    outcome = send(load)
    spent = server.cpu() - before
    latencies = [latency for _, latency, status, _ in outcome.calls if status == "OK"]
    return {
        "sentences_per_second": len(latencies) / outcome.wall_seconds,
        "tokens_per_second": sum(tokens for _, _, status, tokens in outcome.calls if status == "OK")
        / outcome.wall_seconds,
        "p50_ms": percentile(latencies, 0.5) * 1e3,
        "p99_ms": percentile(latencies, 0.99) * 1e3,
        "failed_calls": len(outcome.calls) - len(latencies),
        **cpu_figures(spent, outcome),
    }


def judge(outcome: Outcome, since: float, until: float, slo_seconds: float) -> dict[str, float]:
    """Return latency percentiles of the answered calls, goodput, and the shares of calls that were shed or failed.

    Only calls scheduled from `since` to `until`, in seconds, count; latencies are from the schedule, not from sending.
    Goodput counts the good answers that arrived in that time: calls still queued at its end were not done in it.
    """
    calls = [call for call in outcome.calls if since <= call[0] < until]
    latencies = [latency for _, latency, status, _ in calls if status == "OK"]
    of_status = [status for _, _, status, _ in calls]
    num_good = sum(
        status == "OK" and latency <= slo_seconds and since <= scheduled + latency < until
        for scheduled, latency, status, _ in outcome.calls
    )
    return {
        "calls": len(calls),
        "p50_ms": percentile(latencies, 0.5) * 1e3,
        "p90_ms": percentile(latencies, 0.9) * 1e3,
        "p99_ms": percentile(latencies, 0.99) * 1e3,
        "goodput": num_good / (until - since),
        "shed_share": of_status.count("RESOURCE_EXHAUSTED") / len(calls) if calls else math.nan,
        "late_share": of_status.count("DEADLINE_EXCEEDED") / len(calls) if calls else math.nan,
        "failed_share": sum(s not in ("OK", "RESOURCE_EXHAUSTED", "DEADLINE_EXCEEDED") for s in of_status)
        / max(len(calls), 1),
    }


def median_of(points: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return one point for several rounds of the same load: the median of every number, and the number of rounds."""
    names = dict.fromkeys(name for point in points for name in point)
    merged = {name: statistics.median(point[name] for point in points if name in point) for name in names}
    return {**merged, "rounds": len(points)}
