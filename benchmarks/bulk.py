"""Bulk translation: what a row costs in one process, in shards and on Ray, and whether killed runs lose or repeat rows.

The ways take turns at the same rows, undisturbed, and at a few of them, which shows what a start costs. Then each
translates them with its whole process tree killed at random times.
"""

import math
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import click
import psutil
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.report import write_records
from benchmarks.servers import running, serve_command
from dragoman_client import Client

NUM_FILES = 20
NUM_COMPARED = 500
NUM_FEW = 40
_POLL_SECONDS = 0.25
_LONGEST_SECONDS = 3600.0
_SECONDS_TO_END = 30.0  # of the children after their parent


@click.command()
@click.option("--texts", required=True, type=click.Path(path_type=Path, exists=True), help="English lines.")
@click.option("--rows", "num_rows", default=200_000, show_default=True)
@click.option("--models", default=Path("models"), type=click.Path(path_type=Path), show_default=True)
@click.option("--way", "ways", multiple=True, type=click.Choice(("one", "shards", "ray")), help="Only these.")
@click.option("--ray-python", default=sys.executable, help="Python of an environment with Ray.")
@click.option("--rounds", default=1, show_default=True, help="Of undisturbed runs; the one with the least CPU counts.")
@click.option("--kills", default=3, show_default=True, help="0 to measure CPU only.")
@click.option("--seed", default=1, show_default=True)
@click.option("--folder", default=Path("build/bulk"), type=click.Path(path_type=Path), show_default=True)
def main(
    texts: Path,
    num_rows: int,
    models: Path,
    ways: Sequence[str],
    ray_python: str,
    rounds: int,
    kills: int,
    seed: int,
    folder: Path,
) -> None:
    """Measure, check, print and write build/bench/bulk.json."""
    folder = folder.absolute()
    lines = _lines(texts, num_rows)
    tables, few = folder / "in", folder / "few"
    _write_tables(tables, lines)
    _write_tables(few, lines[:NUM_FEW])
    found = ways or ("one", "shards", "ray")
    benches = {way: _Way(way, tables, folder / way, models.absolute(), ray_python) for way in found}
    starts = {way: _Way(way, few, folder / f"{way}-few", models.absolute(), ray_python) for way in found}
    records: dict[str, dict[str, Any]] = {way: {"way": way, "rows": num_rows, "runs": []} for way in found}
    for _ in range(rounds):
        for way, bench in benches.items():
            starts[way].clear()
            _, start_seconds = starts[way].run()
            bench.clear()
            seconds, cpu_seconds = bench.run()
            bench.check(lines)
            run = {
                "rows_per_second": num_rows / seconds,
                "cpu_ms_per_row": 1000 * cpu_seconds / num_rows,
                "cpu_ms_per_row_without_start": 1000 * (cpu_seconds - start_seconds) / (num_rows - NUM_FEW),
                "start_cpu_seconds": start_seconds,
            }
            records[way]["runs"].append(run)
            click.echo(
                f"{way}: {run['rows_per_second']:.0f} rows/s, {run['cpu_ms_per_row']:.3f} ms of CPU a row, "
                f"{run['cpu_ms_per_row_without_start']:.3f} without its start, which takes {start_seconds:.1f} s"
            )
    for record in records.values():
        record.update(min(record["runs"], key=lambda run: float(run["cpu_ms_per_row"])))
    write_records("bulk", list(records.values()))
    for way, bench in benches.items() if kills else ():
        records[way] |= _killed(bench, lines, models, kills, seed)
        click.echo(
            f"{way}: killed after {', '.join(f'{share:.0%}' for share in records[way]['killed_after_shares'])}, then "
            f"finished in {records[way]['resumed_seconds']:.0f} s; every row once, "
            f"{records[way]['differing_from_served']} of {NUM_COMPARED} differ from the served answers"
        )
        write_records("bulk", list(records.values()))


def _killed(bench: "_Way", lines: Sequence[str], models: Path, kills: int, seed: int) -> dict[str, Any]:
    """Translate the lines with so many kills, check the rows, and return what became of them."""
    draw = random.Random(seed)
    shares = sorted(draw.uniform(0, 0.9) for _ in range(kills))
    num_files = bench.num_files()
    bench.clear()
    for share in shares:  # of the output, as times would be other ones on a busy machine
        bench.run(kill_after_files=share * num_files, delay_seconds=draw.uniform(0, 1))
    resumed_seconds, _ = bench.run()
    bench.check(lines)
    compared = draw.sample(range(len(lines)), min(NUM_COMPARED, len(lines)))
    return {
        "killed_after_shares": shares,
        "resumed_seconds": resumed_seconds,
        "differing_from_served": bench.compare(models, compared, lines),
    }


