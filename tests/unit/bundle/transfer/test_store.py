"""Bundles from a store that fsspec knows."""

import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem

from service.bundle.checksums import check_intact
from service.bundle.errors import BundleError
from service.bundle.manifest import Manifest
from service.bundle.transfer import store
from service.bundle.transfer.bundles import transfer
from service.bundle.transfer.download import ATTEMPTS

RANGE = 10_000


class Faulty(MemoryFileSystem):  # type: ignore[misc]
    """A store in memory that counts ranges and fails as a test asks it to."""

    protocol = "faulty"
    store: dict[str, Any] = {}  # noqa: RUF012, as in the base class
    pseudo_dirs: list[str] = [""]  # noqa: RUF012
    ranges: list[tuple[str, int]] = []  # noqa: RUF012
    failures: list[Exception] = []  # noqa: RUF012
    knows_ranges = True

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        stripped: str = super()._strip_protocol(path.replace("faulty://", "memory://"))
        return stripped

    def cat_file(self, path: str, start: int | None = None, end: int | None = None, **_options: Any) -> bytes:
        if self.failures:
            raise self.failures.pop()
        self.ranges.append((path.rpartition("/")[2], start or 0))
        known = (start, end) if self.knows_ranges else (None, None)
        data: bytes = super().cat_file(path, *known)
        return data


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Skip the pauses between attempts; return how long they would have been."""
    pauses: list[float] = []
    monkeypatch.setattr(time, "sleep", pauses.append)
    return pauses


@pytest.fixture
def faulty(tiny_models: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[type[Faulty]]:
    monkeypatch.setattr(store, "_RANGE_BYTES", RANGE)
    fsspec.register_implementation("faulty", Faulty, clobber=True)
    fsspec.filesystem("faulty").put(str(tiny_models), "/bucket/models", recursive=True)
    yield Faulty
    Faulty.store.clear()
    Faulty.pseudo_dirs[:] = [""]
    Faulty.ranges.clear()
    Faulty.failures.clear()
    Faulty.knows_ranges = True


def test_bundles_arrive_whole_and_once(faulty: type[Faulty], tmp_path: Path) -> None:
    assert transfer("faulty://bucket/models/", tmp_path) == ["tiny/1"]
    check_intact(tmp_path / "tiny" / "1", Manifest.load(tmp_path / "tiny" / "1"))
    faulty.ranges.clear()
    assert transfer("faulty://bucket/models", tmp_path) == ["tiny/1"]
    assert {name for name, _ in faulty.ranges} == {"manifest.json"}
    assert [path.name for path in (tmp_path / "tiny").iterdir()] == ["1"]


def test_a_url_of_files(tiny_models: Path, tmp_path: Path) -> None:
    assert transfer(f"file://{tiny_models}", tmp_path) == ["tiny/1"]


def test_what_an_attempt_has_left_is_continued(faulty: type[Faulty], tmp_path: Path, tiny_bundle: Path) -> None:
    partial = tmp_path / "tiny" / ".1.partial"
    partial.mkdir(parents=True)
    whole, begun = "encoder.onnx", "decoder_step.onnx"
    if not (tiny_bundle / begun).exists():
        begun = "decoder.onnx"
    for name, most in (("manifest.json", None), (whole, None), (begun, RANGE // 2)):
        (partial / name).write_bytes((tiny_bundle / name).read_bytes()[:most])
    transfer("faulty://bucket/models", tmp_path)
    check_intact(tmp_path / "tiny" / "1", Manifest.load(tmp_path / "tiny" / "1"))
    starts = [start for name, start in faulty.ranges if name == begun]
    assert starts
    assert starts[0] == RANGE // 2
    assert whole not in {name for name, _ in faulty.ranges}


def test_what_an_attempt_has_left_of_another_bundle_is_not(
    faulty: type[Faulty], tmp_path: Path, tiny_bundle: Path
) -> None:
    partial = tmp_path / "tiny" / ".1.partial"
    partial.mkdir(parents=True)
    (partial / "manifest.json").write_bytes((tiny_bundle / "manifest.json").read_bytes() + b"\n")
    (partial / "encoder.onnx").write_bytes(b"of another bundle")
    transfer("faulty://bucket/models", tmp_path)
    check_intact(tmp_path / "tiny" / "1", Manifest.load(tmp_path / "tiny" / "1"))


def test_damaged_bytes_never_appear_and_are_not_kept(faulty: type[Faulty], tmp_path: Path) -> None:
    files = fsspec.filesystem("faulty")
    path = "/bucket/models/tiny/1/encoder.onnx"
    whole = files.cat_file(path)
    files.pipe_file(path, b"x" + whole[1:])
    for _ in range(2):
        with pytest.raises(BundleError, match=r"faulty://bucket/models/tiny/1 is damaged: encoder.onnx does not match"):
            transfer("faulty://bucket/models", tmp_path)
        assert list((tmp_path / "tiny").iterdir()) == []
    files.pipe_file(path, whole)
    assert transfer("faulty://bucket/models", tmp_path) == ["tiny/1"]


def test_a_store_that_fails_for_a_while(faulty: type[Faulty], tmp_path: Path, pauses: list[float]) -> None:
    faulty.failures.extend(ConnectionResetError("reset") for _ in range(ATTEMPTS - 1))
    assert transfer("faulty://bucket/models", tmp_path) == ["tiny/1"]
    assert pauses == [1.0, 2.0, 4.0, 8.0]


@pytest.mark.parametrize(
    ("error", "message", "attempts"),
    [
        (ConnectionResetError("reset"), r"reset; 5 attempts failed. Run this again", ATTEMPTS),
        (PermissionError("denied"), r"bucket/models: denied\.", 1),
    ],
)
def test_a_store_that_refuses(
    error: Exception,
    message: str,
    attempts: int,
    faulty: type[Faulty],
    tmp_path: Path,
    pauses: list[float],
) -> None:
    faulty.failures.extend([error] * 100)
    with pytest.raises(BundleError, match=message):
        transfer("faulty://bucket/models", tmp_path)
    assert len(faulty.failures) == 100 - attempts


def test_a_server_without_ranges(faulty: type[Faulty], tmp_path: Path) -> None:
    faulty.knows_ranges = False
    with pytest.raises(BundleError, match="does not support range requests"):
        transfer("faulty://bucket/models", tmp_path)


def test_a_giant_manifest_is_not_fetched(faulty: type[Faulty], tmp_path: Path) -> None:
    fsspec.filesystem("faulty").pipe_file("/bucket/models/tiny/1/manifest.json", bytes(5 << 20))
    with pytest.raises(BundleError, match=r"manifest.json has 5242880 bytes; allowed: 4194304"):
        transfer("faulty://bucket/models", tmp_path)
    assert faulty.ranges == []


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("faulty://bucket/nothing", "holds no bundle; put them there"),
        ("unheard-of://bucket/models", "Protocol not known"),
    ],
)
def test_a_url_without_bundles(url: str, message: str, faulty: type[Faulty], tmp_path: Path) -> None:
    with pytest.raises(BundleError, match=message):
        transfer(url, tmp_path)


@pytest.mark.parametrize("package", ["fsspec", "obstore"])
def test_without_the_extra(package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "service.bundle.transfer.store")
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(BundleError, match=rf"s3://bucket/models needs {package}, .*; pip install .*stores"):
        transfer("s3://bucket/models", tmp_path)
