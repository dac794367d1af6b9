"""Real servers for tests: on an event loop of this process, or as processes of their own."""

import asyncio
import contextlib
import itertools
import logging
import os
import queue
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Coroutine, Iterator, Mapping
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

import grpc
import pytest
from prometheus_client.parser import text_string_to_metric_families

from dragoman_client import Client
from service.config.server_config import ServerConfig
from service.engine.integrity import IntegrityError
from service.models.reload_plan import ReloadOutcome
from service.server.server import Server
from tests.patience import patient

REPOSITORY = Path(__file__).parent.parent
_NUMBERS = itertools.count()
_WORKER = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
_PORTS = (12_000 + _WORKER % 16 * 1_000 + number % 1_000 for number in itertools.count(os.getpid()))
_WORDS = ("station", "file", "window", "keys", "train", "close", "help", "find")
_QUICK_SECONDS = 30.0  # for anything that has to happen on a machine that is neither slow nor busy
TIMEOUT_SECONDS = patient(_QUICK_SECONDS)
LONG_QUEUE_SECONDS = 3600.0  # for tests of other things: on a busy machine every request waits long

T = TypeVar("T")


class LoopThread:
    """An event loop in its own thread, shared by all of gRPC's asyncio servers."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, name="event loop", daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, T], timeout_seconds: float = _QUICK_SECONDS) -> T:
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(patient(timeout_seconds))

    def close(self) -> None:
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(TIMEOUT_SECONDS)
        self.loop.close()


class InProcessServer:
    """A server on the loop's thread, with free ports."""

    def __init__(self, loop: LoopThread, config: ServerConfig) -> None:
        self._loop = loop
        admin_port = min(config.admin_port, 0)  # any free port, or none
        config = replace(
            config,
            port=0,
            metrics_port=0,
            admin_port=admin_port,
            http_port=min(config.http_port, 0),
            max_queue_seconds=config.max_queue_seconds or LONG_QUEUE_SECONDS,
        )
        self.server = loop.run(self._open(config))
        self.address = f"127.0.0.1:{self.server.port}"
        self.http_url = f"http://127.0.0.1:{self.server.http_port}"

    @staticmethod
    async def _open(config: ServerConfig) -> Server:
        server = Server(config, checks_integrity=True)
        await server.open()
        return server

    def load(self) -> None:
        self._loop.run(self.server.load())

    def close(self) -> None:
        self._loop.run(self.server.close())

    def reload(self) -> ReloadOutcome:
        return self._loop.run(self.server.reload())

    def start_reloading(self) -> Future[ReloadOutcome]:
        return asyncio.run_coroutine_threadsafe(self.server.reload(), self._loop.loop)

    def start_closing(self) -> Future[None]:
        return asyncio.run_coroutine_threadsafe(self.server.close(), self._loop.loop)

    def client(self, **settings: Any) -> Client:
        return Client(self.address, **settings)

    def get(self, path: str, method: str = "GET", **headers: str) -> tuple[int, str, str]:
        """Request a path of the monitoring port; return status, content type and body of the response."""
        return http_get(f"http://127.0.0.1:{self.server.metrics_port}{path}", method, **headers)

    def num_tasks(self) -> int:
        """Return the number of the event loop's tasks, without the one that counts."""

        async def count() -> int:
            return len(asyncio.all_tasks()) - 1

        return self._loop.run(count())

    def is_idle(self) -> bool:
        """Return whether all engines are empty, no caller awaits an answer, and no call holds a model."""
        models = self.server.models
        snapshots = [model.engine.snapshot() for model in models]
        left = [(each.num_waiting, each.num_running, each.slots_used) for each in snapshots]
        is_held = any(model.leases.num_held for model in models)
        return not (any(map(any, left)) or is_held or self.server.translator.num_pending)

    def metrics(self) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
        body = self.get("/metrics")[2]
        return {
            (sample.name, frozenset(sample.labels.items())): sample.value
            for family in text_string_to_metric_families(body)
            for sample in family.samples
        }

    def metric(self, name: str, **labels: str) -> float:
        """Return the sum of the series of this name that have these labels, among others."""
        wanted = labels.items()
        return sum(value for (each, its), value in self.metrics().items() if each == name and wanted <= its)


Serve = Callable[..., InProcessServer]  # the fixtures `serve` and `share`


