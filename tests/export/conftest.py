"""A small checkpoint of our own kind, and its bundle."""

import functools
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from filelock import FileLock
from torch.onnx._internal._lazy_import import onnxscript_apis  # type: ignore[attr-defined]

from export.convert import convert
from service.bundle.manifest import Manifest
from tests.export.tiny_checkpoint import write_tiny_checkpoint


@pytest.fixture(scope="session", autouse=True)
def one_thread() -> None:
    """The models are so small that more threads only wait for each other, and for those of tests beside."""
    torch.set_num_threads(1)


@pytest.fixture(scope="session", autouse=True)
def quick_tracing() -> Iterator[None]:
    """torch reads the sources of its operators for ONNX again for each graph: a seventh of the time of tracing."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(onnxscript_apis, "get_torchlib_ops", functools.cache(onnxscript_apis.get_torchlib_ops))
        yield


@pytest.fixture(scope="session")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder as training writes it; tests that change it work on a copy."""
    return write_tiny_checkpoint(tmp_path_factory.mktemp("checkpoint"))


@pytest.fixture(scope="session")
def exported(checkpoint: Path, tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> tuple[Path, Manifest]:
    """That checkpoint's bundle; pytest's processes share it."""
    base = tmp_path_factory.getbasetemp()
    directory = (base if worker_id == "master" else base.parent) / "exported" / "tiny" / "1"
    with FileLock(directory.parents[1].with_suffix(".lock")):
        manifest = Manifest.load(directory) if directory.exists() else convert(checkpoint, directory)
    return directory, manifest
