"""Which kernels a bundle runs on, and what is said when there are none."""

from pathlib import Path

import pytest

from service.bundle.manifest import Manifest
from service.engine.config import EngineConfig
from service.engine.runtime import kernels
from service.engine.runtime.kernels import KernelsUnavailable, find_kernels
from service.engine.runtime.runners import PLAIN, open_runners
from service.engine.runtime.session import SessionConfig


@pytest.fixture(autouse=True)
def _nothing_is_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(kernels.CHOICE, raising=False)


def test_a_library_that_is_missing_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(kernels.PATH, str(tmp_path / "none.so"))
    with pytest.raises(KernelsUnavailable, match=r"none\.so is missing; build it"):
        find_kernels()


def test_a_file_that_is_no_library_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "foreign.so"
    path.write_bytes(b"no library")
    monkeypatch.setenv(kernels.PATH, str(path))
    with pytest.raises(KernelsUnavailable, match=r"foreign\.so can't be loaded"):
        find_kernels()


def test_a_choice_that_is_none_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(kernels.CHOICE, "off")
    with pytest.raises(KernelsUnavailable, match=r"DRAGOMAN_KERNELS is 'off'; this CPU can run .*portable"):
        find_kernels()


def test_a_float_bundle_runs_on_plain_graphs(tiny_bundle: Path) -> None:
    manifest = Manifest.load(tiny_bundle)
    opened = open_runners(tiny_bundle, manifest, EngineConfig(max_slots=2), SessionConfig(intra_op_threads=1))
    assert opened.kernels == PLAIN
    assert opened.aligner is not None
