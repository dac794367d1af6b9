"""Bundles from an image in a registry: whole, verified, continued, and only what was asked for."""

import gzip
import hashlib
import io
import json
import shutil
import signal
import ssl
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest

from export.package import find_bundles, package
from service.bundle.checksums import check_intact, file_sha256
from service.bundle.errors import BundleError
from service.bundle.manifest import Manifest
from service.bundle.transfer.bundles import transfer
from service.bundle.transfer.download import ATTEMPTS
from service.bundle.transfer.registry import Reference
from tests.certificates import Authority
from tests.model_registry import ModelRegistry, model_registry
from tests.patience import patient
from tests.servers import REPOSITORY, TIMEOUT_SECONDS, environment, eventually
from tests.unit.bundle.transfer.conftest import NOTICE


def digests(registry: ModelRegistry, folder: Path | None = None) -> dict[str, str]:
    """Return the digests of the index, of each platform's manifest, and of the first layer."""
    (image,) = json.loads(((folder or registry.layout) / "index.json").read_text())["manifests"]
    found = {"index": image["digest"]}
    for each in json.loads(registry.content(image["digest"]) or b"")["manifests"]:
        found[each["platform"]["architecture"]] = each["digest"]
        found["layer"] = json.loads(registry.content(each["digest"]) or b"")["layers"][0]["digest"]
    return found


def visible(destination: Path) -> list[str]:
    return sorted(path.name for path in destination.glob("[!.]*"))


def test_bundles_arrive_whole_with_their_notice(registry: ModelRegistry, tmp_path: Path, tiny_bundle: Path) -> None:
    assert transfer(f"{registry.url}:v1", tmp_path) == ["tiny/1"]
    bundle = tmp_path / "tiny" / "1"
    check_intact(bundle, Manifest.load(bundle))
    assert bundle.joinpath("manifest.json").read_bytes() == tiny_bundle.joinpath("manifest.json").read_bytes()
    assert (bundle / "NOTICE").read_text() == NOTICE
    assert [path.name for path in tmp_path.iterdir()] == ["tiny"]
    assert [path.name for path in bundle.parent.iterdir()] == ["1"]


def test_a_digest_names_an_image_and_needs_no_tag(registry: ModelRegistry, tmp_path: Path) -> None:
    assert transfer(f"{registry.url}@{digests(registry)['index']}", tmp_path) == ["tiny/1"]


def test_what_is_there_is_not_fetched_again(registry: ModelRegistry, tmp_path: Path) -> None:
    transfer(f"{registry.url}:v1", tmp_path)
    transfer(f"{registry.url}:v1", tmp_path)
    assert registry.starts(digests(registry)["layer"]) == [0]


def test_another_bundle_of_that_name_is_kept(registry: ModelRegistry, tmp_path: Path, tiny_versions: Path) -> None:
    (tmp_path / "source" / "tiny").mkdir(parents=True)
    (tmp_path / "source" / "tiny" / "1").symlink_to(tiny_versions / "2")
    transfer(tmp_path / "source", tmp_path / "models")
    before = file_sha256(tmp_path / "models" / "tiny" / "1" / "manifest.json")
    with pytest.raises(BundleError, match=r"tiny/1 is another bundle"):
        transfer(f"{registry.url}:v1", tmp_path / "models")
    assert file_sha256(tmp_path / "models" / "tiny" / "1" / "manifest.json") == before


@pytest.mark.parametrize("ranges", [True, False])
def test_a_cut_connection_is_continued(
    ranges: bool, registry: ModelRegistry, tmp_path: Path, pauses: list[float]
) -> None:
    registry.faults.ranges = ranges
    registry.faults.cuts = [1000, 0 if ranges else 1000, 3000]  # without ranges, the next begins anew
    transfer(f"{registry.url}:v1", tmp_path)
    check_intact(tmp_path / "tiny" / "1", Manifest.load(tmp_path / "tiny" / "1"))
    assert registry.starts(digests(registry)["layer"]) == [0, 1000, 1000, 4000 if ranges else 3000]


def test_a_blob_that_never_arrives_is_given_up(registry: ModelRegistry, tmp_path: Path) -> None:
    registry.faults.cuts = [0] * 100
    with pytest.raises(BundleError, match=r"ends after 0 of \d+ bytes"):
        transfer(f"{registry.url}:v1", tmp_path)
    assert len(registry.starts(digests(registry)["layer"])) == ATTEMPTS
    assert visible(tmp_path) == []


