"""`python -m benchmarks.call_costs`: where the CPU time of a plain call goes, outside the engine's threads.

py-spy samples the real server from outside while callers keep it busy, once to learn the CPU time of a call without the
sampling and once with it. The server stands still for each sample: read while it runs, stacks are torn, and Python's
time appears as the event loop's. A sample belongs to the innermost frame that is in one of the parts below, so what a
library does for us counts as the part that called it. The shares are of samples of the event loop's thread, the times
those shares of the measured CPU time.
"""

import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click

from benchmarks.closed_loops import CONNECTIONS, QUEUE, SATURATING_CALLERS, TIMEOUT_SECONDS
from benchmarks.load_generator import Load
from benchmarks.models import MODELS, prepare
from benchmarks.report import write_records
from benchmarks.servers import RunningServer, running, serve_command
from benchmarks.serving_points import closed_loop

RATE = 100  # samples a second; each stops the server for a moment
WARM_UP_SECONDS = 2.0
SPARE_SECONDS = 2.0  # the load outlasts the sampling
LOOP = "MainThread"
REST = "other Python"
# The path of a frame's file, and the part it belongs to; the first that matches counts.
PARTS = (
    (r"^service/faces/grpc/pb/|google/protobuf", "messages"),
    (r"^service/text/|sentencepiece", "tokenizing"),
    (r"^service/translation/pending|^service/engine/", "handing over to the engine and back"),
    (r"^service/observe/", "metrics and log"),
    (r"^service/translation/", "translation: options, sequences, results"),
    (r"^service/(calls|faces)/", "taking the call: limits, key, deadline, errors"),
    (r"^(asyncio|uvloop|grpc|service/process)/|^service/server/", "gRPC, event loop and sockets"),
)
FRAME = re.compile(r" \((?P<file>[^()]+):\d+\)$")


@click.command()
@click.option("--model", default="en-de", show_default=True, type=click.Choice(sorted(MODELS)))
@click.option("--precision", default="int8", show_default=True)
@click.option("--callers", default=SATURATING_CALLERS, show_default=True, help="Each waits for its answer.")
@click.option("--seconds", default=15.0, show_default=True, help="Of each of the two loads.")
def main(model: str, precision: str, callers: int, seconds: float) -> None:
    """Measure, print and write build/bench/call_costs.json."""
    bundle = prepare(MODELS[model], precision, click.echo)
    command = serve_command(str(bundle), "--max-waiting", str(QUEUE), "--max-queue-seconds", "86400")
    with running(command) as server, tempfile.TemporaryDirectory() as folder:
        load = Load(
            server.address,
            seconds,
            callers=callers,
            timeout_seconds=TIMEOUT_SECONDS,
            connections=CONNECTIONS,
        )
        closed_loop(server, load)
        undisturbed = closed_loop(server, load)
        profile = Path(folder) / "samples.txt"
        with sampling(server, profile, seconds - WARM_UP_SECONDS - SPARE_SECONDS):
            closed_loop(server, load)
        samples = profile.read_text(encoding="utf-8").splitlines()
    microseconds = undisturbed["outside_ms_per_call"] * 1e3
    common = {"model": model, "engine": "dragoman", "precision": precision, "callers": callers}
    records = [{**common, **each} for each in costs(samples, microseconds)]
    for record in records:
        click.echo(record["line"])
    click.echo(f"Wrote {write_records('call_costs', records)}.")


def sampling(server: RunningServer, profile: Path, seconds: float) -> subprocess.Popen[bytes]:
    """Start py-spy, which writes to `profile` and ends after `seconds`; leave its context to wait for that."""
    command = [str(Path(sys.executable).with_name("py-spy")), "record", "--format", "raw", "--threads"]
    command += ["--rate", str(RATE), "--duration", str(max(round(seconds), 1)), "--pid", str(server.process.pid)]
    return subprocess.Popen([*command, "--output", str(profile)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def costs(samples: Iterable[str], microseconds: float) -> list[dict[str, Any]]:
    """Return a record for each part, the largest first: its share of the event loop's samples and of `microseconds`,
    the CPU time of a call outside the engine.

    `samples` are lines as py-spy writes them: frames from the thread inwards, joined by semicolons, and their count.

    Raises:
        ValueError: none of them is of the event loop.
    """
    counts: Counter[str] = Counter()
    for sample in samples:
        frames, _, count = sample.rpartition(" ")
        thread, *stack = frames.split(";")
        if LOOP in thread:
            counts[part_of(stack)] += int(count)
    total = counts.total()
    if not total:
        raise ValueError(f"py-spy saw no thread named {LOOP}; may it trace other processes here?")
    return [
        {
            "part": part,
            "share": count / total,
            "microseconds": microseconds * count / total,
            "line": f"{part}: {microseconds * count / total:.0f} µs ({count / total:.0%})",
        }
        for part, count in counts.most_common()
    ]


def part_of(stack: Iterable[str]) -> str:
    """Return the part that the innermost known frame belongs to."""
    for frame in reversed(list(stack)):
        match = FRAME.search(frame)
        for pattern, part in PARTS:
            if match and re.search(pattern, match["file"]):
                return part
    return REST


if __name__ == "__main__":
    main()
