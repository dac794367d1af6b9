"""`python -m benchmarks.cli_file`: a large file through `dragoman translate`, against the bare engine on its lines.

The real server and the real command run in separate processes. Checks every line, in order (a sample is translated
again, each line alone), and that the command's memory stays flat.
"""

import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import click
import numpy as np
import psutil

from benchmarks.inside import SERVED_SLOTS
from benchmarks.models import MODELS, prepare
from benchmarks.peers.peer import PeerSettings
from benchmarks.peers.process import PeerProcess, Timing
from benchmarks.report import write_records
from benchmarks.servers import RunningServer, running, serve_command
from benchmarks.workload import Task, held_out_texts
from dragoman_client import Client
from service.bundle.manifest import Manifest
from service.text.tokenizers import load_tokenizer

SEED = 5
SAMPLE_SECONDS = 0.1
BARE_LINES = 1000
TURN_SECONDS = 20.0  # then the bare engine runs, so that other processes on the machine disturb both alike
CHECKED_LINES = 500


@dataclass(frozen=True, slots=True)
class Run:
    """One run of the command: wall-clock and CPU seconds, and its resident memory in MiB at regular intervals.

    `bare` is the engine's work alone in the pauses, which `seconds` excludes: tokens and seconds.
    """

    seconds: float
    cpu_seconds: float
    memory_mib: tuple[float, ...]
    bare: tuple[tuple[int, float], ...]


@click.command()
@click.option("--lines", "num_lines", default=100_000, show_default=True, help="Lines of the file.")
@click.option("--model", default="en-de", show_default=True, type=click.Choice(sorted(MODELS)))
@click.option("--precision", default="int8", show_default=True)
def main(num_lines: int, model: str, precision: str) -> None:
    """Measure, print and write build/bench/cli_file.json."""
    bundle = prepare(MODELS[model], precision, click.echo)
    lines = varied(held_out_texts(), num_lines)
    with tempfile.TemporaryDirectory() as folder, PeerProcess(_engine(bundle)) as engine:
        source, target = Path(folder) / "source.txt", Path(folder) / "target.txt"
        source.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        task = _task(bundle, lines[:BARE_LINES], MODELS[model].max_output_tokens)
        with running(serve_command(str(bundle))) as server:
            tokens_before = server.counter("dragoman_target_tokens_total")
            run = _translate(server, source, target, lambda: engine.run(task))
            num_tokens = server.counter("dragoman_target_tokens_total") - tokens_before
            translations = target.read_text(encoding="utf-8").split("\n")
            num_wrong = _num_wrong(server.address, lines, translations)
    bare = sum(tokens for tokens, _ in run.bare) / sum(seconds for _, seconds in run.bare)
    third = len(run.memory_mib) // 3
    record = {
        "model": model,
        "engine": "dragoman",
        "precision": precision,
        "lines": num_lines,
        "lines_out": len(translations) - 1,
        "wrong": num_wrong,
        "checked": min(CHECKED_LINES, num_lines),
        "seconds": run.seconds,
        "lines_per_second": num_lines / run.seconds,
        "tokens_per_second": num_tokens / run.seconds,
        "bare_tokens_per_second": bare,
        "share": num_tokens / run.seconds / bare,
        "client_cpu_share": run.cpu_seconds / run.seconds,
        "peak_memory_mib_start": max(run.memory_mib[:third], default=0.0),
        "peak_memory_mib_middle": max(run.memory_mib[third : 2 * third], default=0.0),
        "peak_memory_mib_end": max(run.memory_mib[2 * third :], default=0.0),
    }
    for name, value in record.items():
        click.echo(f"{name}: {value:.3g}" if isinstance(value, float) else f"{name}: {value}")
    click.echo(f"Wrote {write_records('cli_file', [record])}.")


def varied(texts: Sequence[str], count: int) -> list[str]:
    """Return `count` distinct lines: the texts in turn, each with one word inserted from another.

    As all lines differ, neither a cache nor coalesced sequences can reduce the work.
    """
    rng = np.random.default_rng(SEED)
    words = [word for text in texts for word in text.split()]
    lines: dict[str, None] = {}
    while len(lines) < count:
        line = texts[len(lines) % len(texts)].split()
        line[rng.integers(len(line))] = words[rng.integers(len(words))]
        lines[" ".join(line)] = None
    return list(lines)


def _translate(server: RunningServer, source: Path, target: Path, run_bare: Callable[[], Timing]) -> Run:
    command = [sys.executable, "-m", "service", "translate", "--server", server.address, "--from", "en", "--to", "de"]
    memory_mib: list[float] = []
    bare: list[tuple[int, float]] = []
    cpu_seconds = paused_seconds = 0.0
    started = turn_started = time.perf_counter()
    with subprocess.Popen([*command, "--file", str(source), "--output", str(target)]) as process:
        watched = psutil.Process(process.pid)
        while process.poll() is None:
            if time.perf_counter() > turn_started + TURN_SECONDS:
                process.send_signal(signal.SIGSTOP)
                while server.counter("dragoman_slots_running"):  # until then the time counts as the command's
                    time.sleep(0.01)
                pause_started = time.perf_counter()
                bare.append(_tokens_and_seconds(run_bare()))
                process.send_signal(signal.SIGCONT)
                turn_started = time.perf_counter()
                paused_seconds += turn_started - pause_started
            memory_mib.append(watched.memory_info().rss / 2**20)
            cpu_seconds = sum(watched.cpu_times()[:2])
            time.sleep(SAMPLE_SECONDS)
    if process.returncode:
        raise click.ClickException(f"{' '.join(command)} ended with {process.returncode}; its message is above.")
    seconds = time.perf_counter() - started - paused_seconds
    bare.append(_tokens_and_seconds(run_bare()))
    return Run(seconds, cpu_seconds, tuple(value for value in memory_mib if value > 0), tuple(bare))


def _tokens_and_seconds(timing: Timing) -> tuple[int, float]:
    """Return tokens and seconds, including end-of-sentence tokens, which the server counts."""
    return timing.num_tokens + len(timing.outputs), timing.seconds


def _num_wrong(address: str, lines: Sequence[str], translations: Sequence[str]) -> int:
    """Count the lines of a sample whose translation differs from that of the line alone."""
    drawn = np.random.default_rng(SEED).choice(len(lines), min(CHECKED_LINES, len(lines)), replace=False)
    chosen = [int(number) for number in drawn]
    with Client(address) as client:
        expected = client.translate([lines[number] for number in chosen], "en", "de")
    return sum(translations[number] != each.text for number, each in zip(chosen, expected, strict=True))


def _engine(bundle: Path) -> PeerSettings:
    options = {"intra_op_threads": 0, "allow_spinning": False, "max_slots": SERVED_SLOTS}
    return PeerSettings("dragoman", "", str(bundle), options)


def _task(bundle: Path, lines: Sequence[str], max_output_tokens: int) -> Task:
    manifest = Manifest.load(bundle)
    tokenizer = load_tokenizer(manifest.tokenizer, bundle)
    sources = tuple(tuple(manifest.source_ids(tokenizer.encode(line), manifest.first_pair)) for line in lines)
    return Task((sources,), beam_size=1, max_output_tokens=max_output_tokens)


if __name__ == "__main__":
    main()
