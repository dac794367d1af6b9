"""`dragoman plan` against a sweep: the highest rate that keeps a p99, by its search and by measuring every rate.

`python -m benchmarks.planner` alternates both on the same CPUs. The sweep has nothing of the planner but the division
of the CPUs and the percentile: its callers are the load generator's, over the light channel, and it tries rates at even
distances, which are as dear as they are certain. As disturbances only add to latencies, the best of the rounds is
compared.
"""

import contextlib
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
from dataclasses import replace
from typing import Any

import click

from benchmarks.load_generator import Load
from benchmarks.report import write_records
from benchmarks.servers import running, send, serve_command
from benchmarks.workload import held_out_texts
from service.cli.percentile import percentile
from service.cli.sizing.measured_server import on_cpus

SHARES = tuple(each / 10 for each in range(2, 12))  # of the capacity
MOST_ERROR = 0.2
CONNECTIONS = 8
CALLERS = 128
LEAD_SECONDS = 1.0
CAPACITY_SECONDS = 6.0


@click.command()
@click.option("--models", default="models/en-de/1", show_default=True, help="A bundle from English into German.")
@click.option("--p99", "objectives", multiple=True, default=(50.0, 200.0), show_default=True, help="In milliseconds.")
@click.option("--threads", default=1, show_default=True, help="Of the server; the callers get the other CPUs.")
@click.option("--rounds", default=3, show_default=True)
@click.option("--seconds", default=8.0, show_default=True, help="For each rate of the sweep.")
@click.option("--plan-seconds", default=60.0, show_default=True, help="For each plan.")
def main(
    models: str, objectives: tuple[float, ...], threads: int, rounds: int, seconds: float, plan_seconds: float
) -> None:
    """Measure, print, judge and write build/bench/planner.json."""
    allowed = sorted(os.sched_getaffinity(0))
    if threads >= len(allowed):
        raise click.UsageError(f"--threads is {threads}; the callers need one of these {len(allowed)} CPUs.")
    cpus = frozenset(allowed[:threads]), frozenset(allowed[threads:])
    rates: list[float] = []
    swept: list[dict[float, float]] = []
    planned: dict[float, list[float]] = {objective: [] for objective in objectives}
    for _ in range(rounds):
        for objective in objectives:
            planned[objective].append(plan(models, objective, threads, plan_seconds))
            click.echo(f"plan, {objective:g} ms: {planned[objective][-1]:.1f} calls/s")
        swept.append(sweep(models, cpus, rates, seconds))
    best = {rate: min(each[rate] for each in swept) for rate in rates}
    records = []
    for objective in objectives:
        sweeps = [highest_kept(each, objective) for each in swept]
        record: dict[str, Any] = {
            "objective_ms": objective,
            "planned": planned[objective],
            "swept": sweeps,
            "planned_best": max(planned[objective]),
            "swept_best": highest_kept(best, objective),
            "planned_median": statistics.median(planned[objective]),
            "swept_median": statistics.median(sweeps),
        }
        error = record["planned_best"] / record["swept_best"] - 1 if record["swept_best"] else math.inf
        record |= {"error": error, "verdict": "" if abs(error) <= MOST_ERROR else "NOT WITHIN A FIFTH"}
        records.append(record)
        click.echo(
            f"{objective:g} ms: planned {record['planned_best']:.1f}, swept {record['swept_best']:.1f} calls/s (best); "
            f"{record['planned_median']:.1f}, {record['swept_median']:.1f} (median); "
            f"{error:+.0%} {record['verdict']}"
        )
    points = [{"rate": rate, "p99_ms": [each[rate] for each in swept]} for rate in rates]
    click.echo(f"Wrote {write_records('planner', [*records, *points])}.")


def plan(models: str, objective: float, threads: int, seconds: float) -> float:
    """Return the calls per second of a pod by `dragoman plan`; 0 if it found none."""
    with tempfile.NamedTemporaryFile("w", suffix=".txt", encoding="utf-8") as sample:
        sample.write("\n".join(held_out_texts()))
        sample.flush()
        finished = subprocess.run(  # an objective that can't be kept is an answer, too
            [
                *(sys.executable, "-m", "service", "plan", "--rate", "1", "--p99", f"{objective:g}ms"),
                *("--models", models, "--num-threads", str(threads), "--seconds", str(seconds)),
                *("--file", sample.name, "--format", "json"),
            ],
            stdout=subprocess.PIPE,
            text=True,
            check=False,
        )
    return float(json.loads(finished.stdout)["pod_rate"]) if finished.returncode == 0 else 0.0


def sweep(
    models: str, cpus: tuple[frozenset[int], frozenset[int]], rates: list[float], seconds: float
) -> dict[float, float]:
    """Return the p99 in milliseconds of each rate; the first sweep sets `rates`, as shares of the capacity."""
    found = {}
    with contextlib.ExitStack() as stack:
        with on_cpus(cpus[0]):
            server = stack.enter_context(running(serve_command(models, "--num-threads", str(len(cpus[0])))))
        with on_cpus(cpus[1]):
            base = Load(server.address, CAPACITY_SECONDS, connections=CONNECTIONS)
            outcome = send(replace(base, callers=CALLERS))
            capacity = sum(status == "OK" for _, _, status, _ in outcome.calls) / outcome.wall_seconds
            click.echo(f"sweep: capacity {capacity:.1f} calls/s")
            if not rates:
                rates.extend(round(share * capacity, 1) for share in SHARES)
            for number, rate in enumerate(rates):
                outcome = send(replace(base, rate=rate, seconds=LEAD_SECONDS + seconds, seed=number))
                latencies = [
                    latency if status == "OK" else math.inf
                    for scheduled, latency, status, _ in outcome.calls
                    if scheduled >= LEAD_SECONDS
                ]
                found[rate] = 1e3 * percentile(latencies, 0.99)
                click.echo(f"sweep: {rate:.1f} calls/s, p99 {found[rate]:.0f} ms")
    return found


def highest_kept(found: dict[float, float], objective: float) -> float:
    """Return the highest rate up to which every one keeps the objective, between two rates by their p99; 0 if none."""
    below: tuple[float, float] | None = None
    for rate in sorted(found):
        p99 = found[rate]
        if p99 > objective:
            if below is None:
                return 0.0
            share = (objective - below[1]) / (p99 - below[1]) if math.isfinite(p99) else 0.0
            return below[0] + (rate - below[0]) * share
        below = rate, p99
    return below[0] if below else 0.0


if __name__ == "__main__":
    main()
