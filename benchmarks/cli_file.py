"""`python -m benchmarks.cli_file`: a large file through `dragoman translate`, against the bare engine on its lines.

The real server and the real command run in separate processes, in turns with the bare engine. Checks every line, in
order (a sample is translated again, each line alone), and that the command's memory stays flat; tells where the
processors' time goes. Beside the file, another caller translates single sentences, one at a time.
"""

import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np
import psutil

from benchmarks.cpu_times import CpuTimes
from benchmarks.measures import percentile
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
BARE_LINES = 4000  # about the most that one call of the engine takes: the fewer, the more its last rows count
TURN_SECONDS = 20.0  # then the bare engine runs, so that other processes on the machine disturb both alike
CHECKED_LINES = 500
SINGLE_CALLS = 200
SETTLING_SECONDS = 2.0
TOKENS = "dragoman_target_tokens_total"


@dataclass(frozen=True, slots=True)
class Turn:
    """Tokens and seconds of the command, and right after it of the engine alone; end-of-sentence tokens count."""

    tokens: float
    seconds: float
    bare_tokens: int
    bare_seconds: float

    @property
    def share(self) -> float:
        """Return the command's tokens per second, as a share of the engine's."""
        return self.tokens / self.seconds * self.bare_seconds / self.bare_tokens


@dataclass(frozen=True, slots=True)
class Run:
    """One run of the command: its turns, CPU seconds, and its resident memory in MiB at regular intervals."""

    turns: tuple[Turn, ...]
    client_cpu_seconds: float
    server_cpu: CpuTimes
    memory_mib: tuple[float, ...]

    @property
    def seconds(self) -> float:
        """Return the seconds of all turns."""
        return sum(turn.seconds for turn in self.turns)


@click.command()
@click.option("--lines", "num_lines", default=100_000, show_default=True, help="Lines of the file.")
@click.option("--model", default="en-de", show_default=True, type=click.Choice(sorted(MODELS)))
@click.option("--precision", default="int8", show_default=True)
def main(num_lines: int, model: str, precision: str) -> None:
    """Measure, print and write build/bench/cli_file.json."""
    bundle = prepare(MODELS[model], precision, click.echo)
    lines = varied(held_out_texts(), num_lines)
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "source.txt", Path(folder) / "target.txt"
        source.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        task = _task(bundle, lines[:BARE_LINES], MODELS[model].max_output_tokens)
        with (
            running(serve_command(str(bundle))) as server,
            PeerProcess(_engine(bundle, slots := int(server.counter("dragoman_slots_max")))) as engine,
        ):
            run = _translate(server, source, target, lambda: engine.run(task))
            translations = target.read_text(encoding="utf-8").split("\n")
            num_wrong = _num_wrong(server.address, lines, translations)
            waits = _single_calls(server.address, source)
    third = len(run.memory_mib) // 3
    tokens = sum(turn.tokens for turn in run.turns)
    bare = sum(turn.bare_tokens for turn in run.turns) / sum(turn.bare_seconds for turn in run.turns)
    record: dict[str, Any] = {
        "model": model,
        "engine": "dragoman",
        "precision": precision,
        "slots": slots,
        "lines": num_lines,
        "lines_out": len(translations) - 1,
        "wrong": num_wrong,
        "checked": min(CHECKED_LINES, num_lines),
        "seconds": run.seconds,
        "lines_per_second": num_lines / run.seconds,
        "tokens_per_second": tokens / run.seconds,
        "bare_tokens_per_second": bare,
        "share": tokens / run.seconds / bare,
        "share_best": max(turn.share for turn in run.turns),
        "share_median": statistics.median(turn.share for turn in run.turns),
        "turns": len(run.turns),
        "client_cpu_share": run.client_cpu_seconds / run.seconds,
        "client_us_per_line": run.client_cpu_seconds / num_lines * 1e6,
        "server_outside_us_per_line": run.server_cpu.outside / num_lines * 1e6,
        "engine_us_per_line": run.server_cpu.engine / num_lines * 1e6,
        "single_ms_p50": percentile(waits, 0.5) * 1e3,
        "single_ms_p99": percentile(waits, 0.99) * 1e3,
        "peak_memory_mib_start": max(run.memory_mib[:third], default=0.0),
        "peak_memory_mib_middle": max(run.memory_mib[third : 2 * third], default=0.0),
        "peak_memory_mib_end": max(run.memory_mib[2 * third :], default=0.0),
    }
    record["line"] = line_of(record)
    for name, value in record.items():
        click.echo(f"{name}: {value:.3g}" if isinstance(value, float) else f"{name}: {value}")
    click.echo(f"Wrote {write_records('cli_file', [record])}.")


