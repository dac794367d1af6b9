"""The image `cpu`, built and run for real: `make test-image`."""

import json
import re
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import service
from tests.deploy.test_dockerfile import CODE_AND_MODELS
from tests.image.callers import NUM_CALLS, TEXTS_PER_CALL
from tests.image.conftest import build, report
from tests.image.engine import ContainerEngine
from tests.image.inspection import MODEL, labels, layers, problems, sbom_problems, size_over_base, surprises
from tests.image.server import ServerContainer
from tests.servers import REPOSITORY, eventually

pytestmark = [pytest.mark.image, pytest.mark.timeout(900)]
GRACE_SECONDS = 30.0
MODELS = "/models"
CONFIG = "/etc/dragoman/config.toml"
METRICS = "http://127.0.0.1:9464/metrics"


@pytest.fixture(scope="module")
def root(engine: ContainerEngine, image: str) -> Iterator[Path]:
    """Yield the image's files."""
    yield Path(engine.podman("image", "mount", image))
    engine.podman("image", "unmount", image)


def test_its_settings_and_size(engine: ContainerEngine, image: str, base: str, revision: str) -> None:
    report(f"{size_over_base(engine, image, base) / 1e6:.0f} MB over its base")
    assert problems(engine, image, base) == []
    told = labels(engine, image)
    assert (told["version"], told["revision"], told["licenses"]) == (service.__version__, revision, CODE_AND_MODELS)


@pytest.mark.parametrize(
    ("fault", "problem"),
    [
        ("USER 0", "user 0"),
        ("HEALTHCHECK NONE", "no HEALTHCHECK"),
        ('LABEL org.opencontainers.image.revision=""', "label revision is missing"),
        ("COPY ballast /", "MB over its base, more than "),
    ],
)
def test_a_planted_fault_is_found(
    engine: ContainerEngine, image: str, base: str, tmp_path: Path, fault: str, problem: str
) -> None:
    (tmp_path / "Dockerfile").write_text(f"FROM {image}\n{fault}\n")
    (tmp_path / "ballast").write_bytes(bytes(1_000_000))
    engine.buildah("build", "--format", "docker", "--isolation", "chroot", "--tag", "faulty", tmp_path)
    budget = size_over_base(engine, image, base) + 500_000  # so that one more megabyte exceeds it
    (found,) = problems(engine, "faulty", base, budget)
    assert problem in found


def test_a_second_build_has_equal_layers(
    engine: ContainerEngine, image: str, base: str, revision: str, tmp_path: Path
) -> None:
    started = time.monotonic()
    again = build(engine, base, revision, "localhost/dragoman:again", "--no-cache")
    report(f"built again in {time.monotonic() - started:.0f} s")
    assert layers(engine, again) == layers(engine, image)
    (tmp_path / "Dockerfile").write_text(f"FROM {base}\nRUN date +%N > /now\n")
    for name in ("one", "other"):
        engine.buildah(
            *("build", "--isolation", "chroot", "--no-cache", "--timestamp", "0", "--tag", f"localhost/{name}"),
            tmp_path,
        )
    assert layers(engine, "localhost/one") != layers(engine, "localhost/other")


def test_nothing_is_in_it_that_a_server_does_not_need(root: Path) -> None:
    assert surprises(root) == []


def test_its_models_are_the_committed_ones(root: Path) -> None:
    for path in (REPOSITORY / "models").glob("*/*/*"):
        assert (root / "models" / path.relative_to(REPOSITORY / "models")).read_bytes() == path.read_bytes(), path


def test_the_licences_and_notices_of_code_and_models_are_in_it(root: Path) -> None:
    notices = root / "usr/share/dragoman"
    for name in ("LICENSE", "THIRD_PARTY.md"):
        assert (notices / name).read_bytes() == (REPOSITORY / name).read_bytes()
    models = [path.name for path in (root / "models").iterdir()]
    assert models
    for model in models:
        notice = (REPOSITORY / "checkpoints" / model / "NOTICE").read_bytes()
        assert (notices / "checkpoints" / model / "NOTICE").read_bytes() == notice


