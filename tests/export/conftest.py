"""A small checkpoint of our own kind, and its bundle."""

from pathlib import Path

import pytest
import torch

from export.convert import convert
from service.bundle.manifest import Manifest
from tests.export.tiny_checkpoint import write_tiny_checkpoint


@pytest.fixture(scope="session", autouse=True)
def one_thread() -> None:
    """The models are so small that more threads only wait for each other, and for those of tests beside."""
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder as training writes it; tests that change it work on a copy."""
    return write_tiny_checkpoint(tmp_path_factory.mktemp("checkpoint"))


@pytest.fixture(scope="session")
def exported(checkpoint: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Manifest]:
    """That checkpoint's bundle."""
    directory = tmp_path_factory.mktemp("models") / "tiny" / "1"
    return directory, convert(checkpoint, directory)
