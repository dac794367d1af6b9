"""Fixtures of the reliability tests."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.servers import ServerProcess

Start = Callable[..., ServerProcess]  # the fixture `start`


@pytest.fixture
def start(tiny_models: Path) -> Iterator[Start]:
    """Start servers in processes of their own, by default of the tiny model; they end with the test."""
    processes: list[ServerProcess] = []

    def run(*arguments: str, models: Path = tiny_models, **how: Any) -> ServerProcess:
        processes.append(ServerProcess(models, *arguments, **how))
        return processes[-1]

    yield run
    for process in processes:
        process.kill()
