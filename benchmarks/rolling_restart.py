"""`python -m benchmarks.rolling_restart`: restarts two servers one after the other, repeatedly, under load.

The load is an open loop at a share of the two servers' measured capacity, by the documented client: directly to both
servers, or through nginx or Envoy with the files in deploy/. A rolling restart does for each server: SIGTERM, wait
until it has ended with 0, start it again, wait until it is ready.
"""

import contextlib
import dataclasses
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from benchmarks.load_generator import Load, Outcome
from benchmarks.measures import percentile
from benchmarks.report import write_records
from benchmarks.servers import READY, STOP_SECONDS, send, serve_command
from benchmarks.tables import markdown
from tests.proxies import envoy, nginx

WAYS = ("round_robin", "nginx", "envoy")
CAPACITY_CALLERS = 32
WARM_SECONDS = 3.0
QUIET_SECONDS = 15.0  # without restarts, for comparison
LONGEST_SECONDS = 3600.0
# One thread each: two servers share this machine. A fixed number of slots avoids measuring it at each start. The drain
# delay is the one that docs/replicas.md recommends.
FLAGS = ("--num-threads", "1", "--max-slots", "32", "--drain-delay-seconds", "2", "--grace-seconds", "30")
# The only place where gRPC reports its own retries.
TRACE = {"GRPC_TRACE": "retry", "GRPC_VERBOSITY": "debug"}
RETRYING = b": retrying failed call in "


class Replica:
    """A server process that can be restarted at the same address."""

    def __init__(self, models: str, workers: int) -> None:
        self._models = models
        self._flags = (*FLAGS, "--workers", str(workers))
        self.address = ""
        self.stop_seconds: list[float] = []
        self.start_seconds: list[float] = []
        self.start()

    @property
    def port(self) -> int:
        """Return the port on which it listens, from its first start on."""
        return int(self.address.rpartition(":")[2] or 0)

    def start(self) -> None:
        """Start and wait until it is ready.

        Raises:
            ClickException: it did not become ready.
        """
        began = time.monotonic()
        command = serve_command(self._models, *self._flags, "--port", str(self.port))
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        match = READY.search(self._process.stdout.readline())
        if match is None:
            raise click.ClickException(f"{' '.join(command)} did not become ready; its message is above.")
        self.address = match["address"]
        self.start_seconds.append(time.monotonic() - began)

    def stop(self) -> None:
        """Stop it and wait.

        Raises:
            ClickException: it ended with another code than 0.
        """
        began = time.monotonic()
        self._process.send_signal(signal.SIGTERM)
        code = self._process.wait(timeout=STOP_SECONDS)
        if code:
            raise click.ClickException(f"a server ended with {code} on SIGTERM; expected 0.")
        self.stop_seconds.append(time.monotonic() - began)

    def kill(self) -> None:
        """Kill it in any state."""
        self._process.kill()
        self._process.wait()


class Generator:
    """The load generator as a process that runs until its outcome is requested; counts gRPC's retries."""

    def __init__(self, load: Load) -> None:
        command = [sys.executable, "-m", "benchmarks.load_generator", json.dumps(dataclasses.asdict(load))]
        self._process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ, **TRACE}
        )
        self.num_retries = 0
        self._output = b""
        self._readers = [threading.Thread(target=self._count), threading.Thread(target=self._collect)]
        for reader in self._readers:
            reader.start()

    def finish(self) -> Outcome:
        """Stop making calls, wait for those in progress, and return the outcome."""
        self._process.send_signal(signal.SIGTERM)
        for reader in self._readers:
            reader.join()
        if self._process.wait():
            raise click.ClickException("the load generator failed.")
        return Outcome(**json.loads(self._output))

    def kill(self) -> None:
        """Kill it in any state."""
        self._process.kill()
        self._process.wait()

    def _count(self) -> None:
        assert self._process.stderr is not None
        self.num_retries = sum(RETRYING in line for line in self._process.stderr)

    def _collect(self) -> None:
        assert self._process.stdout is not None
        self._output = self._process.stdout.read()


