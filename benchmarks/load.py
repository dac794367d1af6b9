"""Checks that answers are independent of the load: every sentence alone, then all of them from many concurrent callers.

Runs a real server in a separate process. A difference is explained only if it is a tie: the reference's two best tokens
at the first differing position are closer than 1e-4 (natural logarithm of the probability).
"""

import statistics
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import click
from tqdm import tqdm

from benchmarks.callers import OWN_API
from benchmarks.load_generator import Load
from benchmarks.measures import percentile
from benchmarks.report import write_records
from benchmarks.servers import RunningServer, running, send, serve_command
from benchmarks.workload import held_out_texts
from dragoman_client import Client, Options, Translation

_WARM_UP, _ROUNDS, _SECONDS = 1, 7, 4.0


@click.command()
@click.argument("sentences", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--models", default="models", show_default=True)
@click.option("--from", "source", default="en", show_default=True)
@click.option("--to", "target", default="de", show_default=True)
@click.option("--count", default=2000, show_default=True, help="Sentences: the first column of the file, repeated.")
@click.option("--callers", default=32, show_default=True)
@click.option("--beam-size", default=1, show_default=True)
@click.option("--face", type=click.Choice(["grpc", "http"]), default="grpc", help="http: compare both instead.")
def main(
    sentences: Path, models: str, source: str, target: str, count: int, callers: int, beam_size: int, face: str
) -> None:
    """Print throughput, latency, mean step batch and the number of answers that changed under load.

    With `--face http`, print the throughput of both, with the same callers and texts, in turns.
    """
    if face == "http":
        compare_faces(models, callers)
        return
    texts = held_out_texts(sentences)
    texts = (texts * (count // len(texts) + 1))[:count]
    options = Options(beam_size=beam_size, max_repeats=0, max_length_ratio=0.0)
    with running(serve_command(models, "--max-queue-seconds", "86400")) as server:
        address = server.address
        alone, alone_seconds = _translate_all(address, texts, source, target, options, callers=1)
        before = _steps(server)
        loaded, seconds = _translate_all(address, texts, source, target, options, callers)
        after = _steps(server)
    changed = [i for i in range(count) if alone[i][0].text != loaded[i][0].text]
    for i in changed:
        click.echo(f"differs: {texts[i]!r}\n  alone:  {alone[i][0].text!r}\n  loaded: {loaded[i][0].text!r}")
    mean_batch = (after[0] - before[0]) / max(after[1] - before[1], 1.0)
    latencies = [latency for _, latency in loaded]
    record: dict[str, Any] = {
        "model": Path(models).name,
        "engine": "dragoman",
        "beam_size": beam_size,
        "callers": callers,
        "sentences": count,
        "changed": len(changed),
        "sentences_per_second_alone": count / alone_seconds,
        "sentences_per_second": count / seconds,
        "mean_step_batch_alone": before[0] / max(before[1], 1.0),
        "mean_step_batch": mean_batch,
        "p50_ms": statistics.median(latencies) * 1e3,
        "p99_ms": percentile(latencies, 0.99) * 1e3,
    }
    for name, value in record.items():
        click.echo(f"{name}: {value:.1f}" if isinstance(value, float) else f"{name}: {value}")
    click.echo(f"Wrote {write_records(f'load-beam{beam_size}', [record])}.")


def compare_faces(models: str, callers: int) -> None:
    """Print calls per second over HTTP and over gRPC, on the same server, in turns."""
    rates: dict[str, list[float]] = {"grpc": [], "http": []}
    cpus: dict[str, list[float]] = {"grpc": [], "http": []}
    with running(serve_command(models, "--max-queue-seconds", "86400", "--http-port", "0")) as server:
        addresses = {"grpc": server.address, "http": f"{server.http_url}{OWN_API}"}
        for number in range(_WARM_UP + _ROUNDS):
            for name, address in addresses.items():
                load = Load(address, _SECONDS, callers=callers, connections=callers)
                before = server.cpu_seconds()
                outcome = send(load)
                failed = [status for _, _, status, _ in outcome.calls if status != "OK"]
                assert not failed, f"{name}: {failed[:3]}"
                if number >= _WARM_UP:
                    rates[name].append(len(outcome.calls) / outcome.wall_seconds)
                    cpus[name].append(1e3 * (server.cpu_seconds() - before) / len(outcome.calls))
                    click.echo(f"{name}: {rates[name][-1]:.1f} calls/s, {cpus[name][-1]:.2f} ms of CPU per call")
    records: list[dict[str, Any]] = [
        {
            "model": Path(models).name,
            "face": name,
            "callers": callers,
            "rounds": _ROUNDS,
            "calls_per_second_best": max(rates[name]),
            "calls_per_second_median": statistics.median(rates[name]),
            "cpu_ms_per_call_median": statistics.median(cpus[name]),
        }
        for name in rates
    ]
    best, median = (records[1][key] / records[0][key] for key in ("calls_per_second_best", "calls_per_second_median"))
    click.echo(f"HTTP against gRPC: {best:.2f} best to best, {median:.2f} median to median")
    click.echo(f"Wrote {write_records('load-http', records)}.")


def _translate_all(
    address: str, texts: Sequence[str], source: str, target: str, options: Options, callers: int
) -> tuple[list[tuple[Translation, float]], float]:
    with Client(address) as client, ThreadPoolExecutor(callers) as pool:

        def call(text: str) -> tuple[Translation, float]:
            started = time.perf_counter()
            [translation] = client.translate([text], source, target, options=options)
            return translation, time.perf_counter() - started

        started = time.perf_counter()
        answers = list(tqdm(pool.map(call, texts), total=len(texts), desc=f"{callers} callers", disable=None))
        return answers, time.perf_counter() - started


def _steps(server: RunningServer) -> tuple[float, float]:
    """Return the rows of all steps so far, and the number of steps."""
    return server.counter("dragoman_step_batch_size_sum"), server.counter("dragoman_step_batch_size_count")


if __name__ == "__main__":
    main()
