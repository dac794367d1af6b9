"""Folders for temporary files: for this user only, and gone with their process, however it ends."""

import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from service.process.disk import TemporaryFolder, remove_leftovers
from tests.servers import REPOSITORY, TIMEOUT_SECONDS, environment, read_line

# Makes a folder, says so, and waits to be killed.
MAKES = """
import time
from service.process.disk import TemporaryFolder
path = TemporaryFolder().path()
(path / "translation").write_text("secret")
print("made", flush=True)
time.sleep(600)
"""


@pytest.fixture(autouse=True)
def parent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_it_is_made_when_it_is_asked_for_and_removed(parent: Path) -> None:
    folder = TemporaryFolder()
    folder.remove()
    assert list(parent.iterdir()) == []
    path = folder.path()
    assert (path, path.stat().st_mode & 0o777) == (folder.path(), 0o700)
    (path / "inner").mkdir()
    remove_leftovers()
    assert path.exists()
    for _ in range(2):
        folder.remove()
        assert list(parent.iterdir()) == []
    assert folder.path() != path
    folder.remove()


def test_a_missing_parent_is_told_and_nothing_is_left_there(parent: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(parent / "missing"))
    remove_leftovers()
    with pytest.raises(FileNotFoundError):
        TemporaryFolder().path()


def test_what_is_of_nobody_is_left_alone(parent: Path) -> None:
    (parent / "dragoman-empty").mkdir()
    (parent / "dragoman-file").touch()
    of_link = parent / "of-link"
    of_link.mkdir()
    (of_link / "owner").touch()
    (parent / "dragoman-link").symlink_to(of_link)
    (parent / "dragoman-owned-by-link").mkdir()
    (parent / "dragoman-owned-by-link" / "owner").symlink_to(of_link / "owner")
    before = sorted(parent.rglob("*"))
    remove_leftovers()
    assert sorted(parent.rglob("*")) == before


def test_what_a_killed_process_has_left_goes_when_it_has_ended(parent: Path) -> None:
    variables = {**environment(), "TMPDIR": str(parent)}
    process = subprocess.Popen(
        [sys.executable, "-c", MAKES], cwd=REPOSITORY, env=variables, stdout=subprocess.PIPE, text=True
    )
    try:
        assert read_line(process) == "made\n"
        [left] = parent.iterdir()
        remove_leftovers()
        assert left.exists()
    finally:
        process.kill()
        process.communicate(timeout=TIMEOUT_SECONDS)
    remove_leftovers()
    assert not left.exists()
