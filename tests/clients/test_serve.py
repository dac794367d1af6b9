"""`dragoman serve` as a process: what it prints, what it rejects, and how it stops."""

import os
import signal
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from dragoman_client import Client, ClientError, Options
from tests.patience import patient
from tests.servers import ServerProcess, dragoman, eventually, free_port
from tests.slow_file import slow_to_open


@pytest.fixture
def start(tiny_models: Path) -> Iterator[Any]:
    processes = []

    def run(*arguments: Any, models: Any = tiny_models, ready: Any = True) -> Any:
        processes.append(ServerProcess(models, *arguments, ready=ready))
        return processes[-1]

    yield run
    for process in processes:
        process.kill()


def refused(*arguments: Any) -> Any:
    run = dragoman(
        *("serve", "--port", str(free_port()), "--metrics-port", str(free_port()), "--admin-port", "-1"), *arguments
    )
    assert run.stdout == b""
    (line,) = run.stderr.decode().splitlines()
    assert line.startswith("dragoman: ")
    return run.returncode, line


def test_the_ready_line_is_all_that_it_prints(start: Any) -> None:
    process = start()
    process.signal(signal.SIGTERM)
    assert process.wait() == (0, "", "")


@pytest.mark.skipif(sys.platform != "linux", reason="threads have such a policy on Linux only")
def test_threads_of_grpc_do_not_preempt_the_event_loop(start: Any) -> None:
    process = start()
    with Client(process.address) as client:
        client.translate(["hello"], "en", "de")
    main = process.process.pid
    policies: dict[str, set[int]] = {}
    for thread in Path(f"/proc/{main}/task").iterdir():
        name = (thread / "comm").read_text(encoding="utf-8").strip()
        policies.setdefault(name, set()).add(os.sched_getscheduler(int(thread.name)))
    assert policies["event_engine"] == {os.SCHED_BATCH}
    assert policies["engine-0"] == {os.SCHED_OTHER}
    assert os.sched_getscheduler(main) == os.SCHED_OTHER


def test_calls_that_race_with_the_stop_succeed_or_find_no_server(start: Any) -> None:
    process = start()
    outcomes: list[int | str] = []

    def call_until_refused(client: Client) -> None:
        try:
            while True:
                outcomes.append(len(client.translate(["Hello"], "en", "de", options=Options(max_output_tokens=1))))
        except ClientError as error:
            outcomes.append(error.code)

    with Client(process.address) as client, ThreadPoolExecutor(8) as pool:
        callers = [pool.submit(call_until_refused, client) for _ in range(8)]
        eventually(lambda: len(outcomes) > 100)
        process.signal(signal.SIGTERM)
        for caller in callers:
            caller.result(timeout=patient(30))
    assert process.wait() == (0, "", "")
    assert outcomes.count("UNAVAILABLE") == 8
    assert set(outcomes) == {1, "UNAVAILABLE"}


def test_a_stop_signal_while_loading_is_obeyed(start: Any, tmp_path: Path) -> None:
    (tmp_path / "manifest.json").touch()
    with slow_to_open(tmp_path / "manifest.json") as waits:
        process = start(models=tmp_path, ready=False)
        eventually(lambda: answers(process) and waits())
        assert process.get("/readyz")[0] == 503
        assert process.get("/livez")[0] == 200
        process.signal(signal.SIGHUP)  # too early to reload, but no reason to exit
        process.signal(signal.SIGTERM)
        assert process.wait(timeout_seconds=patient(10)) == (0, "", "")


def answers(process: ServerProcess) -> Any:
    try:
        return process.get("/livez")[0] == 200
    except OSError:
        return False


def test_a_taken_port_is_one_line_and_71(server: ServerProcess, tiny_models: Path) -> None:
    code, line = refused("--models", str(tiny_models), "--port", str(server.port))
    assert code == 71
    assert f"127.0.0.1:{server.port}" in line
    assert "--port" in line
    code, line = refused("--models", str(tiny_models), "--metrics-port", str(server.metrics_port))
    assert code == 71
    assert "--metrics-port" in line
    code, line = refused("--models", str(tiny_models), "--admin-port", str(server.admin_port))
    assert code == 71
    assert "--admin-port" in line


def test_a_missing_bundle_is_one_line_and_78(tmp_path: Path) -> None:
    code, line = refused("--models", str(tmp_path / "none"))
    assert code == 78
    assert "make export" in line
    code, line = refused("--models", str(tmp_path))
    assert code == 78
    assert "manifest.json" in line


def test_a_device_that_is_not_there_is_one_line_and_78(tiny_models: Path) -> None:
    code, line = refused("--models", str(tiny_models), "--device", "cuda")
    assert code == 78
    assert "'cuda'" in line


def test_settings_come_from_the_environment(tiny_models: Path) -> None:
    run = dragoman("serve", "--models", str(tiny_models), DRAGOMAN_SERVE_PORT="none")
    assert run.returncode == 2
    assert "DRAGOMAN_SERVE_PORT" in run.stderr.decode() or "'none'" in run.stderr.decode()
