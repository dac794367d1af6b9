"""`google-cloud-translate`, unmodified, over HTTP: v3 by its REST transport, and v2.

It runs in the environment of tests/clients/http_clients.txt, which has none of our code.
"""

from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest

from service.calls.keys import Quotas
from service.faces.grpc.pb.google.cloud.translation.v3 import translation_service_pb2_grpc as pb_grpc
from tests.clients.http_clients import checks_of, run_checks, write_keys
from tests.grpc_calls import google_request
from tests.key_files import ALICE
from tests.servers import TIMEOUT_SECONDS, ServerProcess

CHECKS = checks_of("google_rest_checks")
TEXTS = ["Where is the train station?", "Save the file."]
GLOSSARIES = {
    "files.en-de.tsv": "file\tAkte\tcase\nDragoman\n",
    "long.en-de.tsv": "".join(f"term {number}\tWort\n" for number in range(2500)),
}

pytestmark = pytest.mark.timeout(240)  # the first test pays for two servers and all checks


@pytest.fixture(scope="module")
def server(tiny_models: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    folder = tmp_path_factory.mktemp("glossaries")
    for name, lines in GLOSSARIES.items():
        (folder / name).write_text(lines, encoding="utf-8")
    with ServerProcess(tiny_models, "--glossaries", str(folder), has_http=True) as process:
        yield process


@pytest.fixture(scope="module")
def outcomes(
    server: ServerProcess, tiny_models: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, str]]:
    """Yield the outcome of each check, all run in one process."""
    keys = write_keys(tmp_path_factory.mktemp("keys"), alice=(ALICE, Quotas()))
    with ServerProcess(tiny_models, "--api-keys", str(keys), has_http=True) as keyed:
        yield checked(url=server.http_url, keyed_url=keyed.http_url, key=ALICE, translations=over_grpc(server.address))


def checked(**settings: object) -> dict[str, str]:
    """Return the outcome of each check with these settings."""
    return run_checks("google_rest_checks", {"seconds": TIMEOUT_SECONDS, **settings})


def over_grpc(address: str) -> list[str]:
    """Return the translations of `TEXTS` by the same API over gRPC."""
    request = google_request(TEXTS, mime_type="text/plain")
    with grpc.insecure_channel(address) as channel:
        answer = pb_grpc.TranslationServiceStub(channel).TranslateText(request, timeout=TIMEOUT_SECONDS)
    return [each.translated_text for each in answer.translations]


@pytest.mark.parametrize("check", CHECKS)
def test_the_client_works_unmodified(outcomes: dict[str, str], check: str) -> None:
    assert not outcomes[check], outcomes[check]


def test_checks_that_fail_are_noticed(server: ServerProcess) -> None:
    """The positive control: other translations are expected, and no server answers calls with keys."""
    outcomes = checked(url=server.http_url, keyed_url="http://127.0.0.1:1", key="k", translations=["a", "b"])
    failed = {name for name, why in outcomes.items() if why}
    assert failed == {
        "check_v3_translates_as_over_grpc",
        "check_v3_glossaries",
        "check_v3_keys",
        "check_v2_translates_as_over_grpc",
        "check_v2_keys",
    }
