"""Tokens per second without network and text: our engine, CTranslate2 and transformers on the same weights.

Every engine runs in a separate process; in each round they run in turn, with the others stopped.
"""

import time
from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import click

from benchmarks.kept import kept
from benchmarks.measures import rates
from benchmarks.models import (
    BASE_SOURCE_TOKENS,
    DEFAULT_MODELS,
    MODELS,
    BenchModel,
    NotPrepared,
    prepare,
    prepare_checkpoint,
    prepare_ct2,
)
from benchmarks.peers.peer import ENGINES, PeerSettings
from benchmarks.peers.process import PeerProcess, Timing
from benchmarks.peers.screening import COMPUTE_TYPES, LARGE_TYPES, Row, finalists, screen
from benchmarks.report import write_records
from benchmarks.tables import bars, of_engines
from benchmarks.workload import BATCHES, Task, batches_by_length, held_out_texts, random_sources, spread
from service.bundle.manifest import Manifest
from service.engine.cpus import available_cpus
from service.text.tokenizers import load_tokenizer

BEAM_SIZES = {"greedy": 1, "beam4": 4}
SCREENED: tuple[Row, ...] = (("greedy", 1), ("greedy", 8), ("greedy", 32), ("beam4", 8))
NUM_SENTENCES = 32
FAST_ENGINES = ("dragoman", "ctranslate2")
SLOW_PEER_ROUNDS = 3  # transformers: an order of magnitude slower, and steady
MIN_ROUNDS, MAX_ROUNDS = 3, 30


@click.command()
@click.option(
    "--model",
    "models",
    multiple=True,
    type=click.Choice(sorted(MODELS)),
    help="Only these.  [default: all but large ones]",
)
@click.option("--engine", "engines", multiple=True, type=click.Choice(ENGINES), help="Only these.")
@click.option("--decode", "decodes", multiple=True, type=click.Choice(sorted(BEAM_SIZES)), help="Only these.")
@click.option("--batch", "batch_sizes", multiple=True, type=click.IntRange(1, 128), help="In place of 1, 8 and 32.")
@click.option("--threads", default=min(2, available_cpus()), show_default=True, help="Of every engine.")
@click.option("--seconds", default=25.0, show_default=True, help="For each row of the table.")
@click.option("--finalists", "num_finalists", default=3, show_default=True, help="Of CTranslate2's settings, in a row.")
@click.option("--name", default="offline", show_default=True, help="Of the file in build/bench.")
def main(
    models: tuple[str, ...],
    engines: tuple[str, ...],
    decodes: tuple[str, ...],
    batch_sizes: tuple[int, ...],
    threads: int,
    seconds: float,
    num_finalists: int,
    name: str,
) -> None:
    """Measure, print and write build/bench/offline.json."""
    records: list[dict[str, Any]] = []
    for model_name in models or DEFAULT_MODELS:
        model = MODELS[model_name]
        with ExitStack() as stack:
            compared = engines or (FAST_ENGINES if model.is_large else ENGINES)
            try:
                bench = _Offline(model, compared, threads, num_finalists, stack)
            except NotPrepared as error:
                raise click.ClickException(str(error)) from error
            for decode in decodes or BEAM_SIZES:
                for batch in batch_sizes or BATCHES:
                    records += bench.measure((decode, batch), seconds)
                    path = write_records(name, records)  # so that earlier measurements are never lost
    click.echo(bars(list(of_engines(records))))
    click.echo(f"Wrote {path}.")


class _Offline:
    """One model on all engines."""

    def __init__(
        self, model: BenchModel, engines: Sequence[str], threads: int, num_finalists: int, stack: ExitStack
    ) -> None:
        self._model = model
        self._threads = threads
        self._num_finalists = num_finalists
        self._stack = stack
        self._processes: dict[str, PeerProcess] = {}
        self._others: list[PeerSettings] = []  # all engines but CTranslate2
        self._screened: list[dict[str, Any]] = []
        bundle = prepare(model, "int8", click.echo)
        self._sources = _sources(model, bundle)
        if "dragoman" in engines:
            options = {"intra_op_threads": threads, "allow_spinning": False}
            self._others.append(PeerSettings("dragoman", "int8", str(bundle), options))
        if "transformers" in engines:
            checkpoint = prepare_checkpoint(model)
            self._others.append(PeerSettings("transformers", "float32", str(checkpoint), {"threads": threads}))
        if "ctranslate2" in engines:
            folder = prepare_ct2(model, click.echo)
            tasks = {row: self._task(row) for row in SCREENED}
            types = LARGE_TYPES if model.is_large else COMPUTE_TYPES
            search = partial(screen, folder, types, tasks, threads, click.echo)
            self._screened = kept(f"{model.name}, offline", threads, click.echo, search)

    def measure(self, row: Row, seconds: float) -> list[dict[str, Any]]:
        """Run interleaved rounds of all engines for one row of the table."""
        task = self._task(row)
        peers = [*self._others, *finalists(row, self._screened, self._num_finalists)]
        timings: list[list[Timing]] = [[] for _ in peers]
        warm = Task(task.batches[:1], task.beam_size, task.max_output_tokens, task.min_output_tokens)
        for settings in peers:
            self._process(settings).run(warm)
        until = time.monotonic() + seconds
        for number in range(MAX_ROUNDS):
            if number >= MIN_ROUNDS and time.monotonic() > until:
                break
            for settings, found in zip(peers, timings, strict=True):
                if settings.engine != "transformers" or number < SLOW_PEER_ROUNDS:
                    found.append(self._process(settings).run(task))
        records = [self._record(row, settings, found) for settings, found in zip(peers, timings, strict=True)]
        click.echo(f"{self._model.name}, {row[0]}, batch {row[1]}:")
        for record, settings in zip(records, peers, strict=True):
            click.echo(
                f"  {record['tokens_per_second_best']:7.0f} best, {record['tokens_per_second_median']:7.0f} median "
                f"tokens/s of {record['rounds']:2d} rounds: {settings.label()}"
            )
        return records

    def _record(self, row: Row, settings: PeerSettings, found: Sequence[Timing]) -> dict[str, Any]:
        return {
            "model": self._model.name,
            "decode": row[0],
            "batch": row[1],
            "threads": self._threads,
            "engine": settings.engine,
            "precision": settings.precision,
            "settings": settings.document(),
            **rates([each.num_tokens for each in found], [each.seconds for each in found]),
        }

    def _process(self, settings: PeerSettings) -> PeerProcess:
        label = settings.label()
        if label not in self._processes:
            self._processes[label] = self._stack.enter_context(PeerProcess(settings))
        return self._processes[label]

    def _task(self, row: Row) -> Task:
        decode, batch_size = row
        model = self._model
        sources = self._sources
        if model.fixed_output_tokens:  # every sentence costs the same: one batch is as informative as many
            sources = sources[: max(batch_size, 2)]
        batches = batches_by_length(sources, batch_size)
        return Task(batches, BEAM_SIZES[decode], model.max_output_tokens, model.fixed_output_tokens)


def _sources(model: BenchModel, bundle: Path) -> list[tuple[int, ...]]:
    if model.fixed_output_tokens:
        return random_sources(128, BASE_SOURCE_TOKENS, model.vocabulary_size, model.eos_id, seed=1)
    manifest = Manifest.load(bundle)
    tokenizer = load_tokenizer(manifest.tokenizer, bundle)
    texts = spread(held_out_texts(), NUM_SENTENCES)
    return [manifest.source_ids(tokenizer.encode(text), manifest.first_pair) for text in texts]


if __name__ == "__main__":
    main()
