"""What each of several workers may use, and the folder that they share."""

import tempfile
from pathlib import Path

import pytest

from service.config.server_config import ServerConfig
from service.server import shares
from service.server.shares import FolderUnusable, new_folder, num_workers, share_of


def test_the_shares_of_threads_are_all_threads() -> None:
    config = ServerConfig(num_threads=7)
    assert [share_of(config, number, 3, Path("/s")).num_threads for number in range(3)] == [3, 2, 2]
    assert share_of(ServerConfig(num_threads=1), 1, 2, Path("/s")).num_threads == 1


def test_what_takes_memory_is_divided_and_nothing_else() -> None:
    config = ServerConfig(max_slots=9, max_waiting=1000, cache_mib=64, max_connections=100, num_threads=4)
    share = share_of(config, 1, 4, Path("/s"))
    assert (share.max_slots, share.max_waiting, share.cache_mib, share.max_connections) == (3, 250, 16, 25)
    assert share.max_bytes_in_flight_mib == 64
    assert (share.metrics_host, share.admin_host) == ("unix:/s/worker-1.metrics", "unix:/s/worker-1.admin")
    assert (share.max_request_bytes, share.port, share.grace_seconds) == (2**20, 50051, 30.0)
    automatic = share_of(ServerConfig(), 0, 4, Path("/s"))
    assert (automatic.max_slots, automatic.cache_mib) == (0, 0)  # measured; none


@pytest.mark.parametrize(("cpus", "count"), [(1, 1), (2, 1), (7, 1), (8, 2), (64, 16)])
def test_automatically_four_cpus_have_one_worker(cpus: int, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shares, "available_cpus", lambda: cpus)
    assert num_workers(ServerConfig(workers=0)) == count
    assert num_workers(ServerConfig(workers="auto")) == count  # type: ignore[arg-type]
    assert num_workers(ServerConfig(workers=3)) == 3
    assert num_workers(ServerConfig()) == 1


def test_the_folder_is_for_this_user_only(monkeypatch: pytest.MonkeyPatch) -> None:
    with tempfile.TemporaryDirectory() as parent:  # pytest's have names that may be too long
        monkeypatch.setattr(tempfile, "tempdir", parent)
        folder = new_folder(4)
        assert folder.path().parent == Path(parent)
        assert folder.path().stat().st_mode & 0o777 == 0o700
        folder.remove()


def test_a_missing_folder_for_temporary_files_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "missing"))
    with pytest.raises(FolderUnusable, match="No such file or directory; set TMPDIR to a folder"):
        new_folder(4)


def test_a_folder_with_too_long_a_path_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    long = tmp_path / ("x" * 100)
    long.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(long))
    with pytest.raises(FolderUnusable, match=r"too long; set TMPDIR to a folder with a path of at most \d+ bytes"):
        new_folder(4)
    assert not list(long.iterdir())
