"""Folders for temporary files: for this user only, and gone with their processes, however these end."""

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from service.process.temporary_folder import TemporaryFolder, remove_leftovers
from tests.servers import REPOSITORY, TIMEOUT_SECONDS, environment, eventually, read_line

# Makes a folder, forks, says which process has been forked, and waits to be killed.
MAKES = """
import os, time
from service.process.temporary_folder import TemporaryFolder
path = TemporaryFolder().path()
(path / "translation").write_text("secret")
child = os.fork()
if child:
    print(child, flush=True)
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


def test_what_killed_processes_have_left_goes_when_the_last_of_them_has_ended(parent: Path) -> None:
    variables = {**environment(), "TMPDIR": str(parent)}
    process = subprocess.Popen(
        [sys.executable, "-c", MAKES], cwd=REPOSITORY, env=variables, stdout=subprocess.PIPE, text=True
    )
    child = int(read_line(process))
    try:
        [left] = parent.iterdir()
        remove_leftovers()
        assert left.exists()
        process.kill()
        process.wait(TIMEOUT_SECONDS)
        remove_leftovers()
        assert left.exists()
    finally:
        process.kill()
        os.kill(child, signal.SIGKILL)
        process.communicate(timeout=TIMEOUT_SECONDS)

    def is_gone() -> bool:
        remove_leftovers()
        return not left.exists()

    eventually(is_gone)