class _Way:
    """One way to translate the tables into a folder."""

    def __init__(self, way: str, tables: Path, folder: Path, models: Path, ray_python: str) -> None:
        self._folder = folder
        self._output = folder / "out"
        bulk = [sys.executable, "-m", "service", "bulk", str(tables), str(self._output)]
        bulk += ["--models", str(models), "--from", "en", "--to", "de", "--num-threads"]
        job = [ray_python, "-m", "benchmarks.ray_job", str(tables), str(self._output)]
        self._commands = {
            "one": [[*bulk, "2"]],
            "shards": [[*bulk, "1", "--shard", f"{index}/2"] for index in range(2)],
            "ray": [[*job, "--models", str(models), "--folder", str(folder)]],
        }[way]
        self.clear()

    def clear(self) -> None:
        """Delete all output."""
        shutil.rmtree(self._folder, ignore_errors=True)
        self._folder.mkdir(parents=True)

    def num_files(self) -> int:
        """Return how many files have been written."""
        return len(list(self._output.glob("*.parquet")))

    def run(self, kill_after_files: float = math.inf, delay_seconds: float = 0.0) -> tuple[float, float]:
        """Run until the end, or kill the whole tree some time after it has so many files; return wall and CPU seconds.

        Raises:
            ClickException: a command failed, left processes behind, took too long, or ended before it was killed.
        """
        began = time.monotonic()
        marker = f"benchmarks.bulk {os.getpid()} {began}"
        variables = {**os.environ, "BENCHMARKS_BULK": marker}
        with (self._folder / "log.txt").open("ab") as log:
            processes = [subprocess.Popen(each, env=variables, stderr=log, stdout=log) for each in self._commands]
        tree = _Tree(marker)
        while any(process.poll() is None for process in processes):
            tree.look()
            too_long = time.monotonic() - began > _LONGEST_SECONDS
            if too_long or self.num_files() >= kill_after_files:
                time.sleep(delay_seconds)
                tree.kill()
                break
            time.sleep(_POLL_SECONDS)
        codes = [process.wait() for process in processes]
        seconds = time.monotonic() - began
        left = tree.look()
        while left and time.monotonic() - began < seconds + _SECONDS_TO_END:
            time.sleep(_POLL_SECONDS)
            left = tree.look()
        expected = 0 if kill_after_files == math.inf else -signal.SIGKILL
        if expected not in codes or (expected == 0 and any(codes)) or left:
            raise click.ClickException(
                f"{self._commands[0]} ended with {codes} and left {left}; see {self._folder / 'log.txt'}."
            )
        return seconds, tree.cpu_seconds()

    def check(self, lines: Sequence[str]) -> None:
        """Check that every row is there once, with its text, and has a translation.

        Raises:
            ClickException: one is missing, repeated, or wrong.
        """
        table = self._table()
        ids = table.column("id").to_pylist()
        if sorted(ids) != sorted(map(_id, range(len(lines)))):
            raise click.ClickException(f"{len(set(ids))} different rows of {len(lines)}, {len(ids)} in all.")
        given = dict(zip(ids, table.column("text").to_pylist(), strict=True))
        if any(given[_id(number)] != line for number, line in enumerate(lines)):
            raise click.ClickException("rows have the texts of others.")
        if any(table.column("error").to_pylist()):
            raise click.ClickException("rows have errors.")

    def compare(self, models: Path, numbers: Sequence[int], lines: Sequence[str]) -> int:
        """Return how many of these rows a server translates in another way."""
        table = self._table()
        translations = dict(zip(table.column("id").to_pylist(), table.column("translation").to_pylist(), strict=True))
        with running(serve_command(str(models))) as server, Client(server.address) as client:
            served = [client.translate([lines[number]], "en", "de")[0].text for number in numbers]
        return sum(translations[_id(number)] != text for number, text in zip(numbers, served, strict=True))

    def _table(self) -> pa.Table:
        return pa.concat_tables(pq.read_table(path) for path in sorted(self._output.glob("*.parquet")))


def _lines(texts: Path, num_rows: int) -> list[str]:
    lines = texts.read_text(encoding="utf-8").splitlines()
    if len(lines) < num_rows:
        raise click.ClickException(f"{texts} has {len(lines)} lines, and --rows is {num_rows}.")
    return lines[:num_rows]


def _id(number: int) -> str:
    return f"row-{number}"


def _write_tables(folder: Path, lines: Sequence[str]) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for file in range(NUM_FILES):
        numbers = range(file, len(lines), NUM_FILES)
        rows = {"id": [_id(number) for number in numbers], "text": [lines[number] for number in numbers]}
        pq.write_table(pa.table(rows), folder / f"{file:03d}.parquet")


class _Tree:
    """The processes of a run, whatever their sessions and parents: those that inherited a variable, and their children.

    Some of Ray's write their title over their environment, and are found as children only.
    """

    def __init__(self, marker: str) -> None:
        self._marker = marker
        self._seen: dict[psutil.Process, float] = {}  # with their CPU seconds

    def look(self) -> list[psutil.Process]:
        """Return those alive, and remember what they have spent."""
        for each in psutil.process_iter():
            with _gone():
                if each not in self._seen and each.environ().get("BENCHMARKS_BULK") == self._marker:
                    self._seen[each] = 0.0
        for each in list(self._seen):
            with _gone():
                self._seen |= {child: 0.0 for child in each.children(recursive=True) if child not in self._seen}
        alive = []
        for each in self._seen:
            with _gone():
                if each.is_running() and each.status() != psutil.STATUS_ZOMBIE:
                    times = each.cpu_times()
                    self._seen[each] = times.user + times.system
                    alive.append(each)
        return alive

    def kill(self) -> None:
        """Kill all with SIGKILL, until none is left; they may start others meanwhile."""
        while left := self.look():
            for each in left:
                with _gone():
                    each.send_signal(signal.SIGKILL)

    def cpu_seconds(self) -> float:
        """Return what all have spent, but for what came after the last look."""
        return sum(self._seen.values())


@contextmanager
def _gone() -> Iterator[None]:
    """Ignore that a process has ended."""
    with suppress(psutil.NoSuchProcess, psutil.AccessDenied):
        yield


if __name__ == "__main__":
    main()
