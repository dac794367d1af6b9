"""DeepL's API on server processes: by its own client, unmodified."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from service.calls.keys import Quotas
from tests.clients.http_clients import checks_of, run_checks, translated, write_keys
from tests.key_files import ALICE, BOB
from tests.servers import ServerProcess, distinct_texts
from tests.tiny_bundle import write_tiny_bundle

CHECKS = checks_of("deepl_checks")


@pytest.fixture(scope="module")
def models(tiny_bundle: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with models in both directions."""
    folder = tmp_path_factory.mktemp("both")
    shutil.copytree(tiny_bundle, folder / "tiny" / "1")
    write_tiny_bundle(folder / "back" / "1", name="back", source="de", target="en", seed=1)
    return folder


@pytest.fixture(scope="module")
def glossaries(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("glossaries")
    (folder / "products.en-de.tsv").write_text("window\tScheibe\n", encoding="utf-8")
    (folder / "several.en-de.tsv").write_text("station\tBahnsteig\n", encoding="utf-8")
    (folder / "several.de-en.tsv").write_text("Bahnsteig\tplatform\n", encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def server(models: Path, glossaries: Path) -> Iterator[ServerProcess]:
    with ServerProcess(models, "--glossaries", str(glossaries), has_http=True) as process:
        yield process


@pytest.fixture(scope="module")
def keyed(models: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    quotas = Quotas(tokens_per_minute=1)
    path = write_keys(tmp_path_factory.mktemp("keys"), alice=(ALICE, Quotas()), bob=(BOB, quotas))
    with ServerProcess(models, "--api-keys", str(path), has_http=True) as process:
        yield process


@pytest.fixture(scope="module")
def results(server: ServerProcess, keyed: ServerProcess) -> dict[str, str]:
    """Return the outcome of each check, all run by the clients' own Python."""
    texts = ["station", "Grüße an alle! & 100%", *distinct_texts(2)]
    settings = {
        "url": server.http_url,
        "keyed": keyed.http_url,
        "key": ALICE,
        "limited": BOB,
        "expected": {text: translated(server, text) for text in texts},
    }
    return run_checks("deepl_checks", settings)


@pytest.mark.parametrize("check", CHECKS)
def test_the_client_works_unmodified(results: dict[str, str], check: str) -> None:
    assert not results[check], results[check]
