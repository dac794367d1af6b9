"""Memory of several server processes that share one set of weights, against one: when loaded, and under the same load.

Proportional set sizes, summed over the processes: a page that several map counts in parts. Other Python programs on the
machine take their part of its libraries, so run it on a quiet one.
"""

import threading
import time
from pathlib import Path
from typing import Any

import click
import psutil

from benchmarks.load_generator import Load
from benchmarks.models import MODELS, NotPrepared, prepare
from benchmarks.report import write_records
from benchmarks.servers import RunningServer, running, send, serve_command

_SETTLED_SECONDS = 2.0
_SAMPLE_SECONDS = 0.5
_PARTS = ("Pss", "Pss_Anon", "Pss_File", "Pss_Shmem")


@click.command()
@click.option("--model", default="base", show_default=True, type=click.Choice(sorted(MODELS)))
@click.option("--precision", default="int8", show_default=True)
@click.option("--workers", default=4, show_default=True, help="Compared with one.")
@click.option("--callers", default=32, show_default=True, help="Of single sentences, for all workers together.")
@click.option("--seconds", default=15.0, show_default=True, help="Of load.")
def main(model: str, precision: str, workers: int, callers: int, seconds: float) -> None:
    """Measure, print and write build/bench/worker_memory.json."""
    try:
        bundle = str(prepare(MODELS[model], precision, click.echo))
    except NotPrepared as error:
        raise click.ClickException(str(error)) from error
    records: list[dict[str, Any]] = []
    for count in (1, workers):
        with running(serve_command(bundle, "--workers", str(count))) as server:
            time.sleep(_SETTLED_SECONDS)
            records.append(_record(model, precision, count, "loaded", _memory(server.process)))
            busy = _under_load(server, callers, seconds)
            records.append(_record(model, precision, count, "under load", busy))
    for state in ("loaded", "under load"):
        one, several = (record["mib"] for record in records if record["state"] == state)
        click.echo(f"{state}: {workers} workers take {several / one:.2f} times the memory of one")
    click.echo(f"Wrote {write_records('worker_memory', records)}.")


def _under_load(server: RunningServer, callers: int, seconds: float) -> dict[str, float]:
    """Return the memory at its highest total while callers wait for answers."""
    load = Load(server.address, seconds, callers=callers, is_light=True, connections=callers)
    sending = threading.Thread(target=send, args=(load,))
    sending.start()
    samples = []
    while sending.is_alive():
        samples.append(_memory(server.process))
        time.sleep(_SAMPLE_SECONDS)
    return max(samples, key=lambda sample: sample["Pss"])


def _memory(process: psutil.Process) -> dict[str, float]:
    """Return the mebibytes of a process and all below it, by kind."""
    found = dict.fromkeys(_PARTS, 0.0)
    for each in (process, *process.children(recursive=True)):
        for line in Path(f"/proc/{each.pid}/smaps_rollup").read_text(encoding="ascii").splitlines():
            name, _, value = line.partition(":")
            if name in found:
                found[name] += int(value.split()[0]) / 2**10
    return found


def _record(model: str, precision: str, workers: int, state: str, memory: dict[str, float]) -> dict[str, Any]:
    anonymous, files = memory["Pss_Anon"], memory["Pss_File"] + memory["Pss_Shmem"]
    line = f"{workers} workers, {state}: {memory['Pss']:.0f} MiB, of which {anonymous:.0f} anonymous, {files:.0f} files"
    click.echo(line)
    kind = {"model": model, "precision": precision, "engine": "dragoman", "workers": workers, "state": state}
    return {**kind, "mib": memory["Pss"], "anonymous_mib": anonymous, "file_mib": files, "line": line}


if __name__ == "__main__":
    main()
