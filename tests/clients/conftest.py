"""Servers for these tests: one that they leave unchanged, and some with worker processes."""

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from tests.patience import patient
from tests.servers import ServerProcess


@pytest.fixture(scope="package")
def server(tiny_models: Path) -> Iterator[ServerProcess]:
    with ServerProcess(tiny_models, has_http=True) as process:
        yield process


@pytest.fixture
def sockets() -> Iterator[Path]:
    """A folder for temporary files with a short name, as those of sockets may have 107 bytes."""
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


@pytest.fixture
def start(tiny_models: Path, sockets: Path) -> Iterator[Callable[..., ServerProcess]]:
    """Start servers with two worker processes each, which end with them."""
    processes: list[ServerProcess] = []

    def run(*arguments: str) -> ServerProcess:
        flags = ("--workers", "2", "--max-slots", "8", *arguments)
        processes.append(ServerProcess(tiny_models, *flags, variables={"TMPDIR": str(sockets)}))
        return processes[-1]

    yield run
    for process in processes:
        children = psutil.Process(process.process.pid).children() if process.process.poll() is None else []
        process.kill()
        psutil.wait_procs(children, patient(30))
