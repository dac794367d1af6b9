"""The image, built from the working tree, and one server of it for tests that only inspect it."""

import signal
import subprocess
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

import service
from tests.image.base_image import base_image
from tests.image.engine import ContainerEngine
from tests.image.pip_settings import mounts
from tests.image.server import ServerContainer
from tests.servers import REPOSITORY

IMAGE = "localhost/dragoman:cpu"
TIMESTAMP = 1_750_000_000  # of files and image: as of a commit
STARTED = time.monotonic()


def report(text: str) -> None:
    """Print one line of progress with the elapsed seconds."""
    print(f"[{time.monotonic() - STARTED:4.0f} s] {text}", flush=True)


@pytest.fixture(scope="session")
def engine() -> Iterator[ContainerEngine]:
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that a stopped test run leaves nothing behind
    engine = ContainerEngine()
    try:
        yield engine
    finally:
        engine.close()


@pytest.fixture(scope="session")
def base(engine: ContainerEngine) -> str:
    report("getting the base image")
    name = base_image(engine)
    report(f"base image {name}")
    return name


@pytest.fixture(scope="session")
def revision() -> str:
    head: list[str | Path] = ["git", "-C", REPOSITORY, "rev-parse", "HEAD"]
    return subprocess.run(head, capture_output=True, text=True, check=True, timeout=10).stdout.strip()


def build(engine: ContainerEngine, base: str, revision: str, image: str, *flags: str) -> str:
    """Build the working tree's image under a name, which is returned."""
    arguments = {
        "PYTHON_IMAGE": base,
        "VERSION": service.__version__,
        "REVISION": revision,
        "CREATED": datetime.fromtimestamp(TIMESTAMP, UTC).isoformat(timespec="seconds"),
        "SOURCE": "https://example.org/dragoman",
    }
    engine.buildah(
        *("build", "--format", "docker", "--isolation", "chroot", "--tag", image, "--timestamp", str(TIMESTAMP)),
        *(*mounts(engine.folder), *flags),
        *(word for name, value in arguments.items() for word in ("--build-arg", f"{name}={value}")),
        REPOSITORY,
        timeout_seconds=900,
    )
    return image


@pytest.fixture(scope="session")
def image(engine: ContainerEngine, base: str, revision: str) -> str:
    name = build(engine, base, revision, IMAGE)
    report("image built")
    return name


@pytest.fixture
def server(engine: ContainerEngine, image: str) -> Iterator[ServerContainer]:
    with ServerContainer(engine, image) as container:
        yield container
