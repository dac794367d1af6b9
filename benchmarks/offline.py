"""Tokens per second without network and text: our engine, CTranslate2 and transformers on the same weights.

Every engine runs in a separate process; in each round they run in turn, with the others stopped.
"""

import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import click

from benchmarks.measures import identical_share, rates
from benchmarks.models import (
    BASE_SOURCE_TOKENS,
    DEFAULT_MODELS,
    MODELS,
    PRECISIONS,
    BenchModel,
    NotPrepared,
    prepare,
    prepare_checkpoint,
    prepare_ct2,
)
from benchmarks.peers.peer import ENGINES, PeerSettings
from benchmarks.peers.process import PeerProcess, Timing
from benchmarks.peers.screening import Row, finalists, screen
from benchmarks.report import write_records
from benchmarks.tables import offline_table, outputs_table
from benchmarks.workload import BATCHES, Task, batches_by_length, held_out_texts, random_sources, spread
from service.bundle.manifest import Manifest
from service.engine.cpus import available_cpus
from service.text.tokenizers import load_tokenizer

BEAM_SIZES = {"greedy": 1, "beam4": 4}
SCREENED: tuple[Row, ...] = (("greedy", 1), ("greedy", 8), ("greedy", 32), ("beam4", 8))
NUM_SENTENCES = 32
NUM_FINALISTS = 3
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
@click.option("--quick", is_flag=True, help="About three minutes: no switches, no spinning, short rows.")
@click.option("--name", default="offline", show_default=True, help="Of the file in build/bench.")
def main(
    models: tuple[str, ...],
    engines: tuple[str, ...],
    decodes: tuple[str, ...],
    batch_sizes: tuple[int, ...],
    threads: int,
    seconds: float,
    quick: bool,
    name: str,
) -> None:
    """Measure, print and write build/bench/offline.json and offline_screening.json."""
    records: list[dict[str, Any]] = []
    screened: list[dict[str, Any]] = []
    for model_name in models or DEFAULT_MODELS:
        model = MODELS[model_name]
        chosen: list[Row] = [(decode, batch) for decode in decodes or BEAM_SIZES for batch in batch_sizes or BATCHES]
        with ExitStack() as stack:
            compared = engines or (FAST_ENGINES if model.is_large else ENGINES)
            bench = _Offline(model, compared, threads, stack, is_quick=quick)
            if bench.has_ct2:
                screened += bench.screen([row for row in SCREENED if row in chosen] or chosen, with_switches=not quick)
            for row in chosen:
                records += bench.measure(row, min(seconds, 5.0) if quick else seconds)
                path = write_records(name, records)  # so that earlier measurements are never lost
    if screened:
        click.echo(f"Wrote {write_records(f'{name}_screening', screened)}.")
    click.echo(f"{offline_table(records)}\n\n{outputs_table(records)}")
    click.echo(f"Wrote {path}.")


