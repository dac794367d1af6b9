"""LibreTranslate's API on a server process: by libretranslatepy, requests and aiohttp, unmodified."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.clients.http_clients import checks_of, run_checks, translated
from tests.key_files import ALICE, write_keys
from tests.servers import TIMEOUT_SECONDS, ServerProcess, distinct_texts

CHECKS = checks_of("libretranslate_checks")


@pytest.fixture(scope="module")
def keyed(tiny_models: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    path = write_keys(tmp_path_factory.mktemp("keys"), alice=ALICE)
    with ServerProcess(tiny_models, "--api-keys", str(path), has_http=True) as process:
        yield process


@pytest.fixture(scope="module")
def results(server: ServerProcess, keyed: ServerProcess) -> dict[str, str]:
    """Return the outcome of each check, all run by the clients' own Python."""
    texts = ["station", "Grüße an alle! & 100%", *distinct_texts(2)]
    settings = {
        "url": server.http_url,
        "keyed": keyed.http_url,
        "key": ALICE,
        "expected": {text: translated(server, text) for text in texts},
        "seconds": round(TIMEOUT_SECONDS),
    }
    return run_checks("libretranslate_checks", settings)


@pytest.mark.parametrize("check", CHECKS)
def test_the_client_works_unmodified(results: dict[str, str], check: str) -> None:
    assert not results[check], results[check]
