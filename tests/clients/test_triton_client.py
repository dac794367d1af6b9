"""The real tritonclient, unmodified, against a real server; its descriptors and ours cannot share a process."""

import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from service.faces.grpc.pb.inference import grpc_service_pb2 as pb
from tests.clients.http_clients import checks_of, run_checks, triton_models
from tests.servers import TIMEOUT_SECONDS, ServerProcess, dragoman
from tests.tiny_bundle import GOLDEN_TEXTS, golden_translations

pytestmark = pytest.mark.timeout(240)  # the first test pays for the fixture's two servers and all checks
CHECKS = checks_of("triton_checks")


@pytest.fixture(scope="module")
def results(tiny_versions: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Yield the outcome of each check, all run against the same two servers."""
    folder = tmp_path_factory.mktemp("triton")
    models, explicit_models = triton_models(tiny_versions, folder)
    (folder / "descriptor.pb").write_bytes(pb.DESCRIPTOR.serialized_pb)
    limits = ("--max-slots", "8", "--max-waiting", "1100")
    with (
        ServerProcess(models, "--max-versions", "2", *limits) as server,
        ServerProcess(explicit_models, "--model-control", "explicit", "--load-model", "tiny", *limits) as explicit,
    ):
        settings = {
            "address": server.address,
            "metrics": f"http://127.0.0.1:{server.metrics_port}/metrics",
            "explicit": explicit.address,
            "explicit_pid": explicit.process.pid,
            "descriptor": str(folder / "descriptor.pb"),
            "golden_texts": GOLDEN_TEXTS,
            "seconds": round(TIMEOUT_SECONDS),
            "golden": {version: golden_translations(tiny_versions / version) for version in ("1", "2")},
        }
        outcomes = run_checks("triton_checks", settings, Path(sys.executable), timeout_seconds=160)
        for process in (server, explicit):
            process.signal(signal.SIGTERM)
            code, _, log = process.wait()
            outcomes[f"log of {process.address}"] = log if code or "Traceback" in log or "ERROR" in log else ""
            if process is explicit and "SIGHUP changes no models" not in log:
                outcomes["check_models_are_loaded_and_unloaded"] += f"SIGHUP was not noticed: {log}"
        yield outcomes


@pytest.mark.parametrize("check", CHECKS)
def test_the_client_works_unmodified(results: dict[str, str], check: str) -> None:
    assert not results[check], results[check]


def test_no_check_left_an_error_in_a_server_s_log(results: dict[str, str]) -> None:
    logs = [log for name, log in results.items() if name.startswith("log of ")]
    assert logs == ["", ""]


def test_naming_a_model_needs_explicit_control(tiny_models: Path) -> None:
    run = dragoman("serve", "--models", str(tiny_models), "--load-model", "tiny")
    assert run.returncode == 2
    assert "--load-model needs --model-control explicit" in run.stderr.decode()


def test_an_explicit_server_starts_with_what_is_named(tiny_models: Path) -> None:
    explicit = ("--model-control", "explicit")
    ports = ("--port", "0", "--metrics-port", "0", "--admin-port", "-1")
    run = dragoman("serve", "--models", str(tiny_models), *ports, *explicit, "--load-model", "nobody")
    assert run.returncode == 78
    assert "no model 'nobody'; it holds tiny" in run.stderr.decode()
    server = ServerProcess(tiny_models, *explicit)
    server.kill()
    assert "No model is loaded yet" in server.ready_line
