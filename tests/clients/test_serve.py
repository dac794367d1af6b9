"""`dragoman serve` and `dragoman config` as processes: what they print and reject, and how a server stops."""

import json
import os
import signal
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from dragoman_client import Client, ClientError, Options
from service.config.server_config import SETTINGS
from tests.clients.command_line import dragoman_here
from tests.patience import patient
from tests.servers import REPOSITORY, ServerProcess, dragoman, environment, eventually, free_port, samples
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


def test_a_model_is_named_for_explicit_control_only(start: Any, tiny_models: Path) -> None:
    run = dragoman_here("serve", "--models", str(tiny_models), "--load-model", "tiny")
    assert run.returncode == 2
    assert "--load-model needs --model-control explicit" in run.stderr.decode()
    explicit = ("--model-control", "explicit")
    code, line = refused("--models", str(tiny_models), *explicit, "--load-model", "nobody")
    assert code == 78
    assert "no model 'nobody'; it holds tiny" in line
    assert "No model is loaded yet" in start(*explicit).ready_line


def test_settings_come_from_the_environment(tiny_models: Path) -> None:
    run = dragoman_here("serve", "--models", str(tiny_models), DRAGOMAN_SERVE_PORT="none")
    assert run.returncode == 2
    assert "DRAGOMAN_SERVE_PORT" in run.stderr.decode() or "'none'" in run.stderr.decode()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "config.toml"
    path.write_text("max_slots = 2\nmax_waiting = 3\nport = 4\n", encoding="utf-8")
    return path


def test_it_tells_what_is_in_effect_and_why_in_a_file_of_its_own(path: Path, tmp_path: Path) -> None:
    run = dragoman_here(
        *("config", "--port", "7", "--no-reflection"),
        DRAGOMAN_SERVE_CONFIG=str(path),
        DRAGOMAN_SERVE_PORT="5",
        DRAGOMAN_SERVE_MAX_WAITING="6",
    )
    assert (run.returncode, run.stderr) == (0, b"")
    lines = run.stdout.decode().splitlines()
    assert len(lines) == len(SETTINGS)
    for line in (
        f"max_slots = 2  # file {path}",
        "max_waiting = 6  # environment DRAGOMAN_SERVE_MAX_WAITING",
        "port = 7  # flag --port",
        "reflection = false  # flag --reflection",
        'host = "127.0.0.1"  # default',
    ):
        assert line in lines
    printed = tmp_path / "printed.toml"
    printed.write_bytes(run.stdout)
    again = dragoman_here(
        "config", "--config", str(printed), "--json", DRAGOMAN_SERVE_CONFIG="/none.toml"
    )  # the flag wins
    document = json.loads(again.stdout)
    values = {name: "" if each["value"] is None else each["value"] for name, each in document.items()}
    assert values == tomllib.loads(run.stdout.decode())
    assert {each["source"] for each in document.values()} == {f"file {printed}"}


def test_a_wrong_file_is_a_line_each_and_78(path: Path) -> None:
    path.write_text("max_slot = 2\nport = 70_000\n", encoding="utf-8")
    run = dragoman_here("serve", "--config", str(path), DRAGOMAN_SERVE_HOSTS="x")
    assert (run.returncode, run.stdout) == (78, b"")
    assert run.stderr.decode().splitlines() == [
        f"dragoman: {path} has an unknown key 'max_slot'; did you mean 'max_slots'?",
        f"dragoman: port in {path} is 70000; give a whole number from 0 to 65535.",
        "dragoman: the environment has an unknown variable 'DRAGOMAN_SERVE_HOSTS'; did you mean 'DRAGOMAN_SERVE_HOST'?",
    ]


def test_a_server_takes_its_settings_from_the_file(tiny_models: Path, tmp_path: Path) -> None:
    path, port = tmp_path / "config.toml", free_port()
    path.write_text(f'log_level = "info"\nmax_slots = 3\nmetrics_port = {port}\nnum_threads = 9\n', encoding="utf-8")
    with ServerProcess(
        tiny_models, "--config", str(path)
    ) as process:  # its own flags take precedence: ports, models, threads
        assert samples(process.get("/metrics")[2], "dragoman_slots_max") == [3.0]
        process.signal(signal.SIGTERM)
        code, _, log = process.wait()
        assert code == 0
        assert "INFO service.server.server" in log


def test_other_commands_import_no_pydantic() -> None:
    program = """
import sys
from service.cli.main import run
for arguments in (["translate", "--help"], ["--help"], ["serve", "--help"]):
    if run(arguments) == 0:
        print([name for name in ("pydantic", "tqdm") if name in sys.modules], file=sys.stderr)
"""
    run = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        timeout=patient(30),
        cwd=REPOSITORY,
        env=environment(),
        check=True,
    )
    assert run.stderr.decode().splitlines() == ["[]", "[]", "['pydantic']"]
