"""The threads that share a run's work, compiled alone and under ThreadSanitizer."""

import os
import subprocess
from pathlib import Path

import pytest

from kernels.compilers import KERNELS
from tests.patience import patient

THREAD_SANITIZER = ("-fsanitize=thread", "-g")


def compile_team(compiler: str, folder: Path, *flags: str) -> Path:
    """Compile the driver; skip if the compiler does not know the flags."""
    program = folder / "team"
    sources = KERNELS / "src" / "runtime" / "team.cpp", Path(__file__).with_name("team_entry.cpp")
    command = [compiler, "-std=c++17", "-O2", "-pthread", "-Wall", "-Wextra", "-Werror", *flags, f"-I{KERNELS / 'src'}"]
    done = subprocess.run(
        [*command, *map(str, sources), "-o", str(program)], capture_output=True, text=True, check=False
    )
    if done.returncode and flags:
        pytest.skip(f"{compiler} has no {flags[0]}")
    assert done.returncode == 0, done.stderr
    return program


def hammer(program: Path, *arguments: str, seconds: float, **environment: str) -> None:
    done = subprocess.run(
        [str(program), *arguments],
        env=os.environ | environment, capture_output=True, text=True, check=False, timeout=patient(seconds),
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_chunk_runs_exactly_once(compiler: str, tmp_path: Path) -> None:
    """Also in a child process, whose parent has a team."""
    hammer(compile_team(compiler, tmp_path), "25", "3", "fork", seconds=30)


@pytest.mark.full
@pytest.mark.timeout(patient(300))
def test_no_race_is_found(compiler: str, tmp_path: Path) -> None:
    hammer(compile_team(compiler, tmp_path, *THREAD_SANITIZER), "8", "4", seconds=200, TSAN_OPTIONS="halt_on_error=1")