class _Contradictions(logging.Handler):
    """A log handler that keeps the integrity errors by which engines died."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.found: list[IntegrityError] = []

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info and record.exc_info[1]
        if isinstance(error, IntegrityError):
            self.found.append(error)


@contextlib.contextmanager
def in_process(loop: LoopThread, config: ServerConfig, load: bool = True) -> Iterator[InProcessServer]:
    """Run a server whose engines check their state in every turn.

    Raises:
        IntegrityError: at the end, if an engine died of it.
    """
    contradictions = _Contradictions()
    logging.getLogger("service").addHandler(contradictions)
    running = InProcessServer(loop, config)
    try:
        if load:
            running.load()
        yield running
    finally:
        running.close()
        logging.getLogger("service").removeHandler(contradictions)
    for error in contradictions.found:
        if not hasattr(error, "__notes__"):  # otherwise it was injected, or raised by a server that ran beside this one
            error.add_note("found by the checks of a server in the tests' process")
            raise error


class ServerProcess:
    """`python -m service serve` with free ports, as a user starts it; `port` reuses a previous server's port.

    `program` is another module with the same command line; `variables` are added to the environment.
    """

    def __init__(
        self,
        models: Path,
        *arguments: str,
        ready: bool = True,
        port: int = 0,
        has_http: bool = False,
        program: str = "service",
        stdout: int = subprocess.PIPE,
        stderr: int = subprocess.PIPE,
        variables: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self.port, self.metrics_port, self.admin_port = port or free_port(), free_port(), free_port()
        self.address = f"127.0.0.1:{self.port}"
        self.http_port = free_port() if has_http else -1
        self.http_url = f"http://127.0.0.1:{self.http_port}"
        command = [
            *(sys.executable, "-m", program, "serve", "--models", str(models), "--num-threads", "1"),
            *("--port", str(self.port), "--metrics-port", str(self.metrics_port)),
            *("--admin-port", str(self.admin_port), "--max-queue-seconds", str(LONG_QUEUE_SECONDS)),
            *(("--http-port", str(self.http_port)) if has_http else ()),
            *arguments,
        ]
        self.process = subprocess.Popen(
            command,
            cwd=REPOSITORY,
            env=environment() | dict(variables),
            stdout=stdout,
            stderr=stderr,
            text=True,
        )
        self.ready_line = ""
        if ready:
            try:
                self.ready_line = read_line(self.process)
            except BaseException:
                self.kill()
                raise

    def __enter__(self) -> "ServerProcess":
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def get(self, path: str) -> tuple[int, str, str]:
        return http_get(f"http://127.0.0.1:{self.metrics_port}{path}")

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def wait(self, timeout_seconds: float = _QUICK_SECONDS) -> tuple[int, str, str]:
        """Wait for the process to exit; return exit code, rest of standard output, standard error."""
        out, err = self.process.communicate(timeout=patient(timeout_seconds))
        return self.process.returncode, out, err

    def kill(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate(timeout=TIMEOUT_SECONDS)


def dragoman(
    *arguments: str, stdin: bytes | None = None, timeout_seconds: float = _QUICK_SECONDS, **variables: str
) -> "subprocess.CompletedProcess[bytes]":
    """Run the command line until it exits."""
    return subprocess.run(
        [sys.executable, "-m", "service", *arguments],
        input=stdin,
        stdin=subprocess.DEVNULL if stdin is None else None,
        capture_output=True,
        timeout=patient(timeout_seconds),
        cwd=REPOSITORY,
        env=environment() | variables,
        check=False,
    )


def environment() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("DRAGOMAN_")}
    return kept | {"PYTHONPATH": os.pathsep.join((str(REPOSITORY), str(REPOSITORY / "client")))}


def read_line(process: "subprocess.Popen[str]", timeout_seconds: float = _QUICK_SECONDS) -> str:
    """Read the next line of a process's standard output, within a bounded time."""
    lines: queue.Queue[str] = queue.Queue()
    assert process.stdout is not None
    threading.Thread(target=lambda: lines.put(process.stdout.readline()), daemon=True).start()  # type: ignore[union-attr]
    line = lines.get(timeout=patient(timeout_seconds))
    assert line, f"the process ended: {process.communicate(timeout=TIMEOUT_SECONDS)[1]}"
    return line


def http_get(url: str, method: str = "GET", **headers: str) -> tuple[int, str, str]:
    request = urllib.request.Request(url, method=method, headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS) as response:
            return response.status, response.headers["Content-Type"], response.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.headers["Content-Type"], error.read().decode()


def distinct_texts(num_texts: int) -> list[str]:
    """Return texts never requested before, so that each is decoded; their words are in the tiny model's vocabulary."""
    numbers = [next(_NUMBERS) for _ in range(num_texts)]
    return [" ".join(_WORDS[number // len(_WORDS) ** place % len(_WORDS)] for place in range(5)) for number in numbers]


def eventually(condition: Callable[[], bool], timeout_seconds: float = _QUICK_SECONDS) -> None:
    """Wait until a condition holds; fail if it does not in time.

    Some states are short, so a cheap look is taken every 2 ms; one that costs a request, half of the time.
    """
    seconds = patient(timeout_seconds)
    end = time.monotonic() + seconds
    while True:
        began = time.monotonic()
        if condition():
            return
        now = time.monotonic()
        assert now < end, f"not within {seconds:g} s"
        time.sleep(min(max(0.002, now - began), 0.05))


def free_port() -> int:
    """Return a port that nobody listens on and that the kernel gives to nobody else until the server has opened it.

    The kernel takes ports for outgoing connections and for port 0 from a higher range (32,768 and above on Linux).
    pytest's worker processes have a thousand ports each, and other test runs most likely start elsewhere in it.
    """
    while True:
        port = next(_PORTS)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


def samples(text: str, name: str) -> list[float]:
    return [float(value) for value in re.findall(rf"^{name}(?:\{{.*\}})? (\S+)$", text, re.MULTILINE)]


def rpc_error(raised: "pytest.ExceptionInfo[grpc.RpcError]") -> Any:
    """Return the error that a call raised; gRPC's stubs lack its `code()`, `details()` and trailers."""
    return raised.value
