"""Where bundles lie."""

import dataclasses
import shutil
from pathlib import Path
from typing import Any

import pytest

from service.bundle.manifest import BundleError, Manifest
from service.models.repository import find_bundles


@pytest.fixture
def manifest(tiny_bundle: Path) -> Any:
    return Manifest.load(tiny_bundle)


def put(directory: Path, manifest: Manifest, name: str = "tiny") -> None:
    directory.mkdir(parents=True)
    dataclasses.replace(manifest, name=name).save(directory)


def test_the_highest_version_wins_by_number(tmp_path: Path, manifest: Manifest) -> None:
    for version in ("1", "2", "10", "9"):
        put(tmp_path / "tiny" / version, manifest)
    (bundle,) = find_bundles(tmp_path)
    assert (bundle.version, bundle.directory) == ("10", tmp_path / "tiny" / "10")


def test_what_is_no_version_or_model_is_ignored(tmp_path: Path, manifest: Manifest) -> None:
    put(tmp_path / "tiny" / "1", manifest)
    put(tmp_path / "tiny" / "2.tmp", manifest)
    put(tmp_path / "tiny" / "latest", manifest)
    put(tmp_path / "tiny" / "٣", manifest)  # a digit, but not one of 0 to 9
    (tmp_path / "tiny" / "3").write_text("a file", encoding="utf-8")
    (tmp_path / "README").write_text("a file", encoding="utf-8")
    (tmp_path / "empty").mkdir()
    assert [bundle.version for bundle in find_bundles(tmp_path)] == ["1"]


def test_models_come_in_order_of_names(tmp_path: Path, manifest: Manifest) -> None:
    for folder, name in (("a", "zulu"), ("b", "alpha"), ("c", "mike")):
        put(tmp_path / folder / "1", manifest, name)
    assert [bundle.manifest.name for bundle in find_bundles(tmp_path)] == ["alpha", "mike", "zulu"]


def test_one_bundle_by_itself_has_no_version(tiny_bundle: Path, tmp_path: Path) -> None:
    shutil.copytree(tiny_bundle, tmp_path / "here")
    (bundle,) = find_bundles(tmp_path / "here")
    assert (bundle.version, bundle.manifest.name) == ("", "tiny")


def test_two_models_of_one_name_are_refused(tmp_path: Path, manifest: Manifest) -> None:
    put(tmp_path / "one" / "1", manifest)
    put(tmp_path / "two" / "1", manifest)
    with pytest.raises(BundleError, match="both called 'tiny'"):
        find_bundles(tmp_path)


def test_nothing_to_serve_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BundleError, match="no directory"):
        find_bundles(tmp_path / "none")
    with pytest.raises(BundleError, match="holds neither"):
        find_bundles(tmp_path)


def test_a_highest_version_without_a_manifest_is_damaged_and_not_skipped(tmp_path: Path, manifest: Manifest) -> None:
    put(tmp_path / "tiny" / "1", manifest)
    (tmp_path / "tiny" / "2").mkdir()
    with pytest.raises(BundleError, match=r"2 holds no manifest\.json"):
        find_bundles(tmp_path)