def test_a_busy_registry_is_asked_again(registry: ModelRegistry, tmp_path: Path, pauses: list[float]) -> None:
    registry.faults.failures = ATTEMPTS - 1
    transfer(f"{registry.url}:v1", tmp_path)
    assert pauses == [1.0, 2.0, 4.0, 8.0]


@pytest.mark.parametrize(
    ("status", "message", "requests"),
    [
        (503, "503 Service Unavailable; 5 attempts failed", ATTEMPTS),
        (403, "ask for the right to pull it", 1),
        (404, "check its name", 1),
    ],
)
def test_a_registry_that_refuses(
    status: int, message: str, requests: int, registry: ModelRegistry, tmp_path: Path, pauses: list[float]
) -> None:
    registry.faults.status, registry.faults.failures = status, 100
    with pytest.raises(BundleError, match=message):
        transfer(f"{registry.url}:v1", tmp_path)
    assert len(registry.requests) == requests


def test_an_unreachable_registry(tmp_path: Path, pauses: list[float]) -> None:
    with pytest.raises(BundleError, match=r"127.0.0.1:1 can't be reached: .* 5 attempts failed"):
        transfer("oci://127.0.0.1:1/team/models:v1", tmp_path)


@pytest.mark.parametrize("part", ["index", "manifest", "layer"])
def test_other_bytes_than_the_digest_says(part: str, registry: ModelRegistry, tmp_path: Path) -> None:
    known = digests(registry)
    if part == "manifest":  # whichever platform this is
        registry.faults.replaced = {known[name]: b"{}" for name in ("amd64", "arm64")}
    else:
        whole = registry.content(known[part])
        assert whole is not None
        registry.faults.replaced = {known[part]: whole[:-1] + b"x"}
    with pytest.raises(BundleError, match=r"don't trust it|does not have the digest"):
        transfer(f"{registry.url}@{known['index']}", tmp_path)
    assert visible(tmp_path) == []
    registry.faults.replaced = {}
    assert transfer(f"{registry.url}@{known['index']}", tmp_path) == ["tiny/1"]


