"""A server for these tests, which they leave unchanged."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.servers import ServerProcess


@pytest.fixture(scope="package")
def server(tiny_models: Path) -> Iterator[ServerProcess]:
    with ServerProcess(tiny_models, has_http=True) as process:
        yield process
