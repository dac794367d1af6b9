"""Bundles as an OCI image: what its layout says, and that equal bundles give equal digests."""

import json
import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from export.cli import main
from export.package import find_bundles
from service.bundle.checksums import check_intact, file_sha256
from service.bundle.errors import BundleError
from service.bundle.manifest import Manifest
from service.bundle.transfer.unpacking import unpack
from tests.patience import patient
from tests.servers import REPOSITORY

EPOCH = 0


def package(*arguments: object) -> tuple[int, str, str]:
    """Run the command and return its exit code, digest and messages."""
    result = CliRunner().invoke(main, ["package", *map(str, arguments)])
    return result.exit_code, result.stdout.strip(), result.stderr


def blob(layout: Path, descriptor: dict[str, Any]) -> Path:
    """Return a blob's file, which is as its descriptor says."""
    path = layout / "blobs" / str(descriptor["digest"]).replace(":", "/")
    assert path.stat().st_size == descriptor["size"]
    assert f"sha256:{file_sha256(path)}" == descriptor["digest"]
    return path


def images(layout: Path) -> Iterator[tuple[dict[str, Any], dict[str, Any], dict[str, Any]]]:
    """Yield the descriptor, manifest and configuration of each platform's image."""
    (index,) = json.loads((layout / "index.json").read_text())["manifests"]
    for each in json.loads(blob(layout, index).read_text())["manifests"]:
        manifest = json.loads(blob(layout, each).read_text())
        yield each, manifest, json.loads(blob(layout, manifest["config"]).read_text())


@pytest.fixture
def repository(tiny_versions: Path, tmp_path: Path) -> Path:
    """Return a repository of two models, which have the same name; packaging is by folder."""
    root = tmp_path / "models"
    for place, version in (("tiny/1", "1"), ("tiny/12", "2"), ("other/1", "3")):
        shutil.copytree(tiny_versions / version, root / place)
    return root


def test_an_image_for_each_platform_with_a_layer_for_each_bundle(repository: Path, tmp_path: Path) -> None:
    layout, notice = tmp_path / "layout", tmp_path / "NOTICE of other"
    notice.write_text("who made it\n")
    code, digest, said = package(repository, "--output", f"oci:{layout}:2026-11", "--notice", f"other={notice}")
    assert code == 0, said
    assert json.loads((layout / "oci-layout").read_text()) == {"imageLayoutVersion": "1.0.0"}
    (index,) = json.loads((layout / "index.json").read_text())["manifests"]
    assert index["digest"] == digest
    assert index["annotations"] == {"org.opencontainers.image.ref.name": "2026-11"}
    found = list(images(layout))
    assert [each["platform"] for each, _, _ in found] == [
        {"architecture": name, "os": "linux"} for name in ("amd64", "arm64")
    ]
    assert found[0][1]["layers"] == found[1][1]["layers"]
    for each, manifest, config in found:
        assert {name: config[name] for name in ("architecture", "os")} == each["platform"]
        assert config["rootfs"] == {"type": "layers", "diff_ids": [layer["digest"] for layer in manifest["layers"]]}
        assert manifest["annotations"]["org.opencontainers.image.title"] == "other/1, tiny/1, tiny/12"
    for number, layer in enumerate(found[0][1]["layers"]):
        unpack(blob(layout, layer), tmp_path / "files" / str(number), "a layer")
        annotations = layer["annotations"]
        name = f"{annotations['dragoman.model']}/{annotations['dragoman.version']}"
        bundle = tmp_path / "files" / str(number) / name
        stated = Manifest.load(bundle)
        check_intact(bundle, stated)
        assert annotations["dragoman.manifest.sha256"] == file_sha256(repository / name / "manifest.json")
        assert annotations["dragoman.checkpoint.sha256"] == stated.checkpoint_sha256
        assert annotations["dragoman.precision"] == stated.precision
        assert (bundle / "NOTICE").exists() == (name == "other/1")


def test_it_needs_no_exporter(repository: Path, tmp_path: Path) -> None:
    code = "import sys; from export.cli import main; main(sys.argv[1:], standalone_mode=False); print(*sys.modules)"
    command: list[str | Path] = [
        sys.executable,
        "-c",
        code,
        "package",
        repository,
        "--output",
        f"oci:{tmp_path / 'layout'}",
    ]
    run = subprocess.run(command, capture_output=True, text=True, timeout=patient(60), cwd=REPOSITORY)
    assert run.returncode == 0, run.stderr
    loaded = set(run.stdout.split())
    assert "export.package" in loaded
    assert not loaded & {"torch", "onnx", "onnxruntime", "transformers", "safetensors"}


def test_licences_are_named_where_they_are_known(repository: Path, tmp_path: Path) -> None:
    licences = {"tiny/1": "MIT", "tiny/12": "", "other/1": "CC-BY-4.0"}
    for name, licence in licences.items():
        path = repository / name / "manifest.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | {"licence": licence}))
    assert package(repository, "-o", f"oci:{tmp_path / 'layout'}")[0] == 0
    (_, manifest, config), _ = images(tmp_path / "layout")
    key = "org.opencontainers.image.licenses"
    assert manifest["annotations"][key] == config["config"]["Labels"][key] == "CC-BY-4.0 AND MIT"
    of_layers = [layer["annotations"].get(key) for layer in manifest["layers"]]
    assert of_layers == [licences[name] or None for name in sorted(licences)]


