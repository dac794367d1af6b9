"""Checkpoints and their bundles, of which each is converted once."""

import functools
import gc
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
from filelock import FileLock
from torch.onnx._internal.exporter._registration import ONNXRegistry

from export.convert import convert
from export.importers.options import NOTHING_SAID
from service.bundle.manifest import Manifest
from tests.export.huggingface.checkpoints import FAMILIES, FURTHER, OPTIONS
from tests.export.tiny_checkpoint import write_tiny_checkpoint
from tests.export.variants import Variant, variant_in, write_graphs

WRITERS = FAMILIES | FURTHER | {"native": write_tiny_checkpoint, "halves": FAMILIES["marian"]}
Converted = tuple[Path, Path, Manifest]  # a checkpoint, its bundle, and that one's manifest


@pytest.fixture(scope="session", autouse=True)
def one_thread() -> None:
    """Use one thread: with models this small, more would only wait for each other and for those of parallel tests."""
    torch.set_num_threads(1)


@pytest.fixture(scope="session", autouse=True)
def old_objects_stay() -> None:
    """Keep the garbage collector from all modules and tests, which it would look through again and again in tracing."""
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def one_table_of_operators() -> Iterator[None]:
    """Let torch build the table of ONNX's operators once a process, not once a graph: nothing here changes it, and to
    parse the source of all operators takes a third of the time of tracing so small a graph."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ONNXRegistry, "from_torchlib", staticmethod(functools.cache(ONNXRegistry.from_torchlib)))
        yield


@pytest.fixture(scope="session")
def common(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Path:
    """Return a folder of all of pytest's processes."""
    base = tmp_path_factory.getbasetemp()
    return base if worker_id == "master" else base.parent


@pytest.fixture(scope="session")
def conversions(common: Path) -> Callable[[str], Converted]:
    """Convert a family's checkpoint or the native one, and one to "halves", once for all of pytest's processes."""
    root = common / "conversions"
    root.mkdir(exist_ok=True)

    @functools.cache
    def converted(family: str) -> Converted:
        source, bundle = root / family / "opus-mt-tiny", root / family / "bundle"
        with FileLock(root / f"{family}.lock"):
            if not bundle.exists():
                shutil.rmtree(root / family, ignore_errors=True)
                source.parent.mkdir()
                written = WRITERS[family](source)
                precision = "float16" if family == "halves" else "float32"
                convert(written, bundle, precision=precision, options=OPTIONS.get(family, NOTHING_SAID))
        return source, bundle, Manifest.load(bundle)

    return converted


@pytest.fixture(scope="session")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder as training writes it; tests that change it work on a copy."""
    return write_tiny_checkpoint(tmp_path_factory.mktemp("checkpoint"))


@pytest.fixture(scope="session")
def exported(conversions: Callable[[str], Converted]) -> tuple[Path, Manifest]:
    """Return the bundle of an equal checkpoint."""
    return conversions("native")[1:]


@pytest.fixture(scope="session")
def variants(common: Path) -> Callable[[str], Variant]:
    """Trace the graphs of a variant once for all of pytest's processes; tests that change them work on a copy."""
    root = common / "variants"
    root.mkdir(exist_ok=True)

    @functools.cache
    def traced(name: str) -> Variant:
        variant = variant_in(root / name.replace(" ", "-"), name)
        with FileLock(root / f"{variant.folder.name}.lock"):
            if not (done := variant.folder / "done").exists():
                shutil.rmtree(variant.folder, ignore_errors=True)
                variant.folder.mkdir()
                write_graphs(variant)
                done.touch()
        return variant

    return traced
