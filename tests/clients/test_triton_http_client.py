"""`tritonclient.http`, unmodified, with threads and with asyncio, against server processes.

It runs in the environment of tests/clients/http_clients.txt, which has none of our code.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.clients.http_clients import checks_of, run_checks, triton_models
from tests.key_files import ALICE, write_keys
from tests.servers import TIMEOUT_SECONDS, ServerProcess
from tests.tiny_bundle import GOLDEN_TEXTS, golden_translations

CHECKS = checks_of("triton_http_checks")

pytestmark = pytest.mark.timeout(240)  # the first test pays for two servers and all checks


@pytest.fixture(scope="module")
def settings(tiny_versions: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, object]]:
    """Yield where two servers are: one for everybody, and one with keys whose callers load its models."""
    folder = tmp_path_factory.mktemp("triton")
    models, explicit_models = triton_models(tiny_versions, folder)
    keys = write_keys(folder, alice=ALICE)
    controlled = ("--model-control", "explicit", "--load-model", "tiny", "--api-keys", str(keys))
    with (
        ServerProcess(models, "--max-versions", "2", "--max-waiting", "1100", has_http=True) as server,
        ServerProcess(explicit_models, *controlled, has_http=True) as explicit,
    ):
        yield {
            "address": server.http_url.removeprefix("http://"),
            "explicit": explicit.http_url.removeprefix("http://"),
            "key": ALICE,
            "golden_texts": GOLDEN_TEXTS,
            "golden": {version: golden_translations(tiny_versions / version) for version in ("1", "2")},
            "seconds": round(TIMEOUT_SECONDS),
        }


@pytest.fixture(scope="module")
def outcomes(settings: dict[str, object]) -> dict[str, str]:
    """Return the outcome of each check, all run in one process."""
    return run_checks("triton_http_checks", settings)


@pytest.mark.parametrize("check", CHECKS)
def test_the_client_works_unmodified(outcomes: dict[str, str], check: str) -> None:
    assert not outcomes[check], outcomes[check]


def test_checks_that_fail_are_noticed(settings: dict[str, object], outcomes: dict[str, str]) -> None:
    """The positive control, after the checks: other translations are expected, and the key is wrong."""
    assert set(outcomes) == set(CHECKS)
    golden = {version: ["a", "b", "c"] for version in ("1", "2")}
    others = run_checks("triton_http_checks", {**settings, "key": "dgm_wrong", "golden": golden})
    failed = {name for name, why in others.items() if why}
    readers = ("infer_in_binary", "infer_in_json", "json_and_binary_mixed", "compression", "asyncio")
    assert failed == {f"check_{name}" for name in (*readers, "keys", "models_are_loaded_and_unloaded")}
