"""A server on other kernels than the fastest: it serves, and says in one line which."""

import os
import re
import signal
from pathlib import Path

import pytest

from dragoman_client import Client
from service.engine.runtime.kernels import KernelsUnavailable, find_kernels
from tests.servers import REPOSITORY, ServerProcess
from tests.tools import REQUIRED

RUNS_ON = "service.engine.runtime.runners: "


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a repository with one shipped int8 model."""
    root = tmp_path_factory.mktemp("models")
    (root / "en-de").symlink_to(REPOSITORY / "models" / "en-de")
    return root


def served(models: Path, level: str, **variables: str) -> tuple[str, list[str]]:
    """Return how a server that translated tells its kernels in its metrics, and what it logged of them."""
    with ServerProcess(models, "--log-level", level, variables=variables) as process:
        with Client(process.address) as client:
            (translation,) = client.translate(["Where is the train station?"], "en", "de")
        assert translation.text == "Wo ist der Bahnhof?" or not (models / "en-de").exists()
        (told,) = re.findall(r'^dragoman_model_info{.*kernels="([^"]*)"', process.get("/metrics")[2], re.MULTILINE)
        process.signal(signal.SIGTERM)
        code, _, errors = process.wait()
        assert code == 0
        said = errors.splitlines() if level == "warning" else [line for line in errors.splitlines() if RUNS_ON in line]
        return told, [line.split(" ", 1)[1] for line in said]


@pytest.fixture
def library() -> None:
    """Skip without the library, or fail if tools are required."""
    try:
        find_kernels()
    except KernelsUnavailable as reason:
        if os.environ.get(REQUIRED):
            pytest.fail(str(reason))
        pytest.skip(str(reason))


@pytest.mark.usefixtures("library")
@pytest.mark.parametrize("name", ["avx2", "portable"])
def test_forced(models: Path, fused_tiny_models: Path, name: str) -> None:
    """The shipped model takes the portable kernels seconds until it is loaded, so they run the tiny one."""
    served_models, model = (fused_tiny_models, "tiny") if name == "portable" else (models, "en-de")
    if name != "portable" and os.uname().machine != "x86_64":
        pytest.skip(f"{name} is for other CPUs")
    told, said = served(served_models, "info", DRAGOMAN_KERNELS=name)
    assert told == f"fused {name}"
    assert said == [f"INFO {RUNS_ON}{served_models}/{model}/1 runs on fused {name} kernels"]


def test_without_the_library_nothing_is_served(models: Path, tmp_path: Path) -> None:
    process = ServerProcess(models, variables={"DRAGOMAN_KERNELS_LIBRARY": str(tmp_path / "none.so")}, ready=False)
    code, _, errors = process.wait()
    assert code != 0
    assert "none.so is missing; build it with 'make serve'" in errors


@pytest.mark.usefixtures("library")
def test_a_choice_that_this_cpu_lacks_names_those_that_it_has(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRAGOMAN_KERNELS", "nonsense")
    with pytest.raises(KernelsUnavailable, match=r"DRAGOMAN_KERNELS is 'nonsense'; this CPU can run .*portable$"):
        find_kernels()
