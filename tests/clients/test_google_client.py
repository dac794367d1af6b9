"""`google-cloud-translate`, unmodified, against a server process.

The client cannot share a process with our stubs because both describe the same messages.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto

from service.faces.grpc.pb.google.cloud.translation.v3 import translation_service_pb2 as pb
from tests.clients.http_clients import checks_of, run_checks
from tests.servers import TIMEOUT_SECONDS, ServerProcess, eventually

CHECKS = checks_of("google_checks")
GLOSSARIES = {
    "files.en-de.tsv": "file\tAkte\tcase\nDragoman\n",
    "files.en-pt_BR.tsv": "file\tarquivo\n",
    "long.en-de.tsv": "".join(f"term {number}\tWort\n" for number in range(2500)),
}


@pytest.fixture(scope="module")
def server(tiny_models: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    folder = tmp_path_factory.mktemp("glossaries")
    for name, lines in GLOSSARIES.items():
        (folder / name).write_text(lines, encoding="utf-8")
    with ServerProcess(tiny_models, "--glossaries", str(folder)) as process:
        yield process


def outcomes_of(address: str, descriptor: Path) -> dict[str, str]:
    """Return the outcome of each check, all run in one process."""
    settings = {"address": address, "descriptor": str(descriptor), "seconds": TIMEOUT_SECONDS}
    return run_checks("google_checks", settings, Path(sys.executable))


@pytest.fixture(scope="module")
def descriptor(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("descriptor") / "descriptor.pb"
    path.write_bytes(pb.DESCRIPTOR.serialized_pb)
    return path


@pytest.fixture(scope="module")
def outcomes(server: ServerProcess, descriptor: Path) -> dict[str, str]:
    return outcomes_of(server.address, descriptor)


@pytest.mark.parametrize("check", CHECKS)
def test_the_client_works_unmodified(outcomes: dict[str, str], check: str) -> None:
    assert not outcomes[check], outcomes[check]


def test_its_calls_are_counted(server: ServerProcess, outcomes: dict[str, str]) -> None:
    assert outcomes
    method = "google.cloud.translation.v3.TranslationService/TranslateText"
    codes = ("OK", "INVALID_ARGUMENT", "NOT_FOUND", "DEADLINE_EXCEEDED", "CANCELLED")
    counters = [f'dragoman_requests_total{{code="{code}",method="{method}"}}' for code in codes]
    eventually(lambda: all(counter in server.get("/metrics")[2] for counter in counters))


def test_checks_that_fail_are_noticed(tiny_models: Path, tmp_path: Path) -> None:
    """The positive control: a server without glossaries, and a message with a field of another number."""
    wrong = FileDescriptorProto.FromString(pb.DESCRIPTOR.serialized_pb)
    next(each for each in wrong.message_type if each.name == "TranslateTextRequest").field[0].number += 1000
    descriptor = tmp_path / "descriptor.pb"
    descriptor.write_bytes(wrong.SerializeToString())
    with ServerProcess(tiny_models) as process:
        failed = {name for name, why in outcomes_of(process.address, descriptor).items() if why}
    glossaries = ("glossaries_are_listed", "lists_come_in_pages", "one_glossary_and_one_entry")
    others = ("a_translation_comes_without_the_glossary_and_with_it", "asyncio", "every_field_is_googles")
    assert failed == {f"check_{name}" for name in (*glossaries, *others)}
