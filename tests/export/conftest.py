"""A small native checkpoint and its bundle."""

import functools
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from filelock import FileLock
from torch._export import utils as export_utils
from torch.onnx._internal.exporter._registration import ONNXRegistry

from export.convert import convert
from export.graphs import tracing
from service.bundle.manifest import Manifest
from tests.export.tiny_checkpoint import write_tiny_checkpoint
from tests.export.traced_graphs import Trace, remembering


@pytest.fixture(scope="session", autouse=True)
def one_thread() -> None:
    """Use one thread: with models this small, more would only wait for each other and for those of parallel tests."""
    torch.set_num_threads(1)


@pytest.fixture(scope="session", autouse=True)
def quick_tracing() -> Iterator[None]:
    """Collect torch's operators and what they are in ONNX once, not for each graph: a seventh of the tracing time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ONNXRegistry, "from_torchlib", staticmethod(functools.cache(ONNXRegistry.from_torchlib)))
        patch.setattr(export_utils, "_materialize_cpp_cia_ops", functools.cache(export_utils._materialize_cpp_cia_ops))
        yield


@pytest.fixture(scope="session", autouse=True)
def traced_anew(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Iterator[Trace]:
    """Trace equal modules once in all of pytest's processes; yield the function that does it each time."""
    base = tmp_path_factory.getbasetemp()
    folder = (base if worker_id == "master" else base.parent) / "traced"
    folder.mkdir(exist_ok=True)
    trace: Trace = tracing._trace
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tracing, "_trace", remembering(trace, folder))
        yield trace


@pytest.fixture(scope="session")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder as training writes it; tests that change it work on a copy."""
    return write_tiny_checkpoint(tmp_path_factory.mktemp("checkpoint"))


@pytest.fixture(scope="session")
def exported(checkpoint: Path, tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> tuple[Path, Manifest]:
    """Return the bundle of that checkpoint, shared by pytest's processes."""
    base = tmp_path_factory.getbasetemp()
    directory = (base if worker_id == "master" else base.parent) / "exported" / "tiny" / "1"
    with FileLock(directory.parents[1].with_suffix(".lock")):
        manifest = Manifest.load(directory) if directory.exists() else convert(checkpoint, directory)
    return directory, manifest
