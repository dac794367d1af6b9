"""A server for these tests, which they leave unchanged."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.servers import ServerProcess

collect_ignore = ["google_client"]  # a test run of its own, in a process that imports none of our code


@pytest.fixture(scope="package")
def server(tiny_models: Path) -> Iterator[ServerProcess]:
    with ServerProcess(tiny_models) as process:
        yield process