def test_equal_bundles_give_equal_digests(repository: Path, tmp_path: Path) -> None:
    copy = tmp_path / "elsewhere" / "models"
    shutil.copytree(repository, copy)
    for path in copy.rglob("*"):
        path.chmod(0o700 if path.is_dir() else 0o600)
        os.utime(path, (EPOCH, EPOCH))
    digests = {package(*given, "-o", f"oci:{tmp_path}/{n}")[1] for n, given in enumerate(_ways(repository, copy))}
    assert len(digests) == 1
    (copy / "tiny" / "12").rename(copy / "tiny" / "13")
    assert package(copy, "-o", f"oci:{tmp_path}/other")[1] not in digests


def _ways(repository: Path, copy: Path) -> Sequence[Sequence[Path]]:
    """Return several ways to name the same bundles."""
    return [repository], [copy], [copy / "tiny", copy / "other"], [copy / "other", *sorted(copy.glob("*/*"))]


def test_all_files_have_one_owner_time_and_mode(repository: Path, tmp_path: Path) -> None:
    assert package(repository, "-o", f"oci:{tmp_path / 'layout'}")[0] == 0
    (_, manifest, _), _ = images(tmp_path / "layout")
    for layer in manifest["layers"]:
        with tarfile.open(blob(tmp_path / "layout", layer)) as tar:
            members = tar.getmembers()
        assert [member.name for member in members] == sorted(member.name for member in members)
        assert {(each.uid, each.gid, each.uname, each.gname, each.mtime) for each in members} == {(0, 0, "", "", EPOCH)}
        assert {each.mode for each in members if each.isdir()} == {0o755}
        assert {each.mode for each in members if not each.isdir()} == {0o644}


def test_a_bundle_outside_of_a_repository(tiny_bundle: Path, tmp_path: Path) -> None:
    shutil.copytree(tiny_bundle, tmp_path / "mine")
    (bundle,) = find_bundles([tmp_path / "mine"])
    assert bundle.name == "tiny/1"


def test_what_a_killed_copy_has_left_is_not_packaged(repository: Path) -> None:
    shutil.copytree(repository / "tiny" / "1", repository / "tiny" / ".13.partial")
    shutil.copytree(repository / "tiny" / "1", repository / ".layers" / "1")
    assert [bundle.name for bundle in find_bundles([repository])] == ["other/1", "tiny/1", "tiny/12"]


def test_a_damaged_bundle_is_not_packaged(repository: Path, tmp_path: Path) -> None:
    (repository / "tiny" / "12" / "encoder.onnx").write_bytes(b"damaged")
    code, _, said = package(repository, "-o", f"oci:{tmp_path / 'layout'}")
    assert code == 2
    assert "tiny/12 is damaged: encoder.onnx does not match its checksum" in said
    assert not (tmp_path / "layout").exists()


def test_two_bundles_for_one_place_are_refused(repository: Path, tmp_path: Path) -> None:
    shutil.copytree(repository / "tiny", tmp_path / "again" / "tiny")
    with pytest.raises(BundleError, match="are both tiny/1; give one of them"):
        find_bundles([repository, tmp_path / "again"])


def test_what_is_there_is_kept(repository: Path, tmp_path: Path) -> None:
    layout = tmp_path / "layout"
    first = package(repository / "tiny", "-o", f"oci:{layout}")[1]
    code, _, said = package(repository, "-o", f"oci:{layout}")
    assert (code, "add --force to replace it" in said) == (2, True)
    assert json.loads((layout / "index.json").read_text())["manifests"][0]["digest"] == first
    code, second, _ = package(repository, "-o", f"oci:{layout}", "--force")
    assert (code, second != first) == (0, True)
    assert len(list((layout / "blobs/sha256").iterdir())) == 8  # three layers, two images with configurations, an index
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "file").touch()
    code, _, said = package(repository, "-o", f"oci:{tmp_path / 'other'}", "--force")
    assert (code, "is no OCI layout" in said) == (2, True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["layout", "models", "other"]


def test_the_current_folder_becomes_a_layout(repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "layout").mkdir()
    monkeypatch.chdir(tmp_path / "layout")
    assert package(repository, "-o", "oci:.")[0] == 0
    assert (tmp_path / "layout" / "oci-layout").is_file()


@pytest.mark.parametrize("output", ["layout", "oci:", "docker:layout", "oci:layout:", "oci:layout:a b", "oci:a:b:c"])
def test_an_output_that_is_no_layout(output: str, repository: Path) -> None:
    code, _, said = package(repository, "-o", output)
    assert (code, "is not oci:FOLDER or oci:FOLDER:TAG" in said) == (2, True)


def test_a_notice_does_not_replace_that_of_the_bundle(repository: Path, tmp_path: Path) -> None:
    """The image would have one whose checksum is wrong."""
    bundle = repository / "other" / "1"
    (bundle / "NOTICE").write_text("its own\n")
    manifest = json.loads((bundle / "manifest.json").read_text())
    manifest["checksums"]["NOTICE"] = file_sha256(bundle / "NOTICE")
    (bundle / "manifest.json").write_text(json.dumps(manifest))
    code, _, said = package(repository, "-o", f"oci:{tmp_path / 'layout'}", "--notice", f"other={__file__}")
    assert (code, "other/1 has a NOTICE of its own" in said) == (2, True)


def test_a_notice_of_a_model_that_is_not_there(repository: Path, tmp_path: Path) -> None:
    code, _, said = package(repository, "-o", f"oci:{tmp_path / 'layout'}", "--notice", f"en-de={__file__}")
    assert (code, "--notice names en-de; the models are other, tiny" in said) == (2, True)
    assert package(repository, "-o", f"oci:{tmp_path / 'layout'}", "--notice", "other=nowhere")[0] == 2
