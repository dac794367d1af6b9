"""One server process for the tests that leave it as they found it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.servers import ServerProcess

collect_ignore = ["google_client"]  # a test run of its own, in a process that has nothing of ours


@pytest.fixture(scope="package")
def server(tiny_models: Path) -> Iterator[ServerProcess]:
    process = ServerProcess(tiny_models)
    yield process
    process.kill()
