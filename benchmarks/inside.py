"""Measurements inside the engine: waits for a slot, and the share of Python.

- A single sentence during a call of a thousand: its wait for a slot, in engine turns.
- The share of the engine threads' time outside ONNX Runtime, with 1, 8 and 32 rows in use.
"""

import contextlib
import itertools
import statistics
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import numpy as np

from benchmarks.measures import percentile
from benchmarks.models import MODELS, PRECISIONS, prepare
from benchmarks.report import write_records
from benchmarks.workload import BATCHES, held_out_texts, length_penalty_of
from service.bundle.manifest import Manifest
from service.domain.call import Call, origin_of_call
from service.domain.options import DecodingOptions
from service.engine.config import EngineConfig
from service.engine.generate import OfflineEngine
from service.engine.reports import TurnStats
from service.engine.runtime.session import Binding, GraphSession, SessionConfig
from service.engine.sequence import Sequence, SequenceStatus
from service.text.tokenizers import load_tokenizer

SERVED_SLOTS = 64
CALL_OF_A_THOUSAND = 1000
NUM_SINGLES = 100
ROUNDS = 3


@click.command()
@click.option("--model", default="en-de", show_default=True, type=click.Choice(sorted(MODELS)))
@click.option("--precision", default="int8", show_default=True, type=click.Choice(PRECISIONS))
def main(model: str, precision: str) -> None:
    """Measure, print and write build/bench/inside.json."""
    bundle = prepare(MODELS[model], precision, click.echo)
    sources = source_ids(bundle)
    common = {"model": model, "engine": "dragoman", "precision": precision, "decode": "greedy"}
    records: list[dict[str, Any]] = []
    records.append({**common, **waiting_for_a_slot(bundle, sources)})
    for batch in BATCHES:
        rounds = [python_share(bundle, sources, batch) for _ in range(ROUNDS)]
        records.append({**common, **min(rounds, key=lambda each: each["python_share"])})
    for record in records:
        click.echo(", ".join(f"{name} {_shown(value)}" for name, value in record.items() if name not in common))
    click.echo(f"Wrote {write_records('inside', records)}.")


def source_ids(bundle: Path) -> list[tuple[int, ...]]:
    """Return the held-out sentences as token ids."""
    manifest = Manifest.load(bundle)
    tokenizer = load_tokenizer(manifest.tokenizer, bundle)
    return [manifest.source_ids(tokenizer.encode(text), manifest.first_pair) for text in held_out_texts()]


def waiting_for_a_slot(bundle: Path, sources: list[tuple[int, ...]]) -> dict[str, Any]:
    """Submit single sentences at random moments while a call of a thousand keeps every slot busy."""
    with _Running(bundle, SERVED_SLOTS) as engine:
        rng = np.random.default_rng(3)
        singles: list[Sequence] = []
        big: list[Sequence] = []
        outcomes = []
        while len(singles) < NUM_SINGLES:
            if sum(sequence.status is not SequenceStatus.FINISHED for sequence in big) < CALL_OF_A_THOUSAND // 2:
                more = engine.sequences(f"big-{len(big)}", sources, CALL_OF_A_THOUSAND)
                big += more
                engine.submit(more)
            time.sleep(float(rng.uniform(0.005, 0.05)))
            [single] = engine.sequences(f"single-{len(singles)}", [sources[len(singles)]], 1)
            singles.append(single)
            outcomes.append(engine.submit([single]))
        for outcome in outcomes:
            outcome.result()
        steps = [stats.run_seconds for _, stats in engine.turns if stats.num_encoded]
        turn_ends = [
            np.array([stats.ended_seconds for thread, stats in engine.turns if thread == worker])
            for worker in {thread for thread, _ in engine.turns}
        ]
    # A single sentence that arrived during a turn could not join it: count the turns that ended between its arrival and
    # its admission, on the worker that had most of them.
    waits = [
        max(int(((ends > one.arrived_seconds) & (ends <= one.admitted_seconds)).sum()) for ends in turn_ends)
        for one in singles
    ]
    return {
        "kind": "single while a call of 1000 runs",
        "wait_steps_p50": percentile(waits, 0.5),
        "wait_steps_p99": percentile(waits, 0.99),
        "wait_ms_p50": percentile([one.admitted_seconds - one.arrived_seconds for one in singles], 0.5) * 1e3,
        "step_ms_median": statistics.median(steps) * 1e3,
        "singles": len(singles),
        "slots": SERVED_SLOTS,
    }


