"""The libraries under test, compiled once per session."""

import ctypes
import platform
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.kernels.compute import INSTRUCTION_SETS, Compute
from tests.kernels.native_search import compile_search

SOURCES = Path(__file__).parents[2] / "kernels" / "src"
FLAGS = "-std=c++17 -O3 -fPIC -fvisibility=hidden -ffp-contract=off -fno-math-errno -Wall -Wextra -Werror"


def own_flags(source: Path) -> list[str]:
    """Return what the comment at the top of a source wants it to be compiled with."""
    wanted = next((line for line in source.read_text().splitlines() if "Compile with -m" in line), "")
    return wanted.partition("Compile with ")[2].split()


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    """Return the library of `src/compute`; skip without a compiler. To be replaced by `kernels/build.py`."""
    compiler = shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        pytest.skip("there is no C++ compiler")
    folder = tmp_path_factory.mktemp("kernels")
    is_arm = platform.machine() == "aarch64"
    sources = [
        source
        for source in sorted((SOURCES / "compute").glob("*.cpp"))
        if source.stem in ("portable", "select") or source.stem.startswith("neon") == is_arm
    ]
    objects = [folder / f"{source.stem}.o" for source in sources]
    compilations = [
        subprocess.Popen([compiler, *FLAGS.split(), *own_flags(source), "-I", SOURCES, "-c", source, "-o", object_file])
        for source, object_file in zip(sources, objects, strict=True)
    ]
    statuses = [compilation.wait() for compilation in compilations]
    assert not any(statuses)
    subprocess.run([compiler, "-shared", *objects, "-o", folder / "library.so"], check=True)
    return ctypes.CDLL(str(folder / "library.so"))


@pytest.fixture(scope="session")
def computes(library: ctypes.CDLL) -> list[Compute]:
    """Return the arithmetic of every instruction set that this CPU can run."""
    found = [Compute.find(library, name) for name in INSTRUCTION_SETS]
    return [compute for compute in found if compute is not None]


@pytest.fixture(scope="session")
def search_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the choice of tokens alone; skip without a compiler."""
    compiler = shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        pytest.skip("there is no C++ compiler")
    return compile_search(compiler, tmp_path_factory.mktemp("search"))
