"""An outside client against our server: NVIDIA's perf_analyzer, unmodified, through the KServe face.

It makes its own load and takes its own times: nothing of ours is between. `make bench-peers` installs it, from
tritonclient 2.48. Calls of one held-out sentence: as many callers as asked for, each waiting for its answer, and then a
Poisson process at a share of the rate that the most callers reached.
"""

import csv
import json
import os
import resource
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from benchmarks.cpu_times import CpuTimes
from benchmarks.models import MODELS, NotPrepared, prepare
from benchmarks.report import write_records
from benchmarks.servers import RunningServer, running, serve_command
from benchmarks.workload import held_out_texts

ENVIRONMENT = Path("build/peers/perf_analyzer")
LIBRARIES = ("usr/lib/x86_64-linux-gnu", "lib/*/site-packages/nvidia/cuda_runtime/lib")
QUEUE = ("--max-queue-seconds", "86400")  # it stops at the first error
POISSON_SHARE = 0.7
STABILITY_PERCENT = "20"  # throughput and p99 of three windows in a row differ by no more than that from their mean
TRIALS = "10"


@click.command()
@click.option("--model", default="en-de", show_default=True, type=click.Choice(sorted(MODELS)))
@click.option("--precision", default="int8", show_default=True)
@click.option("--callers", multiple=True, default=(1, 16, 64), show_default=True, help="At the same time.")
@click.option("--seconds", default=5.0, show_default=True, help="Of each window; at least three are measured.")
def main(model: str, precision: str, callers: tuple[int, ...], seconds: float) -> None:
    """Measure, print and write build/bench/outside_client.json."""
    try:
        bundle = prepare(MODELS[model], precision, click.echo)
    except NotPrepared as error:
        raise click.ClickException(str(error)) from error
    records: list[dict[str, Any]] = []
    with running(serve_command(str(bundle.parents[1]), *QUEUE)) as server:
        for count in callers:
            found = measured(server, model, seconds, ("--concurrency-range", f"{count}:{count}"))
            records.append({"kind": f"{count} callers", **found})
            click.echo(line(records[-1]))
        rate = round(POISSON_SHARE * max(record["calls_per_second"] for record in records), 1)
        flags = ("--request-rate-range", f"{rate}:{rate}", "--request-distribution", "poisson")
        records.append({"kind": f"Poisson, {rate}/s", "rate": rate, **measured(server, model, seconds, flags)})
        click.echo(line(records[-1]))
    about = {"model": model, "engine": "dragoman", "precision": precision, "client": "perf_analyzer"}
    click.echo(f"Wrote {write_records('outside_client', [{**about, **record} for record in records])}.")


def measured(server: RunningServer, model: str, seconds: float, flags: Sequence[str]) -> dict[str, Any]:
    """Run perf_analyzer once and return its figures, and the CPU time that the server took.

    Raises:
        ClickException: perf_analyzer is not installed or found no stable measurement; its message is given.
    """
    if not (ENVIRONMENT / "installed").exists():
        raise click.ClickException(f"there is no perf_analyzer in {ENVIRONMENT}; run 'make bench-peers' first.")
    with tempfile.TemporaryDirectory() as folder:
        texts, figures = Path(folder) / "texts.json", Path(folder) / "figures.csv"
        texts.write_text(json.dumps(input_data(held_out_texts())), encoding="utf-8")
        command = [
            *(str(ENVIRONMENT / "bin" / "perf_analyzer"), "-m", model, "-u", server.address, "-i", "grpc", "--async"),
            *("--input-data", str(texts), "--shape", "text:1", "--percentile", "99", "-f", str(figures)),
            *("--measurement-interval", str(round(seconds * 1000)), "-s", STABILITY_PERCENT, "-r", TRIALS),
            *flags,
        ]
        before, client_before, started = server.cpu(), _client_seconds(), time.monotonic()
        run = subprocess.run(command, check=False, env=_environment(), capture_output=True, text=True)
        seconds, client = time.monotonic() - started, _client_seconds() - client_before
        spent = server.cpu() - before
        if run.returncode or not figures.exists():
            raise click.ClickException(f"perf_analyzer failed: {run.stdout[-500:]}{run.stderr[-500:]}")
        cpus = {"server_cpus": spent.total / seconds, "client_cpus": client / seconds}
        return {**figures_of(figures.read_text(encoding="utf-8"), spent), **cpus}


def input_data(texts: Sequence[str]) -> dict[str, Any]:
    """Return perf_analyzer's document of inputs: one text for each request, in turns."""
    return {"data": [{"text": {"content": [text], "shape": [1]}} for text in texts]}


def figures_of(table: str, spent: CpuTimes) -> dict[str, Any]:
    """Return the figures of perf_analyzer's CSV, which has one row, in calls per second and milliseconds.

    `engine_share` is the share of the server's CPU time that its engine's threads took.
    """
    [row] = csv.DictReader(table.splitlines())
    percentiles = {f"p{share}_ms": float(row[f"p{share} latency"]) / 1e3 for share in (50, 90, 95, 99)}
    return {
        "calls_per_second": float(row["Inferences/Second"]),
        **percentiles,
        "engine_share": spent.engine / max(spent.total, 1e-9),
    }


def line(record: Mapping[str, Any]) -> str:
    """Return a record for the terminal."""
    return (
        f"{record['kind']}: {record['calls_per_second']:.1f} calls/s, p50 {record['p50_ms']:.1f}, "
        f"p99 {record['p99_ms']:.1f} ms, {record['engine_share']:.0%} of the CPU time in the engine, "
        f"CPUs {record['server_cpus']:.2f} + {record['client_cpus']:.2f}"
    )


def _client_seconds() -> float:
    """Return the CPU time of child processes that have ended; the server has not."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _environment() -> dict[str, str]:
    root = ENVIRONMENT.resolve()
    folders = [str(path) for pattern in LIBRARIES for path in root.glob(pattern)]
    return {**os.environ, "LD_LIBRARY_PATH": ":".join(folders)}


if __name__ == "__main__":
    main()