def python_share(bundle: Path, sources: list[tuple[int, ...]], batch: int) -> dict[str, Any]:
    """Return the share of the workers' time outside ONNX Runtime while all of `batch` slots are in use.

    It includes waits for other workers' Python (the interpreter's lock).
    """
    with _timed_graphs() as runs, _Running(bundle, batch) as engine:
        engine.submit(engine.sequences("python", sources, CALL_OF_A_THOUSAND)).result()
    workers = {thread for thread, _ in engine.turns}
    slots = max(stats.batch_size for _, stats in engine.turns)
    total = in_runtime = 0.0
    num_turns = 0
    for worker in workers:
        ends = [stats.ended_seconds for thread, stats in engine.turns if thread == worker and stats.batch_size == slots]
        total += ends[-1] - ends[0]
        in_runtime += sum(end - start for thread, start, end in runs if thread == worker and ends[0] < end <= ends[-1])
        num_turns += len(ends) - 1
    return {
        "kind": "Python's share of the engine thread",
        "batch": slots * len(workers),
        "workers": len(workers),
        "python_share": 1 - in_runtime / total,
        "turn_ms": total / num_turns * 1e3,
        "python_ms_per_turn": (total - in_runtime) / num_turns * 1e3,
        "turns": num_turns,
    }


class _Running:
    """An engine and the reports of its turns."""

    def __init__(self, bundle: Path, max_slots: int) -> None:
        manifest = Manifest.load(bundle)
        config = EngineConfig(max_slots=max_slots)
        self.turns: list[tuple[int, TurnStats]] = []  # with the worker's thread
        self._max_output_tokens = manifest.limits.max_output_tokens
        self._numbers = itertools.count()
        self._engine = OfflineEngine.open(bundle, manifest, config, SessionConfig(), self._note)
        self.submit = self._engine.submit

    def __enter__(self) -> "_Running":
        self._engine.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._engine.__exit__(*error)

    def sequences(self, request_id: str, sources: list[tuple[int, ...]], count: int) -> list[Sequence]:
        """Return `count` sequences of one request, arriving now."""
        now, call = time.monotonic(), Call(request_id=request_id, origin=origin_of_call())
        return [Sequence(sources[i % len(sources)], self._options(), now, call=call) for i in range(count)]

    def _options(self) -> DecodingOptions:
        return DecodingOptions(
            beam_size=1,
            length_penalty=length_penalty_of(next(self._numbers)),
            num_hypotheses=1,
            max_output_tokens=self._max_output_tokens,
        )

    def _note(self, stats: TurnStats) -> None:
        self.turns.append((threading.get_ident(), stats))


@contextlib.contextmanager
def _timed_graphs() -> Iterator[list[tuple[int, float, float]]]:
    """Record every run of a graph in ONNX Runtime during the block: thread, start and end."""
    runs: list[tuple[int, float, float]] = []
    original = GraphSession.run

    def run(self: GraphSession, binding: Binding) -> None:
        started = time.monotonic()
        original(self, binding)
        runs.append((threading.get_ident(), started, time.monotonic()))

    GraphSession.run = run  # type: ignore[method-assign]
    try:
        yield runs
    finally:
        GraphSession.run = original  # type: ignore[method-assign]


def _shown(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)


if __name__ == "__main__":
    main()
