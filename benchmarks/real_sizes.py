"""Checkpoints of published sizes, converted and loaded by us and by CTranslate2: `python -m benchmarks.real_sizes`.

Writes the checkpoints, gigabytes of them, to build/real_sizes, and keeps them. Every conversion, server and
CTranslate2's translator is a process of its own; memory is its resident set, mapped pages of files included.
"""

import hashlib
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import psutil

from benchmarks.models import SHIPPED_CHECKPOINT
from benchmarks.report import write_records
from benchmarks.servers import running, serve_command
from benchmarks.tables import MISSING, markdown
from benchmarks.true_shapes import TRUE_SHAPES, write_checkpoint

FOLDER = Path("build/real_sizes")
SHIPPED = "en-de"
ENGINES = ("dragoman", "ctranslate2")
SAMPLE_SECONDS = 0.02
WARM_TEXTS = 8
_MAKERS = ("true_shape.py", "true_shapes.py", "true_t5.py", "true_tokenizers.py")
_DONE = "made-by.txt"
_HEAD = (
    "checkpoint",
    "its size",
    "engine",
    "conversion",
    "its memory",
    "size",
    "time to ready",
    "memory, ready",
    "memory, after translating",
)


@dataclass(frozen=True, slots=True)
class Conversion:
    """What a conversion took; `problem` is its last line if it failed."""

    seconds: float
    peak_bytes: int
    problem: str = ""


@click.command()
@click.option("--only", "names", multiple=True, type=click.Choice([SHIPPED, *TRUE_SHAPES]), help="Only these.")
@click.option("--engine", "engines", multiple=True, type=click.Choice(ENGINES), help="Only these.")
@click.option("--precision", default="int8", show_default=True, help="Of our bundles.")
@click.option("--folder", default=FOLDER, show_default=True, type=click.Path(path_type=Path), help="Of checkpoints.")
def main(names: tuple[str, ...], engines: tuple[str, ...], precision: str, folder: Path) -> None:
    """Measure, print and write build/bench/real_sizes.json."""
    records: list[dict[str, Any]] = []
    for name in names or (SHIPPED, *TRUE_SHAPES):
        checkpoint = prepare_true_shape(name, folder, click.echo)
        for engine in engines or ENGINES:
            if engine == "ctranslate2" and name == SHIPPED:
                continue  # its converter doesn't read our own format
            with tempfile.TemporaryDirectory(dir=folder) as at:
                output = Path(at) / name / "1"
                output.parent.mkdir()
                records.append({"model": name, "engine": engine, **_measured(checkpoint, engine, precision, output)})
            click.echo(" | ".join(_row(records[-1])))
            write_records("real_sizes", records)
    click.echo(table(records))


def prepare_true_shape(name: str, folder: Path, say: Any) -> Path:
    """Return the folder of the checkpoint, written first if it is missing or made by other code."""
    folder.mkdir(parents=True, exist_ok=True)
    if name == SHIPPED:
        return SHIPPED_CHECKPOINT
    directory = folder / name
    maker = hashlib.sha256(b"".join(Path(__file__).with_name(each).read_bytes() for each in _MAKERS)).hexdigest()
    mark = directory / _DONE
    if not mark.exists() or mark.read_text(encoding="ascii") != maker:
        say(f"writing {directory}")
        shutil.rmtree(directory, ignore_errors=True)
        write_checkpoint(TRUE_SHAPES[name], directory)
        mark.write_text(maker, encoding="ascii")
    return directory


def table(records: Sequence[dict[str, Any]]) -> str:
    """Return the records as a Markdown table."""
    return markdown(_HEAD, map(_row, records))


