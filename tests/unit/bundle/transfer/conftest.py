"""An image of the tiny model in a registry on loopback, and no pauses between attempts."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from export.package import find_bundles, package
from tests.model_registry import ModelRegistry, model_registry

NOTICE = "the attribution\n"


@pytest.fixture(scope="session")
def layout(tiny_models: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("layout")
    notice = folder.with_suffix(".notice")
    notice.write_text(NOTICE)
    package(find_bundles([tiny_models]), folder, "v1", {"tiny": notice}, lambda _: None)
    return folder


@pytest.fixture
def registry(layout: Path) -> Iterator[ModelRegistry]:
    with model_registry(layout) as registry:
        yield registry


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Skip the pauses between attempts; return how long they would have been."""
    pauses: list[float] = []
    monkeypatch.setattr(time, "sleep", pauses.append)
    return pauses
