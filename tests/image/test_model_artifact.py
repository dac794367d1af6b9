"""Models as an image, on their way to servers: docs/artifacts.md as a test."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.image.engine import CommandFailed, ContainerEngine
from tests.image.server import HARDENED, ServerContainer
from tests.servers import REPOSITORY, ServerProcess, dragoman

pytestmark = [pytest.mark.image, pytest.mark.timeout(900)]

SHIPPED = REPOSITORY / "models"
NOTICE = REPOSITORY / "checkpoints/en-de/NOTICE"


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the shipped models and a notice, from which images are built."""
    folder = tmp_path_factory.mktemp("context")
    shutil.copytree(SHIPPED, folder / "models")
    shutil.copy(NOTICE, folder / "models/en-de/1/NOTICE")
    return folder


@pytest.fixture(scope="module")
def models_image(models: Path, engine: ContainerEngine) -> str:
    return build(engine, models, "FROM scratch", "COPY models /")


@pytest.fixture(scope="module")
def mounted(models_image: str, engine: ContainerEngine) -> Iterator[Path]:
    yield Path(engine.podman("image", "mount", models_image))
    engine.podman("image", "unmount", models_image)


def build(engine: ContainerEngine, context: Path, *lines: str) -> str:
    """Build an image from the lines of a Dockerfile; return its id."""
    (context / "Dockerfile").write_text("\n".join(lines))
    return engine.buildah("build", "--quiet", "--isolation", "chroot", context, timeout_seconds=300)


def test_mounted_read_only_and_served(mounted: Path) -> None:
    assert_shipped(mounted)
    with pytest.raises(OSError, match="Read-only file system"):
        (mounted / "file").touch()
    with ServerProcess(mounted) as server:
        languages = ("--from", "en", "--to", "de")
        run = dragoman("translate", "--server", server.address, *languages, "Where is the train station?")
        assert run.stdout.decode() == "Wo ist der Bahnhof?\n"


def test_mounted_in_a_container_of_the_server(models_image: str, engine: ContainerEngine, image: str) -> None:
    mount = f"type=image,source={models_image},destination=/models"
    with ServerContainer(engine, image, options=("--mount", mount)) as container:
        container.wait_until_healthy()
        assert "en-hi" in container.ask("-m", "service", "models")
        with pytest.raises(CommandFailed, match="Read-only file system"):
            engine.podman("exec", container.name, "touch", "/models/file")


def test_copied_by_an_init_container(models: Path, engine: ContainerEngine, image: str, tmp_path: Path) -> None:
    """With the memory that our manifests give it, and without rights."""
    init_image = build(engine, models, f"FROM {image}", "COPY models /source")
    target = tmp_path / "models"
    target.mkdir()
    target.chmod(0o777)
    limits = (*HARDENED, "--memory", "128m", "--memory-swap", "128m")  # the last ones count
    run = ("run", "--rm", "--network", "none", *limits, "--volume", f"{target}:/models", "--entrypoint", "python")
    command = ("-m", "service.bundle.transfer", "/source", "/models")
    assert "all checksums match" in engine.podman(*run, init_image, *command)
    assert_shipped(target, with_notice=False)
    assert {path.stat().st_uid for path in target.rglob("*")} == {10001}


def assert_shipped(folder: Path, *, with_notice: bool = True) -> None:
    for path in (path for path in SHIPPED.rglob("*") if path.is_file()):
        assert (folder / path.relative_to(SHIPPED)).read_bytes() == path.read_bytes()
    if with_notice:
        assert (folder / "en-de/1/NOTICE").read_bytes() == NOTICE.read_bytes()
