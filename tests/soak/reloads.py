"""Changes to the models on disk during a soak: a version is added, touched, followed by a damaged one, and removed."""

import itertools
import shutil
import signal
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks.servers import RunningServer
from dragoman_client import Client
from tests.soak.watch import metrics_of
from tests.tiny_bundle import put_bundle

TIMEOUT_SECONDS = 120.0
SECOND = "2"
DAMAGED = "3"


class Reloads:
    """One step at a time; each waits until the server has followed.

    `models` is the folder that is served, in which every model has version 1; `second` holds other weights for each.
    """

    def __init__(self, server: RunningServer, models: Path, second: Sequence[Path]) -> None:
        self._server, self._models = server, models
        self._steps = itertools.cycle(
            [(bundle, step) for bundle in second for step in (self._add, self._damage, self._touch, self._remove)]
        )
        self.count = 0

    def step(self) -> None:
        """Perform the next step.

        Raises:
            TimeoutError: the server has not followed.
        """
        bundle, step = next(self._steps)
        step(bundle)
        self.count += 1

    def _add(self, bundle: Path) -> None:
        put_bundle(self._models, bundle, bundle.parent.name, SECOND)
        self._look()
        self._wait(lambda: self._is_served(bundle), "a new version is served")

    def _damage(self, bundle: Path) -> None:
        refused = self._metric("dragoman_model_load_failures_total")
        damaged = put_bundle(
            self._models, _damaged(bundle, self._models.parent / "damaged"), bundle.parent.name, DAMAGED
        )
        self._look()
        self._wait(
            lambda: self._metric("dragoman_model_load_failures_total") > refused,
            "a damaged version is refused",
        )
        shutil.rmtree(damaged)

    def _touch(self, bundle: Path) -> None:
        looks = self._metric("dragoman_reloads_total")
        for file in (self._models / bundle.parent.name / SECOND).iterdir():
            file.touch()
        self._look()
        self._wait(
            lambda: self._metric("dragoman_reloads_total") > looks,
            "the server looks at its models",
        )

    def _remove(self, bundle: Path) -> None:
        shutil.rmtree(self._models / bundle.parent.name / SECOND)
        self._look()
        self._wait(lambda: not self._is_served(bundle), "a removed version is gone")

    def _look(self) -> None:
        self._server.process.send_signal(signal.SIGHUP)

    def _is_served(self, bundle: Path) -> bool:
        """Return whether the second version of this bundle's model is served."""
        with Client(self._server.address) as client:
            return (bundle.parent.name, SECOND) in [(model.name, model.version) for model in client.models()]

    def _metric(self, name: str) -> float:
        return metrics_of(self._server).get(name, 0.0)

    @staticmethod
    def _wait(is_so: Callable[[], bool], what: str) -> None:
        end = time.monotonic() + TIMEOUT_SECONDS
        while not is_so():
            if time.monotonic() > end:
                raise TimeoutError(f"not within {TIMEOUT_SECONDS:g} s: {what}.")
            time.sleep(0.05)


def bundles_of(repository: Path, version: str = "1") -> list[Path]:
    """Return the bundles of that version of every model in a repository."""
    return sorted(path for path in repository.glob(f"*/{version}") if (path / "manifest.json").exists())


def put_all(bundles: Sequence[Path], models: Path, version: str) -> None:
    """Copy bundles into a repository, which is created if needed."""
    models.mkdir(parents=True, exist_ok=True)
    for bundle in bundles:
        put_bundle(models, bundle, bundle.parent.name, version)


def _damaged(bundle: Path, to: Path) -> Path:
    shutil.rmtree(to, ignore_errors=True)
    shutil.copytree(bundle, to)
    file = to / "encoder.onnx"
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 0x10
    file.write_bytes(content)
    return to
