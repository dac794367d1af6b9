"""`dragoman serve` and `dragoman config` as processes: what they print and reject, and how a server stops."""

import json
import os
import re
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
from service.config.server_config import SETTINGS, ServerConfig
from service.process.ports import PortError
from service.server.server import Server
from tests.clients.command_line import dragoman_here
from tests.otlp_collector import otlp_collector
from tests.patience import patient
from tests.servers import REPOSITORY, LoopThread, ServerProcess, dragoman, environment, eventually, free_port, samples
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


def refused(*arguments: Any, **variables: Any) -> Any:
    ports = ("--port", str(free_port()), "--metrics-port", str(free_port()), "--admin-port", "-1")
    run = dragoman("serve", *ports, *arguments, **variables)
    assert run.stdout == b""
    (line,) = run.stderr.decode().splitlines()
    assert line.startswith("dragoman: ")
    return run.returncode, line


def test_the_ready_line_is_all_that_it_prints_and_threads_of_grpc_do_not_preempt_the_event_loop(start: Any) -> None:
    process = start()
    with Client(process.address) as client:
        client.translate(["hello"], "en", "de")
    if sys.platform == "linux":  # where threads have such a policy
        main = process.process.pid
        policies: dict[str, set[int]] = {}
        for thread in Path(f"/proc/{main}/task").iterdir():
            name = (thread / "comm").read_text(encoding="utf-8").strip()
            policies.setdefault(name, set()).add(os.sched_getscheduler(int(thread.name)))
        assert policies["event_engine"] == {os.SCHED_BATCH}
        assert policies["engine-0"] == {os.SCHED_OTHER}
        assert os.sched_getscheduler(main) == os.SCHED_OTHER
    process.signal(signal.SIGTERM)
    assert process.wait() == (0, "", "")


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


def test_a_taken_port_is_one_line_and_71(server: ServerProcess, tiny_models: Path, loop_thread: LoopThread) -> None:
    code, line = refused("--models", str(tiny_models), "--port", str(server.port))
    assert (code, f"127.0.0.1:{server.port}" in line, "--port" in line) == (71, True, True)

    async def open_server(**ports: Any) -> None:
        opened = Server(ServerConfig(models=tiny_models, **ports))
        try:
            await opened.open()
        finally:
            await opened.close()

    for name, port in (("metrics_port", server.metrics_port), ("admin_port", server.admin_port)):
        with pytest.raises(PortError, match=f"127.0.0.1:{port} .* --{name.replace('_', '-')}"):
            loop_thread.run(open_server(**{"port": 0, "metrics_port": 0, "admin_port": -1, name: port}))


def test_what_can_not_be_served_is_one_line_and_78(tmp_path: Path, tiny_models: Path) -> None:
    for models, device, words in ((tmp_path / "none", "cpu", "export convert"), (tiny_models, "cuda", "'cuda'")):
        code, line = refused("--models", str(models), "--device", device)
        assert (code, words in line) == (78, True), line


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


def test_a_server_takes_settings_from_a_file_and_has_sent_spans_and_written_json_when_it_stops(
    tiny_models: Path, tmp_path: Path
) -> None:
    path, port = tmp_path / "config.toml", free_port()
    file = f'log_format = "json"\nlog_level = "debug"\nmax_slots = 3\nmetrics_port = {port}\nnum_threads = 9\n'
    path.write_text(file, encoding="utf-8")
    with otlp_collector() as collector:
        flags = ("--otlp-endpoint", collector.endpoint, "--trace-ratio", "1", "--access-log-ratio", "1")
        # Its own flags take precedence: ports, models, threads.
        with ServerProcess(tiny_models, "--config", str(path), *flags) as server:
            assert samples(server.get("/metrics")[2], "dragoman_slots_max") == [3.0]
            with Client(server.address) as client:
                client.translate(["Hello"], "en", "de")
            server.signal(signal.SIGTERM)
            code, out, errors = server.wait()
        assert (code, out) == (0, "")
        lines = [json.loads(line) for line in errors.splitlines()]
        assert {"time", "level", "logger", "message"} <= set.intersection(*map(set, lines))
        (call,) = (line for line in lines if line["logger"] == "dragoman.access")
        (span,) = (span for span in collector.spans if span.name == call["method"])
    assert (call["texts"], call["trace_id"]) == (1, span.trace_id)
    assert len(call["request_id"]) == 16
    assert abs(span.seconds * 1000 - call["milliseconds"]) <= 0.1


def test_without_opentelemetry_tracing_is_refused_in_one_line(tmp_path: Path, tiny_models: Path) -> None:
    missing = tmp_path / "opentelemetry" / "__init__.py"
    missing.parent.mkdir()
    missing.write_text("raise ModuleNotFoundError(\"No module named 'opentelemetry'\", name='opentelemetry')")
    endpoint = ("--otlp-endpoint", "http://127.0.0.1:4317")
    code, line = refused("--models", str(tiny_models), *endpoint, PYTHONPATH=f"{tmp_path}:{REPOSITORY}")
    assert code == 78
    assert "dragoman[otel]" in line
    assert "http://127.0.0.1:4317" in line


def test_a_server_on_forced_kernels_says_which(fused_tiny_models: Path) -> None:
    """They all give the same bits, as tests/kernels shows."""
    variables = {"DRAGOMAN_KERNELS": "portable"}
    with ServerProcess(fused_tiny_models, "--log-level", "info", variables=variables) as process:
        page = process.get("/metrics")[2]
        process.signal(signal.SIGTERM)
        code, _, errors = process.wait()
    assert code == 0
    assert re.findall(r'^dragoman_model_info{.*kernels="([^"]*)"', page, re.MULTILINE) == ["fused portable"]
    assert f"runners: {fused_tiny_models}/tiny/1 runs on fused portable kernels\n" in errors


def test_what_is_imported_is_what_is_needed() -> None:
    program = """
import sys
from service.cli.main import run
for arguments in (["translate", "--help"], ["--help"], ["serve", "--help"]):
    assert run(arguments) == 0
    print([name for name in ("pydantic", "tqdm") if name in sys.modules], file=sys.stderr)
import service.server.server
print([name for name in sys.modules if name.startswith("opentelemetry")], file=sys.stderr)
"""
    command = [sys.executable, "-c", program]
    run = subprocess.run(
        command, capture_output=True, timeout=patient(30), cwd=REPOSITORY, env=environment(), check=True
    )
    assert run.stderr.decode().splitlines() == ["[]", "[]", "['pydantic']", "[]"]
