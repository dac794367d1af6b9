"""Models as an OCI image, on their way through the tools that operators have: docs/artifacts.md as a test."""

import base64
import json
import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from export.package import find_bundles, package
from service.bundle.transfer.bundles import transfer
from tests.container_registry import registry
from tests.debian import newer_tool
from tests.image.engine import CommandFailed, ContainerEngine
from tests.image.server import HARDENED, ServerContainer
from tests.servers import REPOSITORY, TIMEOUT_SECONDS, ServerProcess, dragoman
from tests.tools import tool

pytestmark = [pytest.mark.image, pytest.mark.timeout(900)]

MODELS = REPOSITORY / "models"
BUNDLES = ["de-en/1", "en-de/1", "en-hi/1"]
NOTICE = REPOSITORY / "checkpoints/en-de/NOTICE"
PREDICATE_TYPE = "https://example.org/dragoman/model"
WITHOUT_A_LOG = ("--allow-insecure-registry", "--insecure-ignore-tlog", "--key", "cosign.pub")


@dataclass(frozen=True, slots=True)
class Pushed:
    """The image in a registry, and a folder with a pair of keys."""

    folder: Path
    tag: str
    digest: str

    @property
    def by_digest(self) -> str:
        return f"{self.tag.rpartition(':')[0]}@{self.digest}"

    def run(self, *command: str, ok: bool = True) -> str:
        """Run a tool in the folder; return what it prints, or with `ok` false, why it failed."""
        ended = subprocess.run(
            [newer_tool("cosign", "trixie") if command[0] == "cosign" else tool(command[0], command[0]), *command[1:]],
            cwd=self.folder,
            env=os.environ | {"COSIGN_PASSWORD": "for tests"},
            capture_output=True,
            text=True,
            timeout=TIMEOUT_SECONDS,
        )
        assert (ended.returncode == 0) == ok, ended.stderr
        return ended.stdout if ok else ended.stderr


@pytest.fixture(scope="module")
def pushed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pushed]:
    """Package the shipped models and push them."""
    folder = tmp_path_factory.mktemp("artifact")
    digest = package(find_bundles([MODELS]), folder / "layout", "v1", {"en-de": NOTICE}, lambda _: None)
    with registry(folder) as address:
        image = Pushed(folder, f"{address}/team/models:v1", digest)
        push(image, image.tag, "--preserve-digests")
        image.run("cosign", "generate-key-pair")
        yield image


def push(image: Pushed, tag: str, *options: str) -> None:
    image.run("skopeo", "copy", "--all", "--dest-tls-verify=false", *options, "oci:layout:v1", f"docker://{tag}")


def test_the_registry_has_the_digest_that_was_printed(pushed: Pushed) -> None:
    inspected = json.loads(pushed.run("skopeo", "inspect", "--tls-verify=false", f"docker://{pushed.tag}"))
    assert inspected["Digest"] == pushed.digest
    assert len(inspected["Layers"]) == len(BUNDLES)
    assert inspected["Labels"]["org.opencontainers.image.licenses"] == "CC-BY-4.0"


def test_signed_and_attested_and_verified_offline(pushed: Pushed) -> None:
    verify = ("cosign", "verify", *WITHOUT_A_LOG, pushed.by_digest)
    assert "no signatures found" in pushed.run(*verify, ok=False)
    sign = ("--yes", "--key", "cosign.key", "--tlog-upload=false", "--allow-insecure-registry")
    pushed.run("cosign", "sign", "--recursive", *sign, pushed.by_digest)
    (signature,) = json.loads(pushed.run(*verify))
    assert signature["critical"]["image"]["docker-manifest-digest"] == pushed.digest

    predicate = MODELS / "en-de/1/manifest.json"
    attest = ("--type", PREDICATE_TYPE, "--predicate", str(predicate))
    pushed.run("cosign", "attest", *sign, *attest, pushed.by_digest)
    attested = pushed.run("cosign", "verify-attestation", *WITHOUT_A_LOG, "--type", PREDICATE_TYPE, pushed.by_digest)
    statement = _payload(attested)
    assert statement["subject"][0]["digest"]["sha256"] == pushed.digest.removeprefix("sha256:")
    assert statement["predicate"] == json.loads(predicate.read_text())

    pushed.run("cosign", "generate-key-pair", "--output-key-prefix", "other")
    other = [*verify[:-2], "other.pub", verify[-1]]
    assert "no matching signatures" in pushed.run(*other, ok=False)


