"""`google-cloud-translate`, unmodified, against a server process.

The client can't share a process with our stubs, for both describe the same messages. So its checks are a test run of
their own, in a process that has nothing of ours.
"""

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest

from service.config import ServerConfig
from service.metrics import Metrics
from service.pb.google.cloud.translation.v3 import translation_service_pb2 as pb
from service.rpc.grpc_server import build_grpc_server, new_health_servicer
from service.text.glossary import Glossary
from service.translation import Term
from tests.servers import REPOSITORY, LoopThread, ServerProcess, environment, eventually, in_process

CHECKS = Path(__file__).parent / "google_client"


class HeldGlossaries:
    """Glossaries in memory."""

    glossaries = (
        Glossary("files", "en", "de", (Term("file", "Akte", is_case_sensitive=True), Term("Dragoman"))),
        Glossary("files", "en", "pt-BR", (Term("file", "arquivo"),)),
        Glossary("long", "en", "de", tuple(Term(f"term {number}", "Wort") for number in range(2500))),
    )


@contextlib.contextmanager
def server_with_glossaries(loop: LoopThread, models: Path) -> Iterator[str]:
    config = ServerConfig(models=models, num_threads=1, max_slots=1, max_waiting=64)

    async def start() -> tuple[grpc.aio.Server, int]:
        server = build_grpc_server(
            config, running.server._translator, HeldGlossaries(), Metrics(), new_health_servicer()
        )
        port = server.add_insecure_port("127.0.0.1:0")
        await server.start()
        return server, port

    with in_process(loop, config) as running:
        server, port = loop.run(start())
        try:
            yield f"127.0.0.1:{port}"
        finally:
            loop.run(server.stop(5))


def run_checks(*names: str, **variables: str) -> str:
    """Run files of checks; returns what pytest says last."""
    command = [
        *(sys.executable, "-m", "pytest", "--config-file", "/dev/null", "--rootdir", str(CHECKS)),
        *("--confcutdir", str(CHECKS), "--import-mode=importlib", "-p", "no:cacheprovider", "-q", "--tb=short"),
        *("-p", "no:hypothesispytest", "--disable-warnings"),
        *(str(CHECKS / name) for name in names),
    ]
    run = subprocess.run(
        command,
        cwd=REPOSITORY,
        env={name: value for name, value in environment().items() if name != "PYTHONPATH"} | variables,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    return run.stdout.splitlines()[-1]


def test_the_real_client_works(server: ServerProcess, tmp_path: Path) -> None:
    descriptor = tmp_path / "descriptor.pb"
    descriptor.write_bytes(pb.DESCRIPTOR.serialized_pb)
    said = run_checks(
        "sync_checks.py",
        "async_checks.py",
        "descriptor_checks.py",
        SERVER_ADDRESS=server.address,
        FILE_DESCRIPTOR=str(descriptor),
    )
    assert "passed" in said
    assert "skipped" not in said
    method = "google.cloud.translation.v3.TranslationService/TranslateText"
    codes = ("OK", "INVALID_ARGUMENT", "NOT_FOUND", "DEADLINE_EXCEEDED", "CANCELLED")
    counters = [f'dragoman_requests_total{{code="{code}",method="{method}"}}' for code in codes]
    eventually(lambda: all(counter in server.get("/metrics")[2] for counter in counters))


def test_its_glossary_calls_work(loop_thread: LoopThread, tiny_models: Path) -> None:
    with server_with_glossaries(loop_thread, tiny_models) as address:
        assert "passed" in run_checks("glossary_checks.py", SERVER_ADDRESS=address)


def test_a_check_that_fails_is_noticed(server: ServerProcess) -> None:
    """The positive control: the server process has no glossaries."""
    with pytest.raises(AssertionError, match="test_a_list"):
        run_checks("glossary_checks.py::test_a_list", SERVER_ADDRESS=server.address)
