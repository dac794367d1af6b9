"""Checks that a step does not get slower when more capacity is configured than is used.

Two runners over the same bundle, with self-attention capacities of 64 and 512 tokens, alternate; best and median.
"""

import statistics
from pathlib import Path
from typing import Any

import click

from benchmarks.report import write_records
from benchmarks.runner_steps import RunnerSteps
from benchmarks.workload import BATCHES
from service.bundle.manifest import Manifest

CAPACITIES = (64, 512)
SOURCE_TOKENS = 25
STEPS = 30


@click.command()
@click.option("--bundle", type=click.Path(exists=True, path_type=Path), default=Path("models/en-de/1"))
@click.option("--rounds", default=50, show_default=True)
@click.option("--threads", default=0, help="0: one per CPU.")
def main(bundle: Path, rounds: int, threads: int) -> None:
    """Print milliseconds per step for each capacity and batch size, and their ratio."""
    manifest = Manifest.load(bundle)
    runners = {capacity: RunnerSteps(bundle, max(BATCHES), capacity, threads) for capacity in CAPACITIES}
    records: list[dict[str, Any]] = []
    for batch_size in BATCHES:
        seconds: dict[int, list[float]] = {capacity: [] for capacity in CAPACITIES}
        for runner in runners.values():
            runner.time(batch_size, SOURCE_TOKENS, STEPS)  # warm up
        for _ in range(rounds):
            for capacity, runner in runners.items():
                seconds[capacity].append(runner.time(batch_size, SOURCE_TOKENS, STEPS)[1])
        best = {capacity: min(times) * 1e3 for capacity, times in seconds.items()}
        ratio = best[CAPACITIES[1]] / best[CAPACITIES[0]]
        for capacity, times in seconds.items():
            records.append(
                {
                    "model": manifest.name,
                    "engine": "dragoman",
                    "batch_size": batch_size,
                    "kv_capacity": capacity,
                    "best_ms": best[capacity],
                    "median_ms": statistics.median(times) * 1e3,
                }
            )
        shown = ", ".join(f"capacity {capacity}: {ms:.3f} ms" for capacity, ms in best.items())
        click.echo(f"batch {batch_size:2d}: {shown}, ratio {ratio:.3f}")
    click.echo(f"Wrote {write_records('step_time', records)}.")


if __name__ == "__main__":
    main()
