"""Which kernels a bundle runs on, and what is said when they are not the fast ones."""

import logging
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


def test_kernels_can_be_switched_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(kernels.CHOICE, "off")
    with pytest.raises(KernelsUnavailable, match="DRAGOMAN_KERNELS is 'off'"):
        find_kernels()


def test_a_bundle_that_runs_on_plain_graphs_is_served_and_one_line_says_why(
    tiny_bundle: Path, caplog: pytest.LogCaptureFixture
) -> None:
    manifest = Manifest.load(tiny_bundle)
    with caplog.at_level(logging.INFO, "service.engine.runtime.runners"):
        opened = open_runners(tiny_bundle, manifest, EngineConfig(max_slots=2), SessionConfig(intra_op_threads=1))
    assert opened.kernels == PLAIN
    assert opened.encoder is not None
    (said,) = caplog.messages
    assert "runs on ONNX Runtime's own kernels" in said
    assert "float32" in said
