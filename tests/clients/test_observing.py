"""Logs and traces of a server as a user starts it."""

import json
import signal
import subprocess
import sys
from pathlib import Path

from dragoman_client import Client
from tests.otlp_collector import otlp_collector
from tests.servers import REPOSITORY, TIMEOUT_SECONDS, ServerProcess, dragoman, environment, free_port


def test_a_stopped_server_has_sent_its_spans_and_written_lines_of_json(tiny_models: Path) -> None:
    with otlp_collector() as collector:
        tracing = ("--otlp-endpoint", collector.endpoint, "--trace-ratio", "1")
        logging = ("--log-format", "json", "--log-level", "debug", "--access-log-ratio", "1")
        with ServerProcess(tiny_models, *tracing, *logging) as server:
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
    run = dragoman(
        *("serve", "--models", str(tiny_models), "--port", str(free_port()), "--metrics-port", str(free_port())),
        *("--otlp-endpoint", "http://127.0.0.1:4317"),
        PYTHONPATH=f"{tmp_path}:{REPOSITORY}",
    )
    (line,) = run.stderr.decode().splitlines()
    assert run.returncode == 78
    assert line.startswith("dragoman: ")
    assert "dragoman[otel]" in line
    assert "http://127.0.0.1:4317" in line


def test_nothing_of_opentelemetry_is_loaded_unasked() -> None:
    found = (
        "import sys, service.server.server\nprint([name for name in sys.modules if name.startswith('opentelemetry')])"
    )
    run = subprocess.run(
        [sys.executable, "-c", found], capture_output=True, text=True, env=environment(), timeout=TIMEOUT_SECONDS
    )
    assert (run.stdout, run.stderr) == ("[]\n", "")
