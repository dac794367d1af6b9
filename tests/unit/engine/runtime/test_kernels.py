"""Which kernels a bundle runs on, and what is said when there are none."""

from pathlib import Path

import pytest

from service.bundle.manifest import Manifest
from service.engine.config import EngineConfig
from service.engine.runtime import kernels
from service.engine.runtime.kernels import KernelsUnavailable, find_kernels
from service.engine.runtime.runners import PLAIN, open_runners
from service.engine.runtime.session import SessionConfig


@pytest.mark.parametrize(
    ("variable", "value", "problem"),
    [
        (kernels.PATH, "none.so", r"none\.so is missing; build it"),
        (kernels.PATH, __file__, r"test_kernels\.py can't be loaded"),
        (kernels.CHOICE, "off", r"DRAGOMAN_KERNELS is 'off'; allowed on this CPU: .*portable"),
    ],
)
def test_what_can_not_be_used_is_named(
    variable: str, value: str, problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(kernels.CHOICE, raising=False)
    monkeypatch.setenv(variable, value)
    with pytest.raises(KernelsUnavailable, match=problem):
        find_kernels()


def test_a_float_bundle_runs_on_plain_graphs(tiny_bundle: Path) -> None:
    manifest = Manifest.load(tiny_bundle)
    opened = open_runners(tiny_bundle, manifest, EngineConfig(max_slots=2), SessionConfig(intra_op_threads=1))
    assert opened.kernels == PLAIN
    assert opened.aligner is not None