@pytest.mark.parametrize("takes_basic", [False, True])
def test_credentials(
    takes_basic: bool, registry: ModelRegistry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    registry.faults.password, registry.faults.takes_basic = "secret", takes_basic
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    monkeypatch.delenv("REGISTRY_AUTH_FILE", raising=False)
    with pytest.raises(BundleError, match=r"401 Unauthorized; log in, and set DOCKER_CONFIG"):
        transfer(f"{registry.url}:v1", tmp_path / "models")
    entry = {"username": "reader", "password": "secret"}
    (tmp_path / "config.json").write_text(json.dumps({"auths": {registry.address: entry}}))
    assert transfer(f"{registry.url}:v1", tmp_path / "models") == ["tiny/1"]


def test_a_token_for_anybody(registry: ModelRegistry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    registry.faults.password, registry.faults.is_public = "secret", True
    assert transfer(f"{registry.url}:v1", tmp_path / "models") == ["tiny/1"]


@pytest.mark.parametrize(
    ("text", "registry", "repository", "version"),
    [
        ("host:5000/team/a.b_c-d:V1.0", "host:5000", "team/a.b_c-d", "V1.0"),
        ("host/models", "host", "models", "latest"),
        (f"host/models:v1@sha256:{'0' * 64}", "host", "models", f"sha256:{'0' * 64}"),
        ("docker.io/team/models:v1", "registry-1.docker.io", "team/models", "v1"),
        ("docker.io/models", "registry-1.docker.io", "library/models", "latest"),
    ],
)
def test_names_of_images(text: str, registry: str, repository: str, version: str) -> None:
    assert Reference.parse(text) == Reference(registry, repository, version)


@pytest.mark.parametrize("realm", ["file:///etc/passwd", "ftp://127.0.0.1/token", "token"])
def test_a_place_for_tokens_that_is_none(realm: str, registry: ModelRegistry, tmp_path: Path) -> None:
    registry.faults.password, registry.faults.realm = "secret", realm
    with pytest.raises(BundleError, match="sends callers for a token to a place without TLS"):
        transfer(f"{registry.url}:v1", tmp_path)


@pytest.mark.parametrize(("realm", "token"), [("http://[", "a-token"), ("", "a-token\nof two lines"), ("", "\u00e9")])
def test_a_token_that_no_header_may_have(realm: str, token: str, registry: ModelRegistry, tmp_path: Path) -> None:
    registry.faults.password, registry.faults.is_public = "secret", True
    registry.faults.realm, registry.faults.token = realm, token
    with pytest.raises(BundleError, match="the registry's token can't be read") as caught:
        transfer(f"{registry.url}:v1", tmp_path)
    assert "a-token" not in str(caught.value)


def test_a_redirection_to_what_is_no_address(registry: ModelRegistry, tmp_path: Path, pauses: list[float]) -> None:
    registry.faults.blobs_at = "["
    with pytest.raises(BundleError, match=f"{registry.address} can't be reached: .*; 5 attempts failed"):
        transfer(f"{registry.url}:v1", tmp_path)


def test_passwords_and_tokens_stay_with_the_registry(
    registry: ModelRegistry, layout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Many registries send callers to a store for blobs."""
    entry = {"username": "reader", "password": "secret"}
    (tmp_path / "config.json").write_text(json.dumps({"auths": {registry.address: entry}}))
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    with model_registry(layout) as store:
        registry.faults.password, registry.faults.blobs_at = "secret", store.address
        store.faults.cuts = [1000]
        assert transfer(f"{registry.url}:v1", tmp_path / "models") == ["tiny/1"]
        assert {got.authorization for got in store.requests} == {""}
        assert [got.start for got in store.requests] == [0, 1000]
    assert {got.authorization for got in registry.requests} == {"Bearer a-token"}


def test_a_registry_must_have_a_certificate(
    layout: Path, tmp_path: Path, pauses: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only on loopback, as other tools know it, there is no TLS."""
    authority = Authority()
    certificate, key = authority.pair().write(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    (tmp_path / "authority.pem").write_bytes(authority.certificate)
    with model_registry(layout, "127.0.0.2", context) as registry:
        with pytest.raises(BundleError, match="certificate verify failed"):
            transfer(f"{registry.url}:v1", tmp_path / "models")
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "authority.pem"))
        assert transfer(f"{registry.url}:v1", tmp_path / "models") == ["tiny/1"]


@pytest.mark.parametrize(
    "text", ["", "models", "host/Upper:v1", "host/a:v1/b", "host/../etc", "host/a@sha256:12", "user:x@host/a:v1"]
)
def test_what_is_no_image(text: str, tmp_path: Path) -> None:
    with pytest.raises(BundleError, match="is no image; expected is oci://REGISTRY/REPOSITORY"):
        transfer(f"oci://{text}", tmp_path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"layers": [{"digest": "sha256:../../etc/passwd", "size": 1}]}, "is not sha256"),
        ({"layers": [{"digest": "sha256:" + "0" * 64, "size": -1}]}, "size is -1"),
        ({"layers": [{"digest": "sha256:" + "0" * 64, "size": 10**18}]}, "has space for"),
        ({"layers": [{"digest": "sha256:" + "0" * 64}]}, "'size'"),
        ({"layers": []}, "holds no bundle"),
        ({"layers": 3}, "is no image with layers"),
        ({"manifests": []}, "has no image for linux/"),
        ({"manifests": [{"platform": {"os": "linux"}}]}, "has no image for linux/"),
    ],
)
def test_hostile_manifests(change: dict[str, Any], message: str, registry: ModelRegistry, tmp_path: Path) -> None:
    registry.faults.replaced = {"v1": json.dumps(change).encode()}
    with pytest.raises(BundleError, match=message):
        transfer(f"{registry.url}:v1", tmp_path)
    assert visible(tmp_path) == []


@pytest.mark.parametrize("data", [b"", b"[]", b"\xff", b"[" * 100_000, b"x" * (5 << 20)])
def test_no_manifest(data: bytes, registry: ModelRegistry, tmp_path: Path) -> None:
    registry.faults.replaced = {"v1": data}
    with pytest.raises(BundleError, match=r"is no image"):
        transfer(f"{registry.url}:v1", tmp_path)


def test_a_layer_is_as_long_as_its_manifest_says(registry: ModelRegistry, tmp_path: Path) -> None:
    layer = digests(registry)["layer"]
    registry.faults.replaced = {layer: (registry.content(layer) or b"") + b"more"}
    with pytest.raises(BundleError, match="is longer than"):
        transfer(f"{registry.url}:v1", tmp_path)


