"""`google-cloud-translate`, unmodified, against a server process.

The client cannot share a process with our stubs because both describe the same messages. The checks therefore run in a
pytest process of their own that imports none of our code.
"""

import subprocess
import sys
from pathlib import Path

import pytest

from service.faces.grpc.pb.google.cloud.translation.v3 import translation_service_pb2 as pb
from tests.patience import patient
from tests.servers import REPOSITORY, TIMEOUT_SECONDS, Serve, ServerProcess, environment, eventually

CHECKS = Path(__file__).parent / "google_client"


GLOSSARIES = {
    "files.en-de.tsv": "file\tAkte\tcase\nDragoman\n",
    "files.en-pt_BR.tsv": "file\tarquivo\n",
    "long.en-de.tsv": "".join(f"term {number}\tWort\n" for number in range(2500)),
}


def run_checks(*names: str, **variables: str) -> str:
    """Run files of checks; return the last output of pytest."""
    command = [
        *(sys.executable, "-m", "pytest", "--config-file", "/dev/null", "--rootdir", str(CHECKS)),
        *("--confcutdir", str(CHECKS), "--import-mode=importlib", "-p", "no:cacheprovider", "-q", "--tb=short"),
        *("-p", "no:hypothesispytest", "--disable-warnings"),
        *(str(CHECKS / name) for name in names),
    ]
    run = subprocess.run(
        command,
        cwd=REPOSITORY,
        env={name: value for name, value in environment().items() if name != "PYTHONPATH"}
        | {"TIMEOUT_SECONDS": str(TIMEOUT_SECONDS)}
        | variables,
        capture_output=True,
        text=True,
        timeout=patient(100),
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    return run.stdout.splitlines()[-1]


def test_the_real_client_works(server: ServerProcess, tmp_path: Path) -> None:
    descriptor = tmp_path / "descriptor.pb"
    descriptor.write_bytes(pb.DESCRIPTOR.serialized_pb)
    files = ("sync_checks.py", "async_checks.py", "descriptor_checks.py")
    said = run_checks(*files, SERVER_ADDRESS=server.address, FILE_DESCRIPTOR=str(descriptor))
    assert "passed" in said
    assert "skipped" not in said
    method = "google.cloud.translation.v3.TranslationService/TranslateText"
    codes = ("OK", "INVALID_ARGUMENT", "NOT_FOUND", "DEADLINE_EXCEEDED", "CANCELLED")
    counters = [f'dragoman_requests_total{{code="{code}",method="{method}"}}' for code in codes]
    eventually(lambda: all(counter in server.get("/metrics")[2] for counter in counters))


def test_its_glossary_calls_work(serve: Serve, tmp_path: Path) -> None:
    for name, lines in GLOSSARIES.items():
        (tmp_path / name).write_text(lines, encoding="utf-8")
    running = serve(glossaries=tmp_path, max_slots=1, max_waiting=64)
    assert "passed" in run_checks("glossary_checks.py", SERVER_ADDRESS=running.address)


def test_a_check_that_fails_is_noticed(server: ServerProcess) -> None:
    """The positive control: the server process has no glossaries."""
    with pytest.raises(AssertionError, match="test_a_list"):
        run_checks("glossary_checks.py::test_a_list", SERVER_ADDRESS=server.address)