def _payload(envelope: str) -> Any:
    return json.loads(base64.b64decode(json.loads(envelope)["payload"]))


def test_mounted_read_only_and_served(pushed: Pushed, engine: ContainerEngine) -> None:
    engine.podman("pull", "--tls-verify=false", pushed.by_digest)
    mounted = Path(engine.podman("image", "mount", pushed.by_digest))
    try:
        assert_shipped(mounted)
        with pytest.raises(OSError, match="Read-only file system"):
            (mounted / "file").touch()
        with ServerProcess(mounted) as server:
            languages = ("--from", "en", "--to", "de")
            run = dragoman("translate", "--server", server.address, *languages, "Where is the train station?")
            assert run.stdout.decode() == "Wo ist der Bahnhof?\n"
    finally:
        engine.podman("image", "unmount", pushed.by_digest)


def test_mounted_in_a_container_of_the_server(pushed: Pushed, engine: ContainerEngine, image: str) -> None:
    engine.podman("pull", "--tls-verify=false", pushed.by_digest)
    mount = f"type=image,source={pushed.by_digest},destination=/models"
    with ServerContainer(engine, image, options=("--mount", mount)) as container:
        container.wait_until_healthy()
        assert "en-hi" in container.ask("-m", "service", "models")
        with pytest.raises(CommandFailed, match="Read-only file system"):
            engine.podman("exec", container.name, "touch", "/models/file")


def test_fetched_by_an_init_container(pushed: Pushed, engine: ContainerEngine, image: str, tmp_path: Path) -> None:
    """With the memory that our manifests give it, and without rights."""
    models = tmp_path / "models"
    models.mkdir()
    models.chmod(0o777)
    limits = (*HARDENED, "--memory", "128m", "--memory-swap", "128m")  # the last ones count
    command = ("-m", "service.bundle.transfer", f"oci://{pushed.by_digest}", "/models")
    run = (
        "run",
        "--rm",
        "--network",
        "host",
        *limits,
        "--volume",
        f"{models}:/models",
        "--entrypoint",
        "python",
        image,
    )
    assert "all checksums are right" in engine.podman(*run, *command)
    assert_shipped(models)
    assert {path.stat().st_uid for path in models.rglob("*")} == {10001}


def test_fetched_from_the_registry(pushed: Pushed, tmp_path: Path) -> None:
    assert transfer(f"oci://{pushed.tag}", tmp_path) == BUNDLES
    assert_shipped(tmp_path)


def test_fetched_as_skopeo_compresses_it(pushed: Pushed, tmp_path: Path) -> None:
    """That is what it does without --preserve-digests, unless the registry has the layers."""
    with registry(tmp_path) as address:
        tag = f"{address}/team/models:v1"
        push(pushed, tag)
        there = json.loads(pushed.run("skopeo", "inspect", "--tls-verify=false", f"docker://{tag}"))
        assert not {
            layer for layer in there["Layers"] if (pushed.folder / "layout/blobs" / layer.replace(":", "/")).exists()
        }
        assert transfer(f"oci://{tag}", tmp_path / "models") == BUNDLES
    assert_shipped(tmp_path / "models")


def assert_shipped(models: Path) -> None:
    for path in (path for path in MODELS.rglob("*") if path.is_file()):
        assert (models / path.relative_to(MODELS)).read_bytes() == path.read_bytes()
    assert (models / "en-de/1/NOTICE").read_bytes() == NOTICE.read_bytes()
