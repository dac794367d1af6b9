"""Checks that a step does not get slower when more capacity is configured than is used.

Two runners over the same bundle, with self-attention capacities of 64 and 512 tokens, alternate; best and median.
"""

import statistics
import time
from pathlib import Path
from typing import Any

import click
import numpy as np

from benchmarks.report import write_records
from service.bundle.manifest import Manifest
from service.engine.config import EngineConfig
from service.engine.runner import EncodeJob, Fetch, Rows
from service.engine.runtime.onnx_runner import OnnxRunner
from service.engine.runtime.session import SessionConfig

CAPACITIES = (64, 512)
BATCH_SIZES = (1, 8, 32)
SOURCE_TOKENS = 25
STEPS = 30
GREEDY = Fetch(next_ids=True, next_log_probs=False, num_candidates=0)


@click.command()
@click.option("--bundle", type=click.Path(exists=True, path_type=Path), default=Path("models/en-de/1"))
@click.option("--rounds", default=50, show_default=True)
@click.option("--threads", default=0, help="0: one per CPU.")
def main(bundle: Path, rounds: int, threads: int) -> None:
    """Print milliseconds per step for each capacity and batch size, and their ratio."""
    manifest = Manifest.load(bundle)
    runners = {
        capacity: OnnxRunner.load(
            bundle,
            manifest,
            EngineConfig(max_slots=max(BATCH_SIZES), kv_capacity=capacity),
            SessionConfig(intra_op_threads=threads),
        )
        for capacity in CAPACITIES
    }
    records: list[dict[str, Any]] = []
    for batch_size in BATCH_SIZES:
        seconds: dict[int, list[float]] = {capacity: [] for capacity in CAPACITIES}
        for runner in runners.values():
            runner.reset()
            _round(runner, batch_size, manifest.model.vocabulary_size)  # warm up
        for _ in range(rounds):
            for capacity, runner in runners.items():
                seconds[capacity].append(_round(runner, batch_size, manifest.model.vocabulary_size))
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


def _round(runner: OnnxRunner, batch_size: int, vocabulary_size: int) -> float:
    """Return mean seconds of a step over STEPS steps from empty caches."""
    rng = np.random.default_rng(1)
    sources = rng.integers(40, vocabulary_size, (batch_size, SOURCE_TOKENS)).tolist()
    runner.encode([EncodeJob(source, [row]) for row, source in enumerate(sources)])
    token_ids = np.full(batch_size, runner.spec.decoder_start_id, np.int64)
    lengths = np.zeros(batch_size, np.int32)
    limits = np.full(batch_size, runner.spec.kv_capacity, np.int32)
    source_lengths = np.full(batch_size, SOURCE_TOKENS, np.int32)
    started = time.perf_counter()
    for _ in range(STEPS):
        output = runner.run(Rows(token_ids, lengths, source_lengths, limits), GREEDY, 1)
        assert output.next_ids is not None
        token_ids[:] = output.next_ids[:, 0]
        lengths += 1
    return (time.perf_counter() - started) / STEPS


if __name__ == "__main__":
    main()
