"""The server's wheel, built without network: it contains the kernels, or is a plain one where they can't be made."""

import ctypes
import os
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import hatchling
import pytest

from kernels.build import LIBRARY
from kernels.compilers import ZIG
from tests.kernels.test_build import ENTRIES
from tests.patience import patient
from tests.servers import REPOSITORY
from tests.tools import tool

MISSING = {"CXX": "/nowhere/c++"}
# A developer's or the CI's own choices must not decide what these tests see.
ENVIRONMENT = {name: value for name, value in os.environ.items() if name not in ("CXX", "DRAGOMAN_BUILD_KERNELS")}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Return the project with little code and small kernels."""
    folder = tmp_path / "project"
    for name in ("service", "export", "kernels/src/runtime"):
        (folder / name).mkdir(parents=True)
    for name in (
        *("pyproject.toml", "hatch_build.py", "README.md", "LICENSE", "THIRD_PARTY.md", ".gitignore"),
        *("service/__init__.py", "export/__init__.py"),
        *("kernels/build.py", "kernels/compilers.py", "kernels/exports.map"),
    ):
        shutil.copy(REPOSITORY / name, folder / name)
    (folder / "kernels" / "src" / "runtime" / "entries.cpp").write_text(ENTRIES)
    return folder


def wheel(project: Path, **settings: str) -> Path:
    """Return the wheel that is built in the environment, changed by the settings; raise what is said if it fails."""
    code = "import sys, hatchling.build; print(hatchling.build.build_wheel(sys.argv[1]))"
    output = project.parent / "wheels"
    command = [sys.executable, "-c", code, str(output)]
    environment = ENVIRONMENT | settings
    run = subprocess.run(command, cwd=project, env=environment, capture_output=True, text=True, timeout=patient(60))
    if run.returncode:
        raise RuntimeError(run.stderr)
    return output / run.stdout.split()[-1]


def test_the_wheel_contains_the_library_and_names_its_platform(project: Path) -> None:
    tool("g++", "g++")
    made = wheel(project, CXX="g++", DRAGOMAN_BUILD_KERNELS="require")
    assert made.name.startswith("dragoman-0.1.0-py3-none-manylinux_2_")
    assert made.name.endswith(f"_{os.uname().machine}.whl")
    target = project.parent / "installed"
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--no-index", "--no-deps")
    subprocess.run([*pip, "--no-compile", "--target", str(target), str(made)], check=True, timeout=patient(60))
    assert ctypes.CDLL(str(target / "service" / "kernels" / LIBRARY)).dragoman_compute(2) == 0
    assert not (target / "kernels").exists()


def test_without_a_compiler_there_is_an_error(project: Path) -> None:
    (project / "service" / "kernels").mkdir()
    (project / "service" / "kernels" / LIBRARY).write_text("of other sources")
    os.utime(project / "service" / "kernels" / LIBRARY, (0, 0))
    with pytest.raises(RuntimeError, match=r"no C\+\+17 compiler for \S+: install g\+\+"):
        wheel(project, **MISSING)
    with pytest.raises(RuntimeError, match="DRAGOMAN_BUILD_KERNELS is 'yes'; allowed: require, never or the path"):
        wheel(project, DRAGOMAN_BUILD_KERNELS="yes")


def test_whoever_leaves_the_kernels_out_needs_nothing_of_them(project: Path) -> None:
    shutil.rmtree(project / "kernels")
    assert wheel(project, **MISSING, DRAGOMAN_BUILD_KERNELS="never").name == "dragoman-0.1.0-py3-none-any.whl"


def test_a_library_made_before_is_taken_and_names_its_cpu(project: Path, tmp_path: Path) -> None:
    shutil.rmtree(project / "kernels")
    library = tmp_path / LIBRARY
    library.write_bytes(b"\x7fELF" + bytes(14) + (183).to_bytes(2, "little") + b"\0GLIBC_2.28\0")
    made = wheel(project, **MISSING, DRAGOMAN_BUILD_KERNELS=str(library))
    assert made.name == "dragoman-0.1.0-py3-none-manylinux_2_28_aarch64.whl"
    with zipfile.ZipFile(made) as packed:
        assert packed.read(f"service/kernels/{LIBRARY}") == library.read_bytes()
    library.write_bytes(b"MZ" + bytes(30))
    with pytest.raises(RuntimeError, match="the kernels' library is not for Linux on one of"):
        wheel(project, **MISSING, DRAGOMAN_BUILD_KERNELS=str(library))


def requirements(project: Path, **settings: str) -> list[str]:
    """Return what the build asks pip for."""
    code = "import hatchling.build; print(*hatchling.build.get_requires_for_build_wheel())"
    run = [sys.executable, "-S", "-c", code]  # where this project is not installed
    environment = ENVIRONMENT | {"PYTHONPATH": str(Path(hatchling.__file__).parent.parent)} | settings
    return subprocess.run(
        run, cwd=project, env=environment, capture_output=True, text=True, check=True, timeout=patient(60)
    ).stdout.split()


def test_a_compiler_is_asked_for_where_there_is_none(project: Path) -> None:
    assert requirements(project, **MISSING) == [ZIG]
    assert requirements(project, **MISSING, DRAGOMAN_BUILD_KERNELS="never") == []
    library = project / "service" / "kernels" / LIBRARY
    library.parent.mkdir()
    library.touch()
    assert requirements(project, **MISSING) == []  # nothing to compile
    os.utime(library, (0, 0))
    assert requirements(project, **MISSING) == [ZIG]
    shutil.rmtree(project / "kernels")
    assert requirements(project, **MISSING, DRAGOMAN_BUILD_KERNELS="never") == []  # as for the image's dependencies


def test_the_compiler_has_one_version() -> None:
    assert ZIG in (REPOSITORY / "constraints.txt").read_text().splitlines()
    assert ZIG in tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["dependency-groups"]["dev"]