def line_of(record: Mapping[str, Any]) -> str:
    """Return the sentence about a record in the document."""
    return (
        f"{record['model']}, {record['precision']}: {record['lines']:,} lines at {record['lines_per_second']:.0f} a "
        f"second, {record['share']:.0%} of the bare engine's tokens per second (median of {record['turns']} turns "
        f"{record['share_median']:.0%}, best {record['share_best']:.0%}). CPU per line: "
        f"{record['engine_us_per_line']:.0f} µs in the engine, {record['server_outside_us_per_line']:.0f} µs in the "
        f"rest of the server, {record['client_us_per_line']:.0f} µs in the command. A single sentence beside it takes "
        f"{record['single_ms_p50']:.0f} ms (p50), {record['single_ms_p99']:.0f} ms (p99)"
    )


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


def _command(address: str, source: Path, target: Path) -> list[str]:
    command = [sys.executable, "-m", "service", "translate", "--server", address, "--from", "en", "--to", "de"]
    return [*command, "--file", str(source), "--output", str(target)]


def _translate(server: RunningServer, source: Path, target: Path, run_bare: Callable[[], Timing]) -> Run:
    memory_mib: list[float] = []
    turns: list[Turn] = []
    cpu_seconds = 0.0
    cpu_before = server.cpu()

    def end_turn(began_seconds: float, began_tokens: float) -> tuple[float, float]:
        """Record a turn, and return time and tokens at the beginning of the next."""
        seconds, tokens = time.perf_counter() - began_seconds, server.counter(TOKENS) - began_tokens
        turns.append(Turn(tokens, seconds, *_tokens_and_seconds(run_bare())))
        return time.perf_counter(), began_tokens + tokens

    began = time.perf_counter(), server.counter(TOKENS)
    command = _command(server.address, source, target)
    with subprocess.Popen(command) as process:
        watched = psutil.Process(process.pid)
        while process.poll() is None:
            if time.perf_counter() > began[0] + TURN_SECONDS:
                process.send_signal(signal.SIGSTOP)
                while server.counter("dragoman_slots_running"):  # until then the time counts as the command's
                    time.sleep(0.01)
                began = end_turn(*began)
                process.send_signal(signal.SIGCONT)
            memory_mib.append(watched.memory_info().rss / 2**20)
            cpu_seconds = sum(watched.cpu_times()[:2])
            time.sleep(SAMPLE_SECONDS)
    if process.returncode:
        raise click.ClickException(f"{' '.join(command)} ended with {process.returncode}; its message is above.")
    end_turn(*began)
    return Run(tuple(turns), cpu_seconds, server.cpu() - cpu_before, tuple(value for value in memory_mib if value > 0))


def _single_calls(address: str, source: Path) -> list[float]:
    """Return the seconds of single sentences, one after the other, while the file is translated again."""
    texts = held_out_texts()[:SINGLE_CALLS]
    waits: list[float] = []
    with subprocess.Popen(_command(address, source, Path("/dev/null"))) as process, Client(address) as client:
        try:
            time.sleep(SETTLING_SECONDS)
            for text in texts:
                if process.poll() is not None:
                    break
                began = time.perf_counter()
                client.translate([text], "en", "de")
                waits.append(time.perf_counter() - began)
        finally:
            process.terminate()
    return waits


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


def _engine(bundle: Path, num_slots: int) -> PeerSettings:
    """Return an engine with the server's own number of slots, which trades rate for latency."""
    options = {"intra_op_threads": 0, "allow_spinning": False, "max_slots": num_slots}
    return PeerSettings("dragoman", "", str(bundle), options)


def _task(bundle: Path, lines: Sequence[str], max_output_tokens: int) -> Task:
    manifest = Manifest.load(bundle)
    tokenizer = load_tokenizer(manifest.tokenizer, bundle)
    sources = tuple(tuple(manifest.source_ids(tokenizer.encode(line), manifest.first_pair)) for line in lines)
    return Task((sources,), beam_size=1, max_output_tokens=max_output_tokens)


if __name__ == "__main__":
    main()
