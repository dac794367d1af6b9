"""The ports of `dragoman serve --workers 2` that are not gRPC: one server for whoever watches and operates it."""

import json
import signal
import urllib.request
from collections.abc import Callable
from typing import Any

import psutil
import pytest

from dragoman_client import Client
from tests.patience import patient
from tests.servers import TIMEOUT_SECONDS, ServerProcess, distinct_texts, eventually, samples

NUM_CALLS = 16


@pytest.fixture
def process(start: Callable[[], ServerProcess]) -> ServerProcess:
    return start()


def status(process: ServerProcess) -> Any:
    url = f"http://127.0.0.1:{process.admin_port}/status.json"
    with urllib.request.urlopen(url, timeout=TIMEOUT_SECONDS) as answer:
        return json.load(answer)


def answered(process: ServerProcess) -> float:
    return sum(samples(process.get("/metrics")[2], "dragoman_requests_total"))


def workers(process: ServerProcess, state: str) -> float:
    return sum(samples(process.get("/metrics")[2], rf'dragoman_workers\{{state="{state}"\}}'))


def call(process: ServerProcess) -> None:
    for _ in range(NUM_CALLS):  # each over a connection of its own: some for each worker
        with Client(process.address) as client:
            client.translate(distinct_texts(1), "en", "de")


def test_no_count_falls_when_a_worker_is_killed(process: ServerProcess) -> None:
    assert f":{process.metrics_port}/metrics" in process.ready_line
    assert f":{process.admin_port}/" in process.ready_line
    call(process)
    eventually(lambda: answered(process) == NUM_CALLS)
    before = status(process)
    assert [worker["phase"] for worker in before["workers"]] == ["serving", "serving"]
    assert sum(worker["calls"] for worker in before["workers"]) == NUM_CALLS
    killed = psutil.Process(before["workers"][0]["pid"])
    killed.kill()
    eventually(lambda: workers(process, "ready") == 1)
    assert process.get("/readyz")[0] == 200
    assert answered(process) == NUM_CALLS
    eventually(lambda: workers(process, "ready") == 2)
    assert status(process)["workers"][0]["pid"] != killed.pid
    call(process)
    eventually(lambda: answered(process) == 2 * NUM_CALLS)
    assert samples(process.get("/metrics")[2], "dragoman_worker_restarts_total") == [1.0]
    assert status(process)["calls"] == {"OK": 2 * NUM_CALLS}


def test_a_front_that_is_killed_is_replaced_on_the_same_ports(process: ServerProcess) -> None:
    known = {worker["pid"] for worker in status(process)["workers"]}
    (front,) = [each for each in psutil.Process(process.process.pid).children() if each.pid not in known]
    call(process)
    front.kill()
    front.wait(patient(30))

    def is_back() -> bool:
        try:
            return process.get("/readyz")[0] == 200
        except OSError:
            return False

    eventually(is_back)
    assert answered(process) == NUM_CALLS
    assert {worker["pid"] for worker in status(process)["workers"]} == known


def test_an_operator_reloads_all_workers(process: ServerProcess) -> None:
    url = f"http://127.0.0.1:{process.admin_port}/api/reload"
    request = urllib.request.Request(url, b"{}", {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS) as answer:
        assert json.load(answer) == {"outcome": "unchanged"}
    assert samples(process.get("/metrics")[2], r'dragoman_reloads_total\{outcome="unchanged"\}') == [2.0]


def test_it_answers_until_the_last_worker_has_ended(process: ServerProcess) -> None:
    process.signal(signal.SIGTERM)
    assert process.wait()[0] == 0
    with pytest.raises(OSError, match="refused"):
        process.get("/livez")
