"""A bundle written to ROOT/NAME/VERSION: its name, and what clashes with others in ROOT."""

import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from export.cli import main
from export.place import model_name
from service.bundle.manifest import MANIFEST_NAME, Manifest


def convert(checkpoint: Path, *arguments: object) -> Result:
    return CliRunner().invoke(main, ["convert", str(checkpoint), "--precision", "int8", *map(str, arguments)])


@pytest.mark.parametrize(
    ("destination", "name"),
    [
        ("root/mine/1", "mine"),
        ("root/mine/20261129", "mine"),
        ("root/mine", None),
        ("mine/v1", None),
        ("a/b/\u0661", None),
    ],
)
def test_the_folder_of_versions_names_the_model(destination: str, name: str | None) -> None:
    assert model_name(Path(destination)) == name


def test_a_version_alone_is_in_the_folder_that_one_is_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine").mkdir()
    monkeypatch.chdir(tmp_path / "mine")
    assert model_name(Path("1")) == "mine"


def test_a_conversion_takes_the_name_and_says_what_clashes(checkpoint: Path, tmp_path: Path) -> None:
    assert convert(checkpoint, "-o", tmp_path / "mine/1").exit_code == 0
    assert Manifest.load(tmp_path / "mine/1").name == "mine"
    second = convert(checkpoint, "-o", tmp_path / "theirs/1")
    assert second.exit_code == 0
    manifest = Manifest.load(tmp_path / "theirs/1")
    pair = next(iter(manifest.pairs()))
    shared = f"{pair.source_language_code}-{pair.target_language_code} is translated by mine and theirs"
    assert f"note: in {tmp_path} {shared}" in second.stderr
    assert second.stderr.endswith("calls that name no model get mine.\n")
    refused = convert(checkpoint, "-o", tmp_path / "others/1", "--name", "mine")
    assert refused.exit_code == 2
    assert refused.stderr == (
        f"export: {tmp_path / 'mine'} already holds a model named 'mine'; choose another --name.\n"
    )
    assert not (tmp_path / "others").exists()


def test_other_versions_and_what_is_no_bundle_do_not_clash(checkpoint: Path, tmp_path: Path) -> None:
    assert convert(checkpoint, "-o", tmp_path / "mine/1").exit_code == 0
    shutil.copytree(tmp_path / "mine/1", tmp_path / "mine/backup")
    for folder, content in (("broken/1", {}), ("notes/today", {"name": "mine"})):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / MANIFEST_NAME).write_text(json.dumps(content))
    again = convert(checkpoint, "-o", tmp_path / "mine/2")
    assert again.exit_code == 0
    assert "note: in" not in again.stderr