def test_the_sbom_lists_what_is_installed(root: Path, tmp_path: Path) -> None:
    assert sbom_problems(root) == []
    sbom = json.loads((root / "usr/share/dragoman/sbom.json").read_text())
    packages = [each for each in sbom["components"] if each["type"] != MODEL]
    models = [each for each in sbom["components"] if each["type"] == MODEL]
    report(f"{len(packages)} distributions and {len(models)} models in the SBOM")
    assert {model["name"] for model in models} == {path.name for path in (root / "models").iterdir()}
    planted = tmp_path / "usr/share/dragoman"
    planted.mkdir(parents=True)
    shutil.copy(root / "usr/share/dragoman/sbom.json", planted)
    files = [file for model in models for file in model["components"]]
    assert len(sbom_problems(tmp_path)) == 2 * len(packages) + len(files)  # nothing is installed there


def test_it_translates_and_answers_all_calls_under_way_on_a_stop(server: ServerContainer) -> None:
    seconds = server.wait_until_healthy()
    report(f"healthy after {seconds:.1f} s")
    said = server.ask("-m", "service", "translate", "--to", "de", "Where is the train station?")
    assert said == "Wo ist der Bahnhof?\n"
    assert server.public_ports() == {50051, 9464}
    page = server.ask("-c", f"import urllib.request as web; print(web.urlopen('{METRICS}').read().decode())")
    used = re.findall(r'^dragoman_model_info{.*kernels="([^"]*)"', page, re.MULTILINE)
    assert used
    assert all(kernels.startswith("fused ") for kernels in used), used
    report(f"kernels: {used[0]}")

    with server.client("-m", "tests.image.callers") as callers:
        assert callers.stdout is not None
        assert callers.stderr is not None
        assert callers.stdout.readline() == "under way\n", callers.stderr.read()
        charged, resident = server.peak_memory()
        server.signal("TERM")
        out, err = callers.communicate(timeout=60)
    assert callers.returncode == 0, err
    told = json.loads(out)
    assert told["unanswered_when_draining"] > 0  # otherwise this test proves nothing
    assert told["answered_texts"] == NUM_CALLS * TEXTS_PER_CALL
    assert server.wait(GRACE_SECONDS) == 0
    assert not server.was_out_of_memory()
    assert server.logs().count("\n") == 0  # nothing but the ready line
    report(f"{told['unanswered_when_draining']} calls drained")
    report(f"memory: at most {charged / 1e6:.0f} MB charged against its limit, {resident / 1e6:.0f} MB resident")


def test_a_stop_while_it_loads(engine: ContainerEngine, image: str) -> None:
    with ServerContainer(engine, image) as container:
        eventually(lambda: bool(container.public_ports()))  # before that, PID 1 has no handler and ignores signals
        assert not container.is_healthy()
        container.signal("TERM")
        assert container.wait(GRACE_SECONDS) == 0


def test_models_on_a_volume(engine: ContainerEngine, image: str, tiny_models: Path, tmp_path: Path) -> None:
    volume = tmp_path / "models"
    shutil.copytree(tiny_models / "tiny", volume / "tiny")  # readable for all, unlike pytest's own folders
    with ServerContainer(engine, image, options=("--volume", f"{volume}:{MODELS}:ro")) as container:
        container.wait_until_healthy()
        assert "tiny" in container.ask("-m", "service", "models")


def test_a_taken_port(engine: ContainerEngine, server: ServerContainer, image: str) -> None:
    eventually(lambda: bool(server.public_ports()))
    with ServerContainer(engine, image, network=f"container:{server.name}") as second:
        assert second.wait() == 71
        assert_one_line(second.logs(), "can't listen on 0.0.0.0:9464")


def test_a_missing_folder_of_models(engine: ContainerEngine, image: str) -> None:
    with ServerContainer(engine, image, "--models", "/nowhere") as container:
        assert container.wait() == 78
        assert_one_line(container.logs(), "/nowhere")


def test_a_wrong_key_in_the_configuration_file(engine: ContainerEngine, image: str, tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text("max_slot = 8\n")
    with ServerContainer(engine, image, options=("--volume", f"{file}:{CONFIG}:ro")) as container:
        assert container.wait() == 78
        assert_one_line(container.logs(), "max_slot")


def assert_one_line(logs: str, what: str) -> None:
    assert logs.startswith("dragoman: ")
    assert what in logs
    assert logs.count("\n") == 0