def test_annotations_are_hints_only(registry: ModelRegistry, tmp_path: Path, tiny_bundle: Path) -> None:
    """An image that another tool has made has none; one that lies about them does not leave the destination."""
    known = digests(registry)
    manifest = json.loads(registry.content(known["amd64"]) or b"")
    shutil.copytree(tiny_bundle, tmp_path / "outside" / "1")
    lie = {"dragoman.model": "../outside", "dragoman.version": "1"}
    lie["dragoman.manifest.sha256"] = file_sha256(tiny_bundle / "manifest.json")
    for annotations in ({}, lie):
        manifest["layers"][0]["annotations"] = annotations
        registry.faults.replaced = {"v1": json.dumps(manifest).encode()}
        assert transfer(f"{registry.url}:v1", tmp_path / "models") == ["tiny/1"]
    assert len(registry.starts(known["layer"])) == 2


def test_more_than_the_layer_is_not_continued(registry: ModelRegistry, tmp_path: Path) -> None:
    layer = digests(registry)["layer"]
    (tmp_path / ".layers").mkdir()
    whole = registry.content(layer) or b""
    (tmp_path / ".layers" / layer.removeprefix("sha256:")).write_bytes(whole + b"more")
    assert transfer(f"{registry.url}:v1", tmp_path) == ["tiny/1"]


def test_a_layer_with_gzip_as_other_tools_push_it(registry: ModelRegistry, tmp_path: Path) -> None:
    known = digests(registry)
    packed = gzip.compress(registry.content(known["layer"]) or b"")
    digest = f"sha256:{hashlib.sha256(packed).hexdigest()}"
    registry.faults.replaced = {
        "v1": json.dumps({"layers": [{"digest": digest, "size": len(packed)}]}).encode(),
        digest: packed,
    }
    assert transfer(f"{registry.url}:v1", tmp_path) == ["tiny/1"]


def test_a_bundle_that_is_damaged_inside_of_a_layer_with_the_right_digest(
    registry: ModelRegistry, tmp_path: Path
) -> None:
    whole = registry.content(digests(registry)["layer"])
    assert whole is not None
    with tarfile.open(fileobj=io.BytesIO(whole)) as tar:
        weights = tar.getmember("tiny/1/encoder.onnx")
    at = weights.offset_data + weights.size // 2
    damaged = whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :]
    digest = f"sha256:{hashlib.sha256(damaged).hexdigest()}"
    layer = {"digest": digest, "size": len(damaged)}
    registry.faults.replaced = {"v1": json.dumps({"layers": [layer]}).encode(), digest: damaged}
    with pytest.raises(BundleError, match=rf"{registry.address}/team/models:v1/tiny/1 is damaged: encoder.onnx"):
        transfer(f"{registry.url}:v1", tmp_path)
    assert visible(tmp_path) == []


def test_killed_in_the_middle_and_run_again(tmp_path: Path) -> None:
    stall = 1_000_000
    folder, destination = tmp_path / "layout", tmp_path / "models"
    package(find_bundles([REPOSITORY / "models" / "en-hi"]), folder, "v1", {}, lambda _: None)
    with model_registry(folder) as registry:
        registry.faults.stall = stall
        layer = digests(registry)["layer"]
        blob = destination / ".layers" / layer.removeprefix("sha256:")
        command = [sys.executable, "-m", "service.bundle.transfer", f"{registry.url}:v1", str(destination)]
        process = subprocess.Popen(
            command, cwd=REPOSITORY, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        try:
            eventually(lambda: blob.exists() and blob.stat().st_size > stall // 2)
        finally:
            process.kill()
            process.communicate(timeout=TIMEOUT_SECONDS)
        assert process.returncode == -signal.SIGKILL
        assert visible(destination) == []
        have = blob.stat().st_size
        registry.faults.stall = None
        registry.faults.go_on.set()
        run = subprocess.run(
            command, cwd=REPOSITORY, env=environment(), capture_output=True, text=True, timeout=patient(60)
        )
        assert run.returncode == 0, run.stderr
        assert run.stdout == f"{destination} has en-hi/1, all checksums are right\n"
        assert registry.starts(layer) == [0, have]
    check_intact(destination / "en-hi" / "1", Manifest.load(destination / "en-hi" / "1"))
    assert [path.name for path in destination.iterdir()] == ["en-hi"]