class _Offline:
    """One model on all engines."""

    def __init__(
        self, model: BenchModel, engines: Sequence[str], threads: int, stack: ExitStack, *, is_quick: bool
    ) -> None:
        self._model = model
        self._threads = threads
        self._stack = stack
        self._slow_peer_rounds = 1 if is_quick else SLOW_PEER_ROUNDS
        self._num_finalists = 1 if is_quick else NUM_FINALISTS
        self._processes: dict[str, PeerProcess] = {}
        self._others: list[PeerSettings] = []  # all engines but CTranslate2
        self.has_ct2 = "ctranslate2" in engines
        bundles: list[tuple[str, Path]] = []
        for precision in ("int8",) if model.is_large else PRECISIONS:
            try:
                bundles.append((precision, prepare(model, precision, click.echo)))
            except NotPrepared as error:
                click.echo(f"{model.name}, {precision}: left out. {error}")
        if not bundles:
            raise click.ClickException(f"there is no bundle of {model.name}.")
        self._sources = _sources(model, bundles[0][1])
        if "dragoman" in engines:
            for spins in (False,) if is_quick else (False, True):
                options = {"intra_op_threads": threads, "allow_spinning": spins}
                self._others += [PeerSettings("dragoman", precision, str(at), options) for precision, at in bundles]
        if "transformers" in engines:
            checkpoint = prepare_checkpoint(model)
            self._others.append(PeerSettings("transformers", "float32", str(checkpoint), {"threads": threads}))
        if self.has_ct2:
            self._ct2 = prepare_ct2(model, click.echo)

    def screen(self, rows: Sequence[Row], *, with_switches: bool) -> list[dict[str, Any]]:
        """Find CTranslate2's best settings."""
        click.echo(f"{self._model.name}: CTranslate2's settings")
        tasks = {row: self._task(row) for row in rows}
        self._tried, self._rates = screen(self._ct2, tasks, self._threads, with_switches=with_switches, say=click.echo)
        return [
            {
                **self._row_document(row),
                **_settings_document(self._tried[index]),
                "tokens_per_second_best": rate,
            }
            for row, found in self._rates.items()
            for index, rate in found.items()
        ]

    def measure(self, row: Row, seconds: float) -> list[dict[str, Any]]:
        """Run interleaved rounds of all engines for one row of the table."""
        task = self._task(row)
        peers = list(self._others)
        if self.has_ct2:
            peers += [self._tried[index] for index in finalists(row, self._rates, self._num_finalists)]
        timings: list[list[Timing]] = [[] for _ in peers]
        warm = Task(task.batches[:1], task.beam_size, task.max_output_tokens, task.min_output_tokens)
        for settings in peers:
            self._process(settings).run(warm)
        until = time.monotonic() + seconds
        for number in range(MAX_ROUNDS):
            if number >= MIN_ROUNDS and time.monotonic() > until:
                break
            for settings, found in zip(peers, timings, strict=True):
                if settings.engine != "transformers" or number < self._slow_peer_rounds:
                    found.append(self._process(settings).run(task))
        return self._records(row, peers, timings)

    def _records(self, row: Row, peers: Sequence[PeerSettings], timings: list[list[Timing]]) -> list[dict[str, Any]]:
        reference = next(
            (found[0].outputs for peer, found in zip(peers, timings, strict=True) if peer.precision == "float32"), None
        )
        records = []
        for settings, found in zip(peers, timings, strict=True):
            record = {
                **self._row_document(row),
                **_settings_document(settings),
                **rates([each.num_tokens for each in found], [each.seconds for each in found]),
                "num_tokens": found[0].num_tokens,
                "seconds_best": min(each.seconds for each in found),
                "identical_to_float32": identical_share(found[0].outputs, reference) if reference else None,
            }
            records.append(record)
        self._show(row, records, peers)
        return records

    def _show(self, row: Row, records: Sequence[dict[str, Any]], peers: Sequence[PeerSettings]) -> None:
        click.echo(f"{self._model.name}, {row[0]}, batch {row[1]}:")
        for record, settings in zip(records, peers, strict=True):
            same = record["identical_to_float32"]
            click.echo(
                f"  {record['tokens_per_second_best']:7.0f} best, {record['tokens_per_second_median']:7.0f} median "
                f"tokens/s of {record['rounds']:2d} rounds, "
                f"{'-' if same is None else format(same, '4.0%')} as float32: {settings.label()}"
            )

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

    def _row_document(self, row: Row) -> dict[str, Any]:
        return {"model": self._model.name, "decode": row[0], "batch": row[1], "threads": self._threads}


def _settings_document(settings: PeerSettings) -> dict[str, Any]:
    return {"engine": settings.engine, "precision": settings.precision, "settings": settings.document()}


def _sources(model: BenchModel, bundle: Path) -> list[tuple[int, ...]]:
    if model.fixed_output_tokens:
        return random_sources(128, BASE_SOURCE_TOKENS, model.vocabulary_size, model.eos_id, seed=1)
    manifest = Manifest.load(bundle)
    tokenizer = load_tokenizer(manifest.tokenizer, bundle)
    texts = spread(held_out_texts(), NUM_SENTENCES)
    return [manifest.source_ids(tokenizer.encode(text), manifest.first_pair) for text in texts]


if __name__ == "__main__":
    main()
