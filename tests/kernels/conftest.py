"""The library of the kernels, which tests load by itself or through the service, and the search alone."""

import ctypes
import os
import shutil
from pathlib import Path

import pytest
from filelock import FileLock

from kernels.build import build
from kernels.compilers import NoCompiler
from tests.kernels.compute import INSTRUCTION_SETS, Compute
from tests.kernels.native_search import compile_search
from tests.servers import REPOSITORY
from tests.tools import REQUIRED

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
def search_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the choice of tokens alone; skip without a compiler."""
    compiler = shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        pytest.skip("there is no C++ compiler")
    return compile_search(compiler, tmp_path_factory.mktemp("search"))
