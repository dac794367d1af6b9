"""CPU time per row of `service.bulk.Pipeline` and of the engine alone, as `benchmarks.offline` runs it, in turns.

CPU time, because it can be compared on a machine that has other work, too. Texts are prepared before the engine alone
is measured, so that the difference is what text costs: sentences, tokens, numbers, names, and the rows themselves.
"""

import asyncio
import multiprocessing
import statistics
import time
from pathlib import Path

import click

from benchmarks.peers.dragoman import DragomanPeer
from benchmarks.peers.peer import PeerSettings
from benchmarks.report import write_records
from benchmarks.workload import Task
from service.bulk.pipeline import Pipeline
from service.bundle.manifest import Manifest
from service.text.tokenizers import load_tokenizer

_NUM_WARMING = 200
_BATCH = 2000  # sequences in the engine at a time; few, at the end of each, leave slots free
_LONGEST_LINE = 200  # characters: the engine alone takes no source of more than 128 tokens
_LONGEST_OUTPUT = 128  # tokens, as many as en-de has room for


@click.command()
@click.option("--texts", required=True, type=click.Path(path_type=Path, exists=True), help="English lines.")
@click.option(
    "--rows", "num_rows", default=20_000, show_default=True, help="Different lines of at most 200 characters."
)
@click.option("--bundle", default=Path("models/en-de/1"), type=click.Path(path_type=Path), show_default=True)
@click.option("--threads", default=2, show_default=True)
@click.option("--rounds", default=3, show_default=True)
def main(texts: Path, num_rows: int, bundle: Path, threads: int, rounds: int) -> None:
    """Measure, print and write build/bench/bulk_overhead.json."""
    different = dict.fromkeys(texts.read_text(encoding="utf-8").splitlines())
    lines = [line for line in different if 0 < len(line) <= _LONGEST_LINE][: num_rows + _NUM_WARMING]
    if len(lines) < num_rows + _NUM_WARMING:
        raise click.ClickException(f"{texts} has {len(lines)} different short lines, and --rows is {num_rows}.")
    spent: dict[str, list[float]] = {"engine": [], "pipeline": []}
    context = multiprocessing.get_context("spawn")
    for _ in range(rounds):
        for name, measured in (("engine", _engine_seconds), ("pipeline", _pipeline_seconds)):
            with context.Pool(1) as pool:
                spent[name].append(pool.apply(measured, (bundle, lines, threads)))
            click.echo(f"{name}: {1000 * spent[name][-1] / num_rows:.3f} ms of CPU a row")
    ratio = statistics.median(b / a for a, b in zip(spent["engine"], spent["pipeline"], strict=True))
    click.echo(f"the pipeline takes {ratio:.2f} times the CPU time of the engine alone")
    write_records("bulk_overhead", [{"rows": num_rows, "threads": threads, "ratio": ratio, "cpu_seconds": spent}])


def _engine_seconds(bundle: Path, lines: list[str], threads: int) -> float:
    """Return the CPU seconds of decoding the lines, each as one sequence."""
    manifest = Manifest.load(bundle)
    tokenizer = load_tokenizer(manifest.tokenizer, bundle)
    sources = [tuple(manifest.source_ids(tokenizer.encode(line), manifest.first_pair)) for line in lines]
    options = {"intra_op_threads": threads, "allow_spinning": False}
    peer = DragomanPeer(PeerSettings("dragoman", manifest.precision, str(bundle), options))
    task = Task((), beam_size=1, max_output_tokens=_LONGEST_OUTPUT)
    try:
        peer.translate(sources[:_NUM_WARMING], task)
        began = time.process_time()
        for start in range(_NUM_WARMING, len(sources), _BATCH):
            peer.translate(sources[start : start + _BATCH], task)
        return time.process_time() - began
    finally:
        peer.close()


def _pipeline_seconds(bundle: Path, lines: list[str], threads: int) -> float:
    """Return the CPU seconds of translating the lines."""

    async def measured() -> float:
        async with Pipeline(bundle, num_threads=threads) as pipeline:
            await pipeline.translate(lines[:_NUM_WARMING], "en", "de")
            began = time.process_time()
            results = await pipeline.translate(lines[_NUM_WARMING:], "en", "de")
            spent = time.process_time() - began
            if failed := [each.error for each in results if each.error]:
                raise RuntimeError(f"{len(failed)} rows failed; the first one: {failed[0]}")
            return spent

    return asyncio.run(measured())


if __name__ == "__main__":
    main()
