"""The cost of a sequence by number of running ones, lengths of sources and outputs, and capacity; memory by slots.

One runner per bundle; the shapes alternate in every round, and the best round counts.
"""

import gc
from pathlib import Path
from typing import Any

import click
import psutil

from benchmarks.models import DEFAULT_MODELS, MODELS, PRECISIONS, prepare
from benchmarks.report import write_records
from benchmarks.runner_steps import RunnerSteps

CONCURRENCIES = (1, 2, 4, 8, 16, 32, 64)
SOURCE_LENGTHS = (8, 16, 32, 64, 128)
OUTPUT_LENGTHS = (1, 16, 32, 64, 120)
SLOT_COUNTS = (8, 64, 256)
DEFAULT_BATCH, DEFAULT_SOURCE, DEFAULT_STEPS = 8, 24, 16
CAPACITY, LARGE_CAPACITY = 128, 512  # tokens of each row's cache; a step must not take longer with the larger one


@click.command()
@click.option("--model", "models", multiple=True, type=click.Choice(sorted(MODELS)), help="Only these.")
@click.option("--precision", default="int8", show_default=True, type=click.Choice(PRECISIONS))
@click.option("--rounds", default=8, show_default=True)
@click.option("--threads", default=0, help="0: one per CPU.")
def main(models: tuple[str, ...], precision: str, rounds: int, threads: int) -> None:
    """Measure, print and write build/bench/scale.json."""
    records: list[dict[str, Any]] = []
    for name in models or DEFAULT_MODELS:
        bundle = prepare(MODELS[name], precision, click.echo)
        common = {"model": name, "engine": "dragoman", "precision": precision, "rounds": rounds}
        for record in [*_memory(bundle, threads), *_costs(bundle, rounds, threads)]:
            complete = {**common, **record}
            complete["line"] = f"{name}: {record['line']}"
            click.echo(complete["line"])
            records.append(complete)
    click.echo(f"Wrote {write_records('scale', records)}.")


def _memory(bundle: Path, threads: int) -> list[dict[str, Any]]:
    """Return resident memory of a process' runner by configured slots, after a full batch has run."""
    records = []
    process = psutil.Process()
    for slots in SLOT_COUNTS:
        gc.collect()
        before = process.memory_info().rss
        runner = load_runner(bundle, slots, threads)
        runner.time(min(slots, 64), DEFAULT_SOURCE, 2)
        mib = (process.memory_info().rss - before) / 2**20
        del runner
        records.append({"slots": slots, "mib": mib, "line": f"{slots} slots: {mib:.0f} MiB more"})
    return records


def _costs(bundle: Path, rounds: int, threads: int) -> list[dict[str, Any]]:
    capacities = (CAPACITY, LARGE_CAPACITY)
    runners = {each: RunnerSteps(bundle, max(CONCURRENCIES), each, threads) for each in capacities}
    shapes = [
        *((each, batch, DEFAULT_SOURCE, DEFAULT_STEPS) for each in capacities for batch in CONCURRENCIES),
        *((CAPACITY, DEFAULT_BATCH, length, DEFAULT_STEPS) for length in SOURCE_LENGTHS),
        *((CAPACITY, DEFAULT_BATCH, DEFAULT_SOURCE, length) for length in OUTPUT_LENGTHS),
    ]
    best = [(float("inf"), float("inf"))] * len(shapes)
    for _ in range(rounds + 1):  # the first one also warms up; it is never the best
        for number, (capacity, *shape) in enumerate(shapes):
            encode, step = runners[capacity].time(*shape)
            best[number] = min(best[number][0], encode), min(best[number][1], step)
    records = []
    for (capacity, batch, source, steps), (encode, step) in zip(shapes, best, strict=True):
        line = (
            f"batch {batch}, source {source}, {steps} steps, capacity {capacity}: encode {encode * 1e3:.2f} ms, "
            f"step {step * 1e3:.3f} ms, {step / batch * 1e3:.3f} ms per token"
        )
        known = {"batch": batch, "source_tokens": source, "steps": steps, "capacity": capacity}
        records.append({**known, "encode_ms": encode * 1e3, "step_ms": step * 1e3, "line": line})
    return records


def load_runner(bundle: Path, slots: int, threads: int) -> RunnerSteps:
    """Return a runner with empty caches; its encoder run fits the longest sources of the fullest batch."""
    return RunnerSteps(bundle, slots, CAPACITY, threads)


if __name__ == "__main__":
    main()
