"""A bundle's folder is complete or absent, and never a mixture."""

from pathlib import Path

import pytest

from export.bundle_writer import checksums, staged_bundle
from service.bundle.errors import BundleError
from service.bundle.manifest import MANIFEST_NAME


def write(directory: Path, text: str) -> None:
    with staged_bundle(directory, force=True) as staging:
        (staging / MANIFEST_NAME).write_text(text)
        (staging / f"{text}.onnx").write_text(text)


def write_half(directory: Path) -> None:
    with staged_bundle(directory, force=True) as staging:
        (staging / "half.onnx").write_text("half")
        raise RuntimeError("half way")


def test_a_new_bundle_replaces_the_old_one_as_a_whole(tmp_path: Path) -> None:
    for text in ("first", "second"):
        write(tmp_path / "en-de" / "1", text)
        assert {path.name for path in (tmp_path / "en-de" / "1").iterdir()} == {MANIFEST_NAME, f"{text}.onnx"}
        assert [path.name for path in (tmp_path / "en-de").iterdir()] == ["1"]


def test_failure_leaves_the_old_bundle_and_nothing_else(tmp_path: Path) -> None:
    write(tmp_path / "1", "first")
    with pytest.raises(RuntimeError, match="half way"):
        write_half(tmp_path / "1")
    assert {path.name for path in (tmp_path / "1").iterdir()} == {MANIFEST_NAME, "first.onnx"}
    assert [path.name for path in tmp_path.iterdir()] == ["1"]


def test_failed_rename_puts_the_old_bundle_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "1", "first")
    rename = Path.rename

    def fail_once(self: Path, target: Path) -> Path:
        if self.name.endswith(".partial"):
            raise OSError("no space left")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", fail_once)
    with pytest.raises(OSError, match="no space"):
        write(tmp_path / "1", "second")
    monkeypatch.undo()
    assert {path.name for path in (tmp_path / "1").iterdir()} == {MANIFEST_NAME, "first.onnx"}
    assert [path.name for path in tmp_path.iterdir()] == ["1"]


def test_a_bundle_is_replaced_by_force_only(tmp_path: Path) -> None:
    write(tmp_path / "1", "first")
    with (
        pytest.raises(BundleError, match=r"1 already is a bundle; add --force to replace it\.$"),
        staged_bundle(tmp_path / "1"),
    ):
        raise AssertionError("it was staged")
    assert [path.name for path in tmp_path.iterdir()] == ["1"]


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_what_is_no_bundle_is_not_replaced(tmp_path: Path, kind: str) -> None:
    target = tmp_path / "mine"
    if kind == "file":
        target.write_text("keep")
    else:
        target.mkdir()
        (target / "keep.txt").write_text("keep")
    with pytest.raises(BundleError, match="is not a bundle"):
        write(target, "first")
    assert target.exists()


def test_checksums_cover_all_files_but_the_manifest(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "a.bin").write_bytes(b"a")
    (tmp_path / MANIFEST_NAME).write_text("{}")
    assert checksums(tmp_path) == {"data/a.bin": "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb"}
