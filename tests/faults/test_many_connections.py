"""More connections than allowed, and more than there are descriptors: in a process of its own, to be measured."""

import re
import resource
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psutil
import pytest

from dragoman_client import Client
from service.faces.http.open_connections import MAX_CONNECTIONS
from tests.faults.raw_connection import RawConnection
from tests.patience import patient
from tests.servers import TIMEOUT_SECONDS, ServerProcess, eventually

HEALTHY_SECONDS = patient(10.0)  # on a busy machine; an idle one takes 20 ms
BYTES_PER_CONNECTION = 40 * 2**10  # 15 KiB as measured


@contextmanager
def serving(models: Path, *arguments: str) -> Iterator[tuple[ServerProcess, psutil.Process]]:
    with ServerProcess(models, *arguments) as process:
        yield process, psutil.Process(process.process.pid)


def slowest_seconds(client: Client, num_calls: int = 10) -> float:
    slowest = 0.0
    for _ in range(num_calls):
        began = time.monotonic()
        assert client.translate(["Hello"], "en", "de")[0].text
        slowest = max(slowest, time.monotonic() - began)
    return slowest


@pytest.mark.parametrize("number", [2000, pytest.param(8000, marks=pytest.mark.full)])
def test_idle_connections_cost_little_memory(tiny_models: Path, number: int) -> None:
    with serving(tiny_models) as (process, measured), Client(process.address) as client:
        slowest_seconds(client)
        memory, descriptors = measured.memory_info().rss, measured.num_fds()
        with ExitStack() as stack:
            idle = [stack.enter_context(RawConnection(process.port)) for _ in range(number)]
            for each in idle:
                each.greeted()
            assert measured.num_fds() >= descriptors + number  # otherwise this test proves nothing
            bytes_each = (measured.memory_info().rss - memory) / number
            assert bytes_each < BYTES_PER_CONNECTION
            slowest = slowest_seconds(client)
            assert slowest < HEALTHY_SECONDS
        eventually(lambda: measured.num_fds() <= descriptors + 6)
        assert slowest_seconds(client) < HEALTHY_SECONDS


@pytest.mark.parametrize(("limit", "flags"), [(400, ()), (4000, ("--max-connections", "100"))])
def test_more_connections_than_allowed(tiny_models: Path, limit: int, flags: tuple[str, ...]) -> None:
    """Excess connections are closed, and once others leave, there is room again.

    Meanwhile probes, metrics and connected callers are served, and the processor is idle.
    """
    allowed = 100 if flags else limit // 2
    with descriptors_of_children(limit):
        process = ServerProcess(tiny_models, *flags)
    try:
        measured = psutil.Process(process.process.pid)
        with Client(process.address) as client:
            slowest_seconds(client)
            descriptors = measured.num_fds()
            with ExitStack() as stack:
                many = [
                    stack.enter_context(RawConnection(process.port)) for _ in range(2 * limit if not flags else 300)
                ]
                served = sum(is_greeted(each) for each in many)
                assert allowed - 5 <= served <= allowed
                began = sum(measured.cpu_times()[:2])
                until = time.monotonic() + 1.0
                eventually(lambda: time.monotonic() > until)
                assert sum(measured.cpu_times()[:2]) - began < 0.5
                for _ in range(MAX_CONNECTIONS):
                    assert process.get("/readyz")[0] == 200
                assert slowest_seconds(client) < HEALTHY_SECONDS
            eventually(lambda: measured.num_fds() <= descriptors + 6)
        with Client(process.address) as newcomer:
            assert slowest_seconds(newcomer) < HEALTHY_SECONDS
    finally:
        process.kill()


def test_ports_that_are_full_are_seen_in_metrics_and_log(tiny_models: Path, tmp_path: Path) -> None:
    """600 connections to each port of a server with 512 descriptors, of which 128 are for each port."""
    log = tmp_path / "log"
    with log.open("w") as file, descriptors_of_children(512):
        process = ServerProcess(tiny_models, has_http=True, stderr=file.fileno())

    def numbers() -> dict[str, float]:
        """The metrics of connections, each by name and protocol."""
        pattern = r'^dragoman_connections_?(max|refused|)(?:_total)?\{protocol="(\w+)"\} (\S+)$'
        found = re.findall(pattern, process.get("/metrics")[2], re.MULTILINE)
        return {f"{protocol} {name}".strip(): float(value) for name, protocol, value in found}

    def told() -> list[str]:
        return re.findall(r"connection_watch: (\w+): the limit of 128 .* Raise 'ulimit -n', now 512", log.read_text())

    try:
        limits = {"grpc max": 128, "http max": 128}
        with ExitStack() as stack:
            for _ in range(120):
                stack.enter_context(RawConnection(process.port)).greeted()
                stack.enter_context(answered(process.http_port))
            eventually(lambda: numbers() == limits | {"grpc": 120, "http": 120, "http refused": 0})
            assert told() == []
            for _ in range(480):
                stack.enter_context(RawConnection(process.port))
                stack.enter_context(answered(process.http_port))
            eventually(lambda: numbers() == limits | {"grpc": 128, "http": 128, "http refused": 472})
            eventually(lambda: sorted(told()) == ["grpc", "http"])
        eventually(lambda: numbers() == limits | {"grpc": 0, "http": 0, "http refused": 472})
    finally:
        process.kill()


def answered(port: int) -> socket.socket:
    """Return a connection to the HTTP port whose first request has been answered: after that it may idle for long."""
    connection = socket.create_connection(("127.0.0.1", port), TIMEOUT_SECONDS)
    connection.sendall(b"GET /v1/models HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert connection.recv(4096).startswith(b"HTTP/1.1 200 ")
    return connection


@contextmanager
def descriptors_of_children(limit: int) -> Iterator[None]:
    """Let processes started in here have so many descriptors."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def is_greeted(raw: RawConnection) -> bool:
    try:
        raw.greeted()
    except ConnectionError:
        return False
    return True
