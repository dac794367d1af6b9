"""Hostile graphs and inputs get an error, never a crash: they are tried in a process of their own."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from kernels.build import build
from tests.kernels.conftest import GIVEN
from tests.patience import patient
from tests.servers import REPOSITORY


def fuzz(library: Path, folder: Path, graphs: tuple[int, int], numbers: tuple[int, int, int], seconds: float,
         **environment: str) -> None:  # fmt: skip
    """Try the hostile graphs from one on, each few, and numbers of changed graphs and of damaged inputs with a seed."""
    program = ("-m", "tests.kernels.fuzz_operators")
    done = subprocess.run(
        [sys.executable, *program, str(library), str(folder), *map(str, (*graphs, *numbers))],
        env=os.environ | environment, cwd=REPOSITORY, capture_output=True, text=True, check=False,
        timeout=patient(seconds),
    )  # fmt: skip
    assert done.returncode == 0, (done.stdout[-300:] + done.stderr[-5000:]).strip()


def test_hostile_graphs_get_an_error(kernels_library: Path, tmp_path: Path) -> None:
    fuzz(kernels_library, tmp_path, graphs=(0, 16), numbers=(200, 600, 1), seconds=60)


@pytest.mark.full
@pytest.mark.timeout(patient(600))
def test_all_hostile_graphs_get_an_error(kernels_library: Path, tmp_path: Path) -> None:
    fuzz(kernels_library, tmp_path, graphs=(0, 1), numbers=(4000, 4000, 2), seconds=500)


@pytest.mark.full
@pytest.mark.timeout(patient(2400))
def test_sanitizers_find_nothing(tmp_path: Path) -> None:
    """Neither in graphs and inputs that are hostile, nor in those that are right."""
    compiler = shutil.which("g++")
    runtimes = [library_of(compiler, name) for name in ("libasan.so", "libstdc++.so.6")] if compiler else []
    if not all(runtimes) or compiler is None:
        pytest.skip("there is no g++ with AddressSanitizer")
    library = build(tmp_path, wanted=compiler, sanitize=True)
    environment = {"LD_PRELOAD": " ".join(runtimes), "ASAN_OPTIONS": "detect_leaks=0", "PYTHONMALLOC": "malloc"}
    fuzz(library, tmp_path, graphs=(3, 7), numbers=(20_000, 20_000, 3), seconds=1500, **environment)
    files = [f"tests/kernels/test_{name}.py" for name in ("encode", "decode", "shared_memory")]
    subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *files],
        env=os.environ | environment | {GIVEN: str(library)}, cwd=REPOSITORY, check=True, timeout=patient(500),
    )  # fmt: skip


def library_of(compiler: str, name: str) -> str:
    """Return where a library of the compiler is, or nothing if it has none."""
    path = subprocess.run([compiler, f"-print-file-name={name}"], capture_output=True, text=True, check=True).stdout
    return path.strip() if Path(path.strip()).is_absolute() else ""