@click.command()
@click.option("--models", default="models", show_default=True, help="What both servers serve.")
@click.option("--way", "ways", multiple=True, type=click.Choice(WAYS), help="Only these. Default: all.")
@click.option("--restarts", default=25, show_default=True, help="Rolling restarts under round_robin.")
@click.option("--proxy-restarts", default=5, show_default=True, help="Rolling restarts behind each proxy.")
@click.option("--share", default=0.3, show_default=True, help="Load, as a share of the measured capacity.")
@click.option("--workers", default=1, show_default=True, help="Worker processes of each server.")
@click.option("--capacity-seconds", default=15.0, show_default=True, help="How long to measure capacity.")
def main(
    models: str,
    ways: tuple[str, ...],
    restarts: int,
    proxy_restarts: int,
    share: float,
    workers: int,
    capacity_seconds: float,
) -> None:
    """Measure, print and write build/bench/rolling_restart.json; exit 1 if a call failed."""
    records = []
    with contextlib.ExitStack() as stack:
        replicas = [Replica(models, workers) for _ in range(2)]
        for replica in replicas:
            stack.callback(replica.kill)
        for way in ways or WAYS:
            with _address(way, replicas) as address:
                count = restarts if way == "round_robin" else proxy_restarts
                records.append(_measure(way, address, replicas, count, share, capacity_seconds))
            click.echo(f"{way}: {json.dumps(records[-1])}", err=True)
    click.echo(table(records))
    click.echo(f"Wrote {write_records('rolling_restart', records)}.")
    if any(record["failed"] for record in records):
        sys.exit(1)


@contextlib.contextmanager
def _address(way: str, replicas: list[Replica]) -> Iterator[str]:
    """Yield the address that callers use."""
    if way == "round_robin":
        yield ",".join(replica.address for replica in replicas)
        return
    with (
        tempfile.TemporaryDirectory() as folder,
        {"nginx": nginx, "envoy": envoy}[way](Path(folder), [replica.port for replica in replicas]) as address,
    ):
        yield address


def _measure(
    way: str, address: str, replicas: list[Replica], restarts: int, share: float, capacity_seconds: float
) -> dict[str, Any]:
    _capacity(address, WARM_SECONDS)
    capacity = _capacity(address, capacity_seconds)
    rate = share * capacity
    quiet = send(Load(address, QUIET_SECONDS, rate=rate, seed=3, is_documented=True))
    for replica in replicas:
        replica.start_seconds.clear()
        replica.stop_seconds.clear()
    generator = Generator(Load(address, LONGEST_SECONDS, rate=rate, seed=4, is_documented=True))
    try:
        for number in range(restarts):
            for replica in replicas:
                replica.stop()
                replica.start()
            click.echo(f"{way}: rolling restart {number + 1} of {restarts}", err=True)
        outcome = generator.finish()
    finally:
        generator.kill()
    codes = Counter(status for _, _, status, _ in outcome.calls)
    return {
        "way": way,
        "restarts": restarts,
        "capacity": capacity,
        # On a machine shared with others, it shows whether the load was still as intended.
        "capacity_after": _capacity(address, capacity_seconds),
        "rate": rate,
        "seconds": outcome.wall_seconds,
        "calls": len(outcome.calls),
        "failed": len(outcome.calls) - codes["OK"],
        "codes": dict(codes),
        "retries": generator.num_retries,
        "flags": FLAGS,
        "stop_seconds": statistics.median(s for replica in replicas for s in replica.stop_seconds),
        "start_seconds": statistics.median(s for replica in replicas for s in replica.start_seconds),
        "quiet": _latencies(quiet),
        "restarting": _latencies(outcome),
    }


def _capacity(address: str, seconds: float) -> float:
    """Return calls per second of callers that wait for their answers."""
    closed = send(Load(address, seconds, callers=CAPACITY_CALLERS, seed=2, is_documented=True))
    return len(closed.calls) / closed.wall_seconds


def _latencies(outcome: Outcome) -> dict[str, float]:
    milliseconds = [seconds * 1e3 for _, seconds, _, _ in outcome.calls]
    return {
        "p50_ms": percentile(milliseconds, 0.5),
        "p99_ms": percentile(milliseconds, 0.99),
        "max_ms": max(milliseconds),
    }


def table(records: list[dict[str, Any]]) -> str:
    """Return the table for docs/replicas.md."""
    head = (
        "way",
        "rolling restarts",
        "calls",
        "failed",
        "retries",
        "calls/s (capacity before, after)",
        "p50 / p99 / longest, quiet",
        "p50 / p99 / longest, restarting",
        "stop + start",
    )
    return markdown(
        head,
        [
            [
                record["way"],
                str(record["restarts"]),
                str(record["calls"]),
                str(record["failed"]),
                str(record["retries"]),
                f"{record['rate']:.0f} ({record['capacity']:.0f}, {record['capacity_after']:.0f})",
                *(
                    " / ".join(f"{value:.0f}" for value in record[when].values()) + " ms"
                    for when in ("quiet", "restarting")
                ),
                f"{record['stop_seconds']:.1f} + {record['start_seconds']:.1f} s",
            ]
            for record in records
        ],
    )


if __name__ == "__main__":
    main()
