"""The library of the kernels, which tests load by itself or through the service."""

import ctypes
import os
import shutil
from pathlib import Path

import pytest
from filelock import FileLock

from kernels.build import build
from kernels.compilers import NoCompiler
from tests.export.tiny_models import random_sources
from tests.kernels.compute import INSTRUCTION_SETS, Compute
from tests.kernels.fused_graphs import SHAPES, Shape
from tests.kernels.operators import Ids, Operators
from tests.servers import REPOSITORY
from tests.tools import REQUIRED, tool

GIVEN = "DRAGOMAN_KERNELS_LIBRARY"  # another build of it, as with --sanitize


@pytest.fixture(scope="session")
def kernels_library() -> Path:
    """Return the library's path; skip without a compiler, or fail if tools are required."""
    if given := os.environ.get(GIVEN):
        return Path(given)
    (REPOSITORY / "build").mkdir(exist_ok=True)
    try:
        with FileLock(REPOSITORY / "build" / "kernels.lock"):
            return build(strict=True)
    except NoCompiler as error:
        if os.environ.get(REQUIRED):
            pytest.fail(str(error))
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def computes(kernels_library: Path) -> list[Compute]:
    """Return the arithmetic of every instruction set that this CPU can run."""
    library = ctypes.CDLL(str(kernels_library))
    found = [Compute.find(library, name) for name in INSTRUCTION_SETS]
    return [compute for compute in found if compute is not None]


@pytest.fixture(scope="session")
def compiler() -> str:
    """Return a real compiler; skip if there is none but zig, which takes its time."""
    return next((path for name in ("g++", "clang++") if (path := shutil.which(name))), "") or tool("g++", "g++")


@pytest.fixture(scope="module", params=SHAPES)
def shape(request: pytest.FixtureRequest) -> Shape:
    """Return each of the small models' shapes."""
    return SHAPES[request.param]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, shape: Shape) -> Path:
    """Return the folder of `operators`."""
    return tmp_path_factory.mktemp("operators")


@pytest.fixture(scope="module")
def operators(kernels_library: Path, folder: Path, shape: Shape) -> Operators:
    """Return the operators of a model, which record attention if it has heads for that."""
    return Operators.tiny(kernels_library, folder, shape)


@pytest.fixture(scope="module")
def sources(shape: Shape) -> list[Ids]:
    """Return sources of many lengths, among them those around a block's."""
    return random_sources(shape.num_tokens, [17, 1, 9, 16, 33, 15, 3, 22, 48, 64])
