"""The cost of a sequence by number of running ones, lengths of sources and outputs, and configured slots; and memory.

One runner per bundle; the shapes alternate in every round, and the best round counts.
"""

import gc
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
import numpy as np
import psutil

from benchmarks.models import MODELS, PRECISIONS, prepare
from benchmarks.report import write_records
from service.bundle.manifest import Manifest
from service.engine.config import EngineConfig
from service.engine.runner import EncodeJob, Fetch, Rows
from service.engine.runtime.onnx_runner import OnnxRunner
from service.engine.runtime.session import SessionConfig

CONCURRENCIES = (1, 2, 4, 8, 16, 32, 64)
SOURCE_LENGTHS = (8, 16, 32, 64, 128)
OUTPUT_LENGTHS = (1, 16, 32, 64, 120)
SLOT_COUNTS = (8, 64, 256)
DEFAULT_BATCH, DEFAULT_SOURCE, DEFAULT_STEPS = 8, 24, 16
CAPACITY = 128
GREEDY = Fetch(next_ids=True, next_log_probs=False, num_candidates=0)


@click.command()
@click.option("--model", "models", multiple=True, type=click.Choice(sorted(MODELS)), help="Only these.")
@click.option("--precision", default="int8", show_default=True, type=click.Choice(PRECISIONS))
@click.option("--rounds", default=8, show_default=True)
@click.option("--threads", default=0, help="0: one per CPU.")
def main(models: tuple[str, ...], precision: str, rounds: int, threads: int) -> None:
    """Measure, print and write build/bench/scale.json."""
    records: list[dict[str, Any]] = []
    for name in models or tuple(MODELS):
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
        run_steps(runner, min(slots, 64), DEFAULT_SOURCE, 2)
        mib = (process.memory_info().rss - before) / 2**20
        del runner
        records.append(
            _record("memory", "configured slots", slots, "MiB a runner adds", mib, f"{slots} slots: {mib:.0f} MiB more")
        )
    return records


def _costs(bundle: Path, rounds: int, threads: int) -> list[dict[str, Any]]:
    runner = load_runner(bundle, max(CONCURRENCIES), threads)
    shapes = [
        *(("concurrency", batch, batch, DEFAULT_SOURCE, DEFAULT_STEPS) for batch in CONCURRENCIES),
        *(("source length", length, DEFAULT_BATCH, length, DEFAULT_STEPS) for length in SOURCE_LENGTHS),
        *(("output length", length, DEFAULT_BATCH, DEFAULT_SOURCE, length) for length in OUTPUT_LENGTHS),
    ]
    best = [(float("inf"), float("inf"))] * len(shapes)
    for _ in range(rounds + 1):  # the first one also warms up; it is never the best
        for number, (_, _, batch, source, steps) in enumerate(shapes):
            encode, step = run_steps(runner, batch, source, steps)
            best[number] = min(best[number][0], encode), min(best[number][1], step)
    records = []
    for (kind, x, batch, source, steps), (encode, step) in zip(shapes, best, strict=True):
        line = (
            f"batch {batch}, source {source}, {steps} steps: encode {encode * 1e3:.2f} ms, step {step * 1e3:.3f} ms, "
            f"{step / batch * 1e3:.3f} ms per token"
        )
        names = {"concurrency": "rows", "source length": "source tokens", "output length": "output tokens"}
        record = _record(f"step, by {kind}", names[kind], x, "ms a step", step * 1e3, line)
        records.append({**record, "batch": batch, "encode_ms": encode * 1e3, "step_ms": step * 1e3})
    return records


def run_steps(runner: OnnxRunner, batch: int, source_tokens: int, num_steps: int) -> tuple[float, float]:
    """Return seconds of one encoder run, and mean seconds of a step over `num_steps` from empty caches."""
    rng = np.random.default_rng(1)
    sources: Sequence[Sequence[int]] = rng.integers(40, 8000, (batch, source_tokens)).tolist()
    started = time.perf_counter()
    runner.encode([EncodeJob(source, [row]) for row, source in enumerate(sources)])
    encoded = time.perf_counter()
    token_ids = np.full(batch, runner.spec.decoder_start_id, np.int64)
    lengths = np.zeros(batch, np.int32)
    limits = np.full(batch, runner.spec.kv_capacity, np.int32)
    source_lengths = np.full(batch, source_tokens, np.int32)
    for _ in range(num_steps):
        output = runner.run(Rows(token_ids, lengths, source_lengths, limits), GREEDY, 1)
        assert output.next_ids is not None
        token_ids[:] = output.next_ids[:, 0]
        lengths += 1
    return encoded - started, (time.perf_counter() - encoded) / num_steps


def load_runner(bundle: Path, slots: int, threads: int) -> OnnxRunner:
    """Return a runner with empty caches; its encoder run fits the longest sources of the fullest batch."""
    config = EngineConfig(max_slots=slots, kv_capacity=CAPACITY, max_encode_tokens=64 * CAPACITY)
    runner = OnnxRunner.load(bundle, Manifest.load(bundle), config, SessionConfig(intra_op_threads=threads))
    runner.reset()
    return runner


def _record(kind: str, x_name: str, x: float, y_name: str, y: float, line: str) -> dict[str, Any]:
    return {"kind": kind, "x_name": x_name, "x": x, "y_name": y_name, "y": y, "line": line}


if __name__ == "__main__":
    main()