def run_measured(command: Sequence[str]) -> Conversion:
    """Run a command to its end; the peak is that of all its processes together, sampled."""
    started, peak = time.monotonic(), 0
    with tempfile.TemporaryFile() as log:
        process = psutil.Popen(command, stdout=log, stderr=subprocess.STDOUT)
        while process.poll() is None:
            peak = max(peak, _resident_bytes(process))
            time.sleep(SAMPLE_SECONDS)
        seconds = time.monotonic() - started
        log.seek(0)
        lines = log.read().decode(errors="replace").split("\n")
    problem = next((line.strip() for line in reversed(lines) if line.strip()), "it said nothing")
    return Conversion(seconds, peak, problem if process.returncode else "")


def _measured(checkpoint: Path, engine: str, precision: str, output: Path) -> dict[str, Any]:
    given = _num_bytes(checkpoint)
    conversion = run_measured(_command(checkpoint, engine, precision, output))
    record = {
        "checkpoint_bytes": given,
        "conversion_seconds": conversion.seconds,
        "conversion_bytes": conversion.peak_bytes,
        "problem": conversion.problem,
    }
    if conversion.problem:
        return record
    served = _server(output) if engine == "dragoman" else _translator(output)
    return {**record, "bytes": _num_bytes(output), **served}


def _command(checkpoint: Path, engine: str, precision: str, output: Path) -> list[str]:
    if engine == "dragoman":
        exporter = [sys.executable, "-m", "export", "convert", str(checkpoint)]
        return [*exporter, "-o", str(output), "--precision", precision]
    converter = [sys.executable, "-c", "from ctranslate2.converters.transformers import main; main()"]
    flags = ["--low_cpu_mem_usage", "--quantization", "int8"]
    return [*converter, "--model", str(checkpoint), "--output_dir", str(output), *flags]


def _server(bundle: Path) -> dict[str, float]:
    """Return the seconds until our server is ready, and its memory then and after some translations."""
    from dragoman_client import Client

    manifest = json.loads((bundle / "manifest.json").read_text(encoding="utf-8"))
    pair = manifest["golden"][0]
    started = time.monotonic()
    with running(serve_command(str(bundle))) as server:
        ready = time.monotonic() - started
        before = _resident_bytes(server.process)
        with Client(server.address) as client:
            for number in range(WARM_TEXTS):
                texts = [f"{pair['text']} {number}"]
                client.translate(texts, pair["source_language_code"], pair["target_language_code"])
        return {"ready_seconds": ready, "ready_bytes": before, "used_bytes": _resident_bytes(server.process)}


def _translator(folder: Path) -> dict[str, float]:
    """Return the same of a process that has loaded CTranslate2's `Translator`."""
    started = time.monotonic()
    command = [sys.executable, "-m", "benchmarks.peers.ct2_memory", str(folder), str(WARM_TEXTS)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdout.readline()
        ready = time.monotonic() - started
        before = _resident_bytes(psutil.Process(process.pid))
        print(file=process.stdin, flush=True)
        process.stdout.readline()
        after = _resident_bytes(psutil.Process(process.pid))
    return {"ready_seconds": ready, "ready_bytes": before, "used_bytes": after}


def _resident_bytes(process: psutil.Process) -> int:
    total = 0
    try:
        for each in (process, *process.children(recursive=True)):
            total += each.memory_info().rss
    except psutil.NoSuchProcess:  # one ended while it was looked at
        return 0
    return total


def _num_bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _row(record: dict[str, Any]) -> list[str]:
    def size(name: str) -> str:
        return f"{record[name] / 1e6:.0f} MB" if name in record else MISSING

    ready = f"{record['ready_seconds']:.1f} s" if "ready_seconds" in record else MISSING
    took = f"{record['conversion_seconds']:.1f} s"
    if record["problem"]:
        took = f"failed after {took}: {record['problem'][:200]}"
    return [
        record["model"],
        size("checkpoint_bytes"),
        record["engine"],
        took,
        size("conversion_bytes"),
        size("bytes"),
        ready,
        size("ready_bytes"),
        size("used_bytes"),
    ]


if __name__ == "__main__":
    main()
