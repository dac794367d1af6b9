"""More connections than allowed, and more than there are descriptors: in a process of its own, to be measured."""

import resource
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
from tests.servers import ServerProcess, eventually

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
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))  # inherited by the server
    try:
        process = ServerProcess(tiny_models, *flags)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
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


def is_greeted(raw: RawConnection) -> bool:
    try:
        raw.greeted()
    except ConnectionError:
        return False
    return True
