"""Where bundles are found."""

import dataclasses
import shutil
from pathlib import Path
from typing import Any

import pytest

from service.bundle.errors import BundleError
from service.bundle.manifest import Manifest
from service.models.repository import read_models
from tests.found_bundles import find_bundles


@pytest.fixture
def manifest(tiny_bundle: Path) -> Any:
    return Manifest.load(tiny_bundle)


def put(directory: Path, manifest: Manifest, name: str = "tiny", **changes: Any) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    dataclasses.replace(manifest, name=name, **changes).save(directory)


def test_what_is_no_version_or_model_is_ignored(tmp_path: Path, manifest: Manifest) -> None:
    put(tmp_path / "tiny" / "1", manifest)
    put(tmp_path / "tiny" / "2.tmp", manifest)
    put(tmp_path / "tiny" / "latest", manifest)
    put(tmp_path / "tiny" / "٣", manifest)  # a digit, but not one of 0 to 9
    (tmp_path / "tiny" / "3").write_text("a file", encoding="utf-8")
    (tmp_path / "README").write_text("a file", encoding="utf-8")
    (tmp_path / "empty").mkdir()
    assert [bundle.version for bundle in find_bundles(tmp_path)] == ["1"]


def test_one_bundle_by_itself_has_no_version(tiny_bundle: Path, tmp_path: Path) -> None:
    shutil.copytree(tiny_bundle, tmp_path / "here")
    (bundle,) = find_bundles(tmp_path / "here")
    assert (bundle.version, bundle.manifest.name) == ("", "tiny")


def test_nothing_to_serve_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BundleError, match="not a directory"):
        find_bundles(tmp_path / "none")
    with pytest.raises(BundleError, match="holds neither"):
        find_bundles(tmp_path)


def test_a_highest_version_without_a_manifest_is_damaged_and_not_skipped(tmp_path: Path, manifest: Manifest) -> None:
    put(tmp_path / "tiny" / "1", manifest)
    (tmp_path / "tiny" / "2").mkdir()
    (model,) = read_models(tmp_path, 1)
    assert model.bundles == ()
    assert "2 holds no manifest.json" in model.faults[0]


def test_so_many_of_the_highest_versions_are_taken(tmp_path: Path, manifest: Manifest) -> None:
    for version in ("1", "2", "10", "9"):
        put(tmp_path / "tiny" / version, manifest)
    put(tmp_path / "other" / "3", manifest, "other")
    assert [(bundle.name, bundle.version) for bundle in find_bundles(tmp_path, max_versions=3)] == [
        ("other", "3"), ("tiny", "10"), ("tiny", "9"), ("tiny", "2"),
    ]  # fmt: skip


def test_a_fault_of_one_model_hides_no_other(tmp_path: Path, manifest: Manifest) -> None:
    put(tmp_path / "fine" / "1", manifest, "fine")
    put(tmp_path / "half" / "1", manifest, "half")
    (tmp_path / "half" / "2").mkdir()
    for folder in ("left", "right"):
        put(tmp_path / folder / "1", manifest, "twin")
    (tmp_path / "empty").mkdir()
    models = {model.path.name: model for model in read_models(tmp_path, 2)}
    found = {name: [bundle.version for bundle in model.bundles] for name, model in models.items()}
    assert found == {"empty": [], "fine": ["1"], "half": ["1"], "left": ["1"], "right": []}
    assert {name: len(model.faults) for name, model in models.items()} == {
        "empty": 0, "fine": 0, "half": 1, "left": 0, "right": 1,
    }  # fmt: skip
    (line,) = models["right"].faults
    assert line == (
        f"{tmp_path / 'right'} holds a model named 'twin', as {tmp_path / 'left'} does, and only the latter is "
        "served; remove one, or convert it again with another --name."
    )


@pytest.mark.parametrize(
    ("folders", "served", "kept"),
    [(("a", "b"), (), "a"), (("a", "twin"), (), "twin"), (("a", "b", "twin"), ("b",), "b"), (("a", "b"), ("c",), "a")],
)
def test_of_a_name_the_served_model_stays_else_that_of_the_folder(
    tmp_path: Path, manifest: Manifest, folders: tuple[str, ...], served: tuple[str, ...], kept: str
) -> None:
    for folder in folders:
        put(tmp_path / folder / "1", manifest, "twin")
    models = read_models(tmp_path, 1, [tmp_path / folder for folder in served])
    assert [model.path.name for model in models if model.bundles] == [kept]


def test_bundles_are_equal_by_place_and_manifest(tiny_bundle: Path, tmp_path: Path, manifest: Manifest) -> None:
    directory = shutil.copytree(tiny_bundle, tmp_path / "tiny" / "1")
    (before,) = find_bundles(tmp_path)
    (same,) = find_bundles(tmp_path)
    assert (same, same.stamp) == (before, before.stamp)
    with (directory / "encoder.onnx").open("ab") as file:
        file.write(b"x")
    (touched,) = find_bundles(tmp_path)
    assert touched == before
    assert touched.stamp != before.stamp
    put(directory, manifest, checkpoint_sha256="1" * 64)
    (replaced,) = find_bundles(tmp_path)
    assert replaced != before


def test_a_bundle_belongs_to_its_folder_or_itself(tmp_path: Path, manifest: Manifest, tiny_bundle: Path) -> None:
    put(tmp_path / "tiny" / "1", manifest)
    (model,) = read_models(tmp_path, 1)
    assert model.path == tmp_path / "tiny" == model.bundles[0].model_directory
    (model,) = read_models(tiny_bundle, 1)
    assert model.path == tiny_bundle == model.bundles[0].model_directory


@pytest.mark.parametrize("gone", ["b", "b/1"])
def test_a_folder_may_go_meanwhile(
    tmp_path: Path, manifest: Manifest, monkeypatch: pytest.MonkeyPatch, gone: str
) -> None:
    """Bundles are installed by renaming folders, which can happen at any moment of a scan."""
    put(tmp_path / "a" / "1", manifest, "a")
    put(tmp_path / "b" / "1", manifest, "b")
    load = Manifest.load

    def load_and_lose(directory: Path) -> Manifest:
        if directory.parent.name == ("a" if gone == "b" else "b"):
            shutil.rmtree(tmp_path / gone)
        return load(directory)

    monkeypatch.setattr(Manifest, "load", load_and_lose)
    a, b = read_models(tmp_path, 1)
    assert (len(a.bundles), a.faults) == (1, ())
    assert (b.bundles, b.faults) == ((), ())
