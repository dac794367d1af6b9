"""Starts the servers under measurement, each in a separate process, and sends them load."""

import contextlib
import dataclasses
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import IO
from urllib.request import urlopen

import click
import psutil

from benchmarks.cpu_times import CpuTimes, cpu_times
from benchmarks.load_generator import Load, Outcome

READY = re.compile(
    r"(?:gRPC|HTTP) on (?P<address>\S+?)(?:, HTTP API and translation page on (?P<http>\S+?)/)?"
    r"(?:, metrics on (?P<metrics>\S+?))?(?:, status page on (?P<status>\S+?))?\. "
)
STOP_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class RunningServer:
    """Addresses of a server; those of what it does not have are empty."""

    address: str
    http_url: str
    metrics_url: str
    status_url: str
    process: psutil.Process

    def cpu(self) -> CpuTimes:
        """Return the CPU times so far, child processes included."""
        return cpu_times(self.process)

    def cpu_seconds(self) -> float:
        """Return user and system time so far, child processes included."""
        return self.cpu().total

    def memory_mib(self) -> float:
        """Return resident memory."""
        return float(self.process.memory_info().rss) / 2**20

    def counter(self, name: str) -> float:
        """Return the sum of a counter on the metrics page over all of its labels; 0 if it is missing."""
        if not self.metrics_url:
            return 0.0
        with urlopen(self.metrics_url, timeout=10) as response:
            page = response.read().decode()
        return sum(float(value) for value in re.findall(rf"^{name}{{.*}} (\S+)$", page, re.MULTILINE))


def serve_command(models: str, *flags: str, module: str = "service") -> list[str]:
    """Return the command for `dragoman serve` on free ports."""
    return [
        *(sys.executable, "-m", module, "serve", "--models", models, "--port", "0", "--metrics-port", "0"),
        *("--admin-port", "-1"),
        *flags,
    ]


@contextlib.contextmanager
def running(command: Sequence[str], log: IO[bytes] | None = None) -> Iterator[RunningServer]:
    """Run a server for the duration of the block; its log goes to `log`, by default to standard error.

    Raises:
        ClickException: it did not become ready.
    """
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=log, text=True, env={**os.environ, "PYTHONUNBUFFERED": "1"}
    )
    try:
        assert process.stdout is not None
        match = READY.search(process.stdout.readline())
        if match is None:
            raise click.ClickException(f"{' '.join(command)} did not become ready; its message is above.")
        address, http_url, metrics_url, status_url = (
            match[name] or "" for name in ("address", "http", "metrics", "status")
        )
        yield RunningServer(address, http_url, metrics_url, status_url, psutil.Process(process.pid))
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(timeout=STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if process.stdout is not None:
            process.stdout.close()


def send(load: Load) -> Outcome:
    """Make the load's calls in the load generator, a separate process."""
    finished = subprocess.run(
        [sys.executable, "-m", "benchmarks.load_generator", json.dumps(dataclasses.asdict(load))],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return Outcome(**json.loads(finished.stdout))
