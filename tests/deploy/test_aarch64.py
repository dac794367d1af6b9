"""The wheel for aarch64, with its kernels compiled here: qemu runs a server of it, which translates as one here does.

Debian's Python for arm64 and qemu, which must not be older than 10, are fetched and unpacked, not installed.
"""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.debian import unpack
from tests.patience import patient
from tests.servers import REPOSITORY, ServerProcess, read_line

pytestmark = [pytest.mark.full, pytest.mark.timeout(900)]
SUITE, PYTHON = "trixie", "3.13"
ARM64 = (
    *("python3.13-minimal", "libpython3.13-minimal", "libpython3.13-stdlib", "libc6", "libgcc-s1", "libstdc++6"),
    *("libbz2-1.0", "libexpat1", "libffi8", "liblzma5", "libsqlite3-0", "libssl3t64", "libuuid1", "libzstd1", "zlib1g"),
)
LIBRARY = "build/kernels-aarch64-linux-gnu/libdragoman_kernels.so"
PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet")
PLATFORMS = tuple(f"--platform=manylinux_2_{minor}_aarch64" for minor in (28, 27, 26, 24, 17))
FOR_AARCH64 = (*PLATFORMS, "--platform=manylinux2014_aarch64", f"--python-version={PYTHON}", "--only-binary=:all:")
TEXTS = ["Where is the train station?", "Close all other programs before you start the installation (see page 12)."]


def run(*command: str | Path, timeout_seconds: float = 300, **settings: str) -> str:
    return subprocess.run(
        command,
        cwd=REPOSITORY,
        env=os.environ | settings,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        timeout=patient(timeout_seconds),
    ).stdout


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of the server, and all that it needs, for aarch64."""
    folder = tmp_path_factory.mktemp("aarch64")
    run(sys.executable, "kernels/build.py", "--compiler", "zig", "--target", "aarch64-linux-gnu")
    wheels = ("wheel", "--no-deps", "--no-index", "--no-build-isolation", "--wheel-dir", str(folder / "wheels"))
    run(*PIP, *wheels, "./client", ".", DRAGOMAN_BUILD_KERNELS=str(REPOSITORY / LIBRARY))
    (server,) = (folder / "wheels").glob("dragoman-[0-9]*.whl")
    (client,) = (folder / "wheels").glob("dragoman_client-*.whl")
    assert server.name.endswith("_aarch64.whl")
    install = ("install", "--constraint", "constraints.txt", "--target", str(folder / "packages"), *FOR_AARCH64)
    run(*PIP, *install, client, f"{server}[cpu]")
    return folder / "packages"


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Return the command of Python for aarch64."""
    root = unpack(tmp_path_factory.mktemp("debian"), SUITE, ("qemu-user", *(f"{name}:arm64" for name in ARM64)))
    return [str(root / "usr/bin/qemu-aarch64"), "-L", str(root), str(root / f"usr/bin/python{PYTHON}")]


@pytest.fixture
def address(packages: Path, python: list[str], tmp_path: Path) -> Iterator[str]:
    """Yield where an emulated server of the shipped models listens."""
    command = [*python, "-m", "service", "serve", "--models", str(REPOSITORY / "models"), "--num-threads", "1"]
    with subprocess.Popen(
        [*command, "--port", "0", "--metrics-port", "0", "--admin-port", "0"],
        cwd=packages,
        env=os.environ | {"PYTHONPATH": str(packages), "PYTHONPYCACHEPREFIX": str(tmp_path)},
        stdout=subprocess.PIPE,
        text=True,
    ) as server:
        try:
            ready = read_line(server, timeout_seconds=400)
            (listens,) = re.findall(r"gRPC on (\S+),", ready)
            yield listens
            server.terminate()
            assert server.wait(patient(60)) == 0
        finally:
            server.kill()


def test_an_emulated_server_translates_as_one_here_does(python: list[str], address: str) -> None:
    assert run(*python, "-c", "import platform; print(platform.machine())") == "aarch64\n"
    with ServerProcess(REPOSITORY / "models") as here:
        expected = translations(here.address)
    assert translations(address) == expected
    assert expected.startswith("Wo ist der Bahnhof?\n")


def translations(address: str) -> str:
    """Return what the command line of this machine prints of a server's translations."""
    command = (sys.executable, "-m", "service", "translate", "--server", address, "--to", "de")
    return run(*command, *TEXTS, timeout_seconds=60)
