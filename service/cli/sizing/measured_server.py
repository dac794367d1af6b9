"""The server under measurement: a child process with the settings at hand, on loopback and on CPUs of its own."""

import contextlib
import os
import re
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import service
from service.cli.command_error import CommandError
from service.cli.exit_codes import ExitCode

if TYPE_CHECKING:
    from service.config.sources import Settings

_STOP_SECONDS = 20.0
_READY = re.compile(r"gRPC on (?P<address>\S+), metrics on (?P<metrics>\S+)\. ")
_SAMPLE = re.compile(r'^dragoman_(\w+?)(?:\{model="([^"]*)"[^}]*\})? (\S+)$|^(process_cpu_seconds_total) (\S+)$', re.M)
# Whatever the settings say, for the measurement: nobody else may reach it, and it keeps nothing.
_ALONE: dict[str, Any] = {
    "host": "127.0.0.1",
    "port": 0,
    "metrics_host": "127.0.0.1",
    "metrics_port": 0,
    "admin_port": -1,
    "http_host": "127.0.0.1",
    "http_port": -1,
    "workers": 1,
    "model_control": "none",
    "load_model": (),
    "tls_certificate": None,
    "tls_key": None,
    "tls_client_ca": None,
    "api_keys": None,
    "otlp_endpoint": "",
    "reload_seconds": 0.0,
    "drain_delay_seconds": 0.0,
    "grace_seconds": 1.0,
    "access_log_ratio": 0.0,
    "log_level": "error",
}


@dataclass(frozen=True, slots=True)
class Reading:
    """Counters of a server and of its CPUs at one moment; `busy_seconds` and `batches` are by model."""

    at_seconds: float
    cpu_seconds: float
    machine_cpu_seconds: float  # of the CPUs that the server may use, whoever used them
    busy_seconds: dict[str, float]
    batches: dict[str, float]
    slots: dict[str, float]
    slot_bytes: dict[str, float]
    memory_bytes: float

    @property
    def slots_bytes(self) -> float:
        return sum(count * self.slot_bytes[model] for model, count in self.slots.items())


@dataclass(frozen=True, slots=True)
class MeasuredServer:
    """A server that runs, on `cpus`, and how many seconds it took to be ready."""

    address: str
    metrics_url: str
    cpus: frozenset[int]
    ready_seconds: float

    def read(self) -> Reading:
        """Return its counters at this moment."""
        with urllib.request.urlopen(self.metrics_url, timeout=10) as response:  # noqa: S310  # it is on loopback
            page = response.read().decode()
        found: dict[str, dict[str, float]] = {}
        for name, model, value, process, seconds in _SAMPLE.findall(page):
            found.setdefault(name or process, {})[model] = float(value or seconds)
        return Reading(
            time.perf_counter(),
            found["process_cpu_seconds_total"][""],
            _used_seconds(self.cpus),
            found["engine_busy_seconds_total"],
            found["engine_batches"],
            found["slots_max"],
            found["kv_cache_bytes_per_slot"],
            found["memory_bytes"][""],
        )


@contextlib.contextmanager
def running(settings: "Settings", threads: int, cpus: frozenset[int]) -> Iterator[MeasuredServer]:
    """Run a server with these settings, but alone on loopback, with so many threads on these CPUs."""
    from service.cli.config import render_toml

    alone = replace(settings, config=replace(settings.config, **_ALONE, num_threads=threads))
    with tempfile.TemporaryDirectory(prefix="dragoman-plan-") as folder:
        file, log = Path(folder) / "config.toml", Path(folder) / "log"
        file.write_text(render_toml(alone), encoding="utf-8")
        started = time.perf_counter()
        with _process(("serve", "--config", str(file)), cpus, log) as process:
            assert process.stdout is not None
            match = _READY.search(process.stdout.readline())
            if match is None:
                process.wait()
                said = log.read_text(encoding="utf-8", errors="replace").splitlines()
                reason = said[-1].removeprefix("dragoman: ") if said else "it said nothing."
                raise CommandError(f"the server to measure did not become ready: {reason}", ExitCode.CONFIG)
            ready_seconds = time.perf_counter() - started
            yield MeasuredServer(match["address"], match["metrics"], cpus, ready_seconds)


@contextlib.contextmanager
def _process(arguments: Sequence[str], cpus: frozenset[int], log: Path) -> "Iterator[subprocess.Popen[str]]":
    """Start this program with other arguments, without the environment's settings; stop it at the end of the block."""
    root = Path(service.__file__).parent.parent
    path = os.pathsep.join(filter(None, (str(root), os.environ.get("PYTHONPATH"))))
    kept = {name: value for name, value in os.environ.items() if not name.startswith("DRAGOMAN_SERVE_")}
    with on_cpus(cpus), log.open("wb") as errors:  # the child inherits both
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "service", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            env={**kept, "PYTHONPATH": path},
            process_group=0,  # Ctrl-C is for this command, which then stops it
        )
    with process:
        try:
            yield process
        finally:
            process.terminate()
            try:
                process.wait(_STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()


@contextlib.contextmanager
def on_cpus(cpus: frozenset[int]) -> Iterator[None]:
    """Keep the calling thread, and what it starts, on these CPUs for the duration of the block."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cpus)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def _used_seconds(cpus: frozenset[int]) -> float:
    """Return how long these CPUs have been in use since the machine started; see proc_stat(5)."""
    used = 0.0
    for line in Path("/proc/stat").read_text(encoding="ascii").splitlines():
        name, *times = line.split()
        if name.startswith("cpu") and name[3:].isdecimal() and int(name[3:]) in cpus:
            user, nice, system, _, _, irq, soft_irq, steal, *_ = map(int, times)
            used += user + nice + system + irq + soft_irq + steal
    return used / os.sysconf("SC_CLK_TCK")
