"""The fleet on real folders, with a loader and engines controlled by the test. No gRPC, no ONNX Runtime."""

import asyncio
import dataclasses
import logging
import shutil
import threading
import weakref
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar, cast

import pytest

from service.bundle.errors import BundleError
from service.bundle.manifest_parts import LanguagePair
from service.engine.engine import Engine
from service.models import fleet as fleet_module
from service.models.catalogue import Leg, Route, RouteUse
from service.models.fleet import Fleet
from service.models.loaded_model import LoadedModel
from service.models.reload_plan import ReloadOutcome
from service.models.repository import FoundBundle
from service.text.tokenizers import Tokenizer
from tests.patience import patient
from tests.servers import eventually
from tests.unit.models.bare_manifest import MANIFEST

T = TypeVar("T")

UNCHANGED, CHANGED, FAILED = ReloadOutcome.UNCHANGED, ReloadOutcome.CHANGED, ReloadOutcome.FAILED


def in_use(model: LoadedModel) -> RouteUse:
    """Return a block in which a call uses a model."""
    return RouteUse(Route(model, (Leg(model, LanguagePair("en", "de")),)), 1)


class Stage:
    """A repository, a loader that rejects chosen contents, and a diary of the fleet's actions."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.refuses: set[str] = set()  # contents
        self.fails_trials: set[str] = set()  # likewise
        self.tried: list[str] = []
        self.diary: list[str] = []
        self.gate: threading.Event | None = None  # what the loader waits for
        self.loading = threading.Event()
        self.swapped = asyncio.Event()
        self.stops_in_time = True
        self.engines: list[weakref.ref[StoppableEngine]] = []
        self.fleets: list[Fleet] = []

    def put(self, folder: str, version: str, content: str = "0", name: str = "") -> Path:
        directory = self.root / folder / version
        directory.mkdir(parents=True, exist_ok=True)
        dataclasses.replace(MANIFEST, name=name or folder, checkpoint_sha256=content).save(directory)
        return directory

    def fleet(self, max_versions: int = 1, drain_seconds: float = 5.0) -> Fleet:
        self.fleets.append(Fleet(self.root, max_versions, self.load, self.try_out, self, drain_seconds))
        return self.fleets[-1]

    async def serving(self, *names: str, drain_seconds: float = 5.0) -> Fleet:
        """Return a fleet that serves version 1 of these models; the diary begins after that."""
        fleet = self.fleet(drain_seconds=drain_seconds)
        for name in names:
            self.put(name, "1")
        await fleet.load()
        self.since()
        return fleet

    def try_out(self, bundle: FoundBundle) -> None:
        self.tried.append(called(bundle))
        if bundle.manifest.checkpoint_sha256 in self.fails_trials:
            raise BundleError(f"{bundle.directory} can't be loaded: the trial process was killed by SIGSEGV.")

    def load(self, bundle: FoundBundle) -> LoadedModel:
        if self.gate is not None:
            self.loading.set()
            self.gate.wait(patient(10))
        if bundle.manifest.checkpoint_sha256 in self.refuses:
            raise RuntimeError(f"{bundle.directory}\nis not to be")
        engine = StoppableEngine(self, called(bundle))
        self.engines.append(weakref.ref(engine))
        return LoadedModel(bundle, cast(Tokenizer, None), cast(Engine, engine), cast(Any, None))

    def on_loaded(self, model: LoadedModel, seconds: float) -> None:
        assert seconds >= 0
        self.diary.append(f"loaded {called(model.bundle)}")

    def on_served(self, models: Sequence[LoadedModel]) -> None:
        self.swapped.set()
        self.diary.append("serves " + " ".join(sorted(called(model.bundle) for model in models)))

    def on_retired(self, model: LoadedModel) -> None:
        self.diary.append(f"retired {called(model.bundle)}")

    def on_restarted(self, model: LoadedModel) -> None:
        self.diary.append(f"restarted {called(model.bundle)}")

    def on_refused(self, name: str) -> None:
        self.diary.append(f"refused {name}")

    def since(self) -> list[str]:
        diary, self.diary = self.diary, []
        return diary


class StoppableEngine:
    def __init__(self, stage: Stage, name: str) -> None:
        self._stage = stage
        self._name = name

    def stop(self, timeout_seconds: float) -> bool:
        self._stage.diary.append(f"stopped {self._name}")
        return self._stage.stops_in_time


class RememberingPool(ThreadPoolExecutor):
    """Keeps references to everything it ran; threads of a usual pool drop them some time after the outcome is known."""

    def __init__(self) -> None:
        super().__init__()
        self._submitted: list[object] = []

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        self._submitted.append((fn, args, kwargs))
        return super().submit(fn, *args, **kwargs)


def called(bundle: FoundBundle) -> str:
    return f"{bundle.name}/{bundle.version}:{bundle.manifest.checkpoint_sha256}"


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path / "models")


def test_memory_is_given_back_when_nothing_holds_the_replaced(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    alive: list[int] = []  # engines in memory, each time that memory is returned
    monkeypatch.setattr(
        fleet_module, "give_back", lambda **_: alive.append(sum(ref() is not None for ref in stage.engines))
    )
    is_over = threading.Event()

    class LingeringFuture(Future[T]):
        """A future whose thread stops after it has set the outcome."""

        def set_result(self, result: T) -> None:
            super().set_result(result)
            is_over.wait(patient(10))

    monkeypatch.setattr(fleet_module, "Future", LingeringFuture)

    async def scenario() -> None:
        asyncio.get_running_loop().set_default_executor(RememberingPool())
        fleet = await stage.serving("a", "b")
        assert alive == [2]
        stage.put("a", "2")
        await fleet.reload()
        assert alive == [2, 2]
        await fleet.reload()  # nothing is new
        assert alive == [2, 2]
        stage.put("b", "2", "bad")
        stage.refuses.add("bad")
        await fleet.reload()  # the failed attempt took memory, too
        assert alive == [2, 2, 2]
        await fleet.drop("a")
        assert alive == [2, 2, 2, 1]

    try:
        asyncio.run(scenario())
    finally:
        is_over.set()


def test_the_start_loads_all_and_then_serves_all(stage: Stage) -> None:
    stage.put("b", "1")
    stage.put("a", "1")
    stage.put("a", "2")
    asyncio.run(stage.fleet(max_versions=2).load())
    assert stage.since() == ["loaded a/2:0", "loaded a/1:0", "loaded b/1:0", "serves a/1:0 a/2:0 b/1:0"]


def test_the_start_serves_what_can_be_loaded(stage: Stage, caplog: pytest.LogCaptureFixture) -> None:
    """Models come in order of their names; older versions take the place of those that fail, and are not preferred."""
    for folder, version, name, content in (
        *(("0", "1", "d", "0"), ("a", "1", "a", "0"), ("a", "2", "a", "bad"), ("b", "1", "b", "bad")),
        *(("c", "1", "c", "0"), ("c", "2", "c", "lost"), ("e", "1", "e", "lost"), ("e", "2", "e", "0")),
    ):
        directory = stage.put(folder, version, content, name)
        if content == "lost":
            (directory / "manifest.json").unlink()
    stage.refuses.add("bad")
    fleet = stage.fleet()
    asyncio.run(fleet.load())
    assert stage.since() == [
        *("loaded a/1:0", "loaded c/1:0", "loaded d/1:0", "loaded e/2:0"),
        *("refused a", "refused b", "refused c", "serves a/1:0 c/1:0 d/1:0 e/2:0"),
    ]
    assert stage.tried == []
    errors = [record.getMessage() for record in caplog.records if record.levelno == logging.ERROR]
    assert [line.partition(": ")[2].partition(" ")[0] for line in errors] == [
        str(stage.root / place) for place in ("a/2", "b/1", "c/2")
    ]
    assert all(line.startswith("not loaded, and not served: ") for line in errors)
    assert fleet.num_refused == 3


async def test_what_failed_at_the_start_is_not_tried_again_and_replaced_by_what_is_good(stage: Stage) -> None:
    stage.put("a", "1")
    stage.put("a", "2", "bad")
    stage.refuses.add("bad")
    fleet = stage.fleet()
    await fleet.load()
    stage.since()
    assert await fleet.reload() is UNCHANGED
    assert stage.since() == []
    stage.put("a", "2", "good")
    assert await fleet.reload() is CHANGED
    assert stage.since() == ["loaded a/2:good", "serves a/2:good", "stopped a/1:0", "retired a/1:0"]


def test_a_start_with_nothing_to_serve_fails_with_the_first_reason(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    stage.put("a", "1", "bad")
    (stage.put("b", "1") / "manifest.json").unlink()
    stage.refuses.add("bad")
    with pytest.raises(RuntimeError, match=r"a.1\nis not to be") as raised:
        asyncio.run(stage.fleet().load())
    (note,) = raised.value.__notes__
    assert "b/1 holds no manifest" in note
    assert caplog.records == []  # who started it tells why it ends
    with pytest.raises(BundleError, match=r"b.1 holds no manifest"):
        asyncio.run(stage.fleet().load(["b"]))
    with pytest.raises(BundleError, match=r"holds no model 'c'; it holds a, b\.$"):
        asyncio.run(stage.fleet().load(["a", "c"]))


async def test_a_new_version_takes_the_old_ones_place_at_once(stage: Stage) -> None:
    fleet = await stage.serving("a")
    assert await fleet.reload() is UNCHANGED
    assert stage.since() == []
    stage.put("a", "2")
    assert await fleet.reload() is CHANGED
    assert stage.since() == ["loaded a/2:0", "serves a/2:0", "stopped a/1:0", "retired a/1:0"]
    shutil.rmtree(stage.root / "a" / "2")  # back to the old one
    assert await fleet.reload() is CHANGED
    assert stage.since() == ["loaded a/1:0", "serves a/1:0", "stopped a/2:0", "retired a/2:0"]
    stage.put("a", "1", "1")  # in place
    assert await fleet.reload() is CHANGED
    assert stage.since() == ["loaded a/1:1", "serves a/1:1", "stopped a/1:0", "retired a/1:0"]
    assert await fleet.reload() is UNCHANGED


async def test_of_two_new_bundles_the_first_is_served_before_the_second_is_loaded(stage: Stage) -> None:
    fleet = await stage.serving("a", "b")
    for name in "ab":
        stage.put(name, "2")
    assert await fleet.reload() is CHANGED
    assert stage.since() == [
        *("loaded a/2:0", "serves a/2:0 b/1:0", "stopped a/1:0", "retired a/1:0"),
        *("loaded b/2:0", "serves a/2:0 b/2:0", "stopped b/1:0", "retired b/1:0"),
    ]


async def test_a_bundle_that_fails_is_tried_again_when_it_changes(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    fleet = await stage.serving("a")
    stage.refuses.add("bad")
    directory = stage.put("a", "2", "bad")
    assert await fleet.reload() is FAILED
    assert stage.since() == ["refused a"]
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert record.getMessage() == f"not loaded, what was served before is still served: {directory} is not to be"
    assert [await fleet.reload() for _ in range(3)] == [UNCHANGED] * 3
    (directory / "weights").write_text("better", encoding="utf-8")  # under the same manifest
    assert await fleet.reload() is FAILED
    assert stage.since() == ["refused a"]
    stage.refuses.clear()
    assert await fleet.reload() is UNCHANGED
    (directory / "weights").write_text("better still", encoding="utf-8")
    assert await fleet.reload() is CHANGED
    assert stage.since() == ["loaded a/2:bad", "serves a/2:bad", "stopped a/1:0", "retired a/1:0"]


async def test_only_a_fleet_that_serves_tries_a_bundle_before_it_is_loaded(stage: Stage) -> None:
    stage.fails_trials = {"crash"}
    fleet = await stage.serving("a")
    assert stage.tried == []
    stage.put("a", "2", "crash")
    assert [await fleet.reload() for _ in range(3)] == [FAILED, UNCHANGED, UNCHANGED]
    assert (stage.tried, stage.since()) == (["a/2:crash"], ["refused a"])
    (folder,) = await fleet.read()
    (reason,) = await fleet.load_folder(folder)  # by call: whatever failed before is tried again
    assert reason.endswith("killed by SIGSEGV.")
    assert (stage.tried, stage.since()) == (["a/2:crash"] * 2, ["refused a"])
    stage.put("a", "2", "1")
    assert await fleet.reload() is CHANGED
    assert stage.tried[2:] == ["a/2:1"]


async def test_a_fault_of_one_model_stops_no_other(stage: Stage, caplog: pytest.LogCaptureFixture) -> None:
    fleet = await stage.serving("a", "b")
    (stage.root / "a" / "2").mkdir()
    stage.put("b", "2")
    assert await fleet.reload() is FAILED
    assert stage.since() == ["refused a", "loaded b/2:0", "serves a/1:0 b/2:0", "stopped b/1:0", "retired b/1:0"]
    assert "a/2 holds no manifest" in caplog.records[-1].getMessage()
    assert await fleet.reload() is UNCHANGED
    stage.put("a", "2")
    assert await fleet.reload() is CHANGED
    (stage.root / "a" / "3").mkdir()
    (stage.root / "new").mkdir()
    (stage.root / "new" / "1").mkdir()
    stage.since()
    assert await fleet.reload() is FAILED
    assert sorted(stage.since()) == ["refused a", "refused new"]


async def test_a_second_folder_of_the_same_name_changes_nothing(stage: Stage) -> None:
    fleet = await stage.serving("b")
    shutil.copytree(stage.root / "b", stage.root / "a")
    assert [await fleet.reload() for _ in range(2)] == [FAILED, UNCHANGED]
    assert stage.since() == ["refused a"]
    shutil.rmtree(stage.root / "b")  # moved, then
    assert await fleet.reload() is CHANGED
    assert stage.since() == ["loaded b/1:0", "serves b/1:0", "stopped b/1:0", "retired b/1:0"]


async def test_a_start_serves_one_of_two_of_the_same_name_and_says_which(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    stage.put("b", "1")
    for other in ("a", "c"):
        shutil.copytree(stage.root / "b", stage.root / other)
    fleet = stage.fleet()
    await fleet.load()
    assert [model.bundle.directory for model in fleet.models] == [stage.root / "b" / "1"]
    told = [each.getMessage() for each in caplog.records if each.levelname == "ERROR"]
    assert len(told) == 2
    assert f"{stage.root / 'a'} holds a model named 'b', as {stage.root / 'b'} does, and only the latter" in told[0]
    assert await fleet.reload() is UNCHANGED


async def test_a_missing_or_empty_repository_keeps_everything(stage: Stage, caplog: pytest.LogCaptureFixture) -> None:
    fleet = await stage.serving("a")
    for way, message in ((stage.root, "not a directory"), (stage.root / "a", "neither")):
        way.rename(stage.root.parent / "aside")
        assert [await fleet.reload() for _ in range(2)] == [FAILED, UNCHANGED]
        assert message in caplog.records[-1].getMessage()
        (stage.root.parent / "aside").rename(way)
        assert await fleet.reload() is UNCHANGED
    assert stage.since() == []
    assert len(caplog.records) == 2


async def test_what_is_retired_is_stopped_when_its_last_call_has_ended(stage: Stage) -> None:
    fleet = await stage.serving("a")
    (old,) = fleet.models
    stage.swapped.clear()
    with in_use(old):
        with in_use(old):
            stage.put("a", "2")
            reload = asyncio.create_task(fleet.reload())
            await stage.swapped.wait()
        assert not (await asyncio.wait({reload}, timeout=0.05))[0]
        assert "stopped a/1:0" not in stage.diary
    assert await asyncio.wait_for(reload, patient(5)) is CHANGED
    assert stage.diary[-2:] == ["stopped a/1:0", "retired a/1:0"]


@pytest.mark.parametrize("drain_seconds", [0.0, 0.02])
async def test_calls_that_last_too_long_end(
    stage: Stage, caplog: pytest.LogCaptureFixture, drain_seconds: float
) -> None:
    fleet = await stage.serving("a", drain_seconds=drain_seconds)
    with in_use(fleet.models[0]):
        stage.put("a", "2")
        await fleet.reload()
        assert stage.diary[-1] == "retired a/1:0"
    assert "did not finish within" in caplog.text
    caplog.clear()
    stage.put("a", "3")
    await fleet.reload()  # not in use
    assert "did not finish within" not in caplog.text


async def test_an_engine_that_does_not_stop_is_reported(stage: Stage, caplog: pytest.LogCaptureFixture) -> None:
    fleet = await stage.serving("a")
    stage.stops_in_time = False
    stage.put("a", "2")
    assert await fleet.reload() is CHANGED
    assert "did not stop" in caplog.text


async def test_a_reload_that_is_cancelled_while_loading_leaves_the_old_one(stage: Stage) -> None:
    fleet = await stage.serving("a")
    stage.gate = threading.Event()
    stage.put("a", "2")
    reload = asyncio.create_task(fleet.reload())
    assert await asyncio.to_thread(stage.loading.wait, 10)
    reload.cancel()
    await asyncio.wait({reload}, timeout=patient(5))
    assert reload.cancelled()
    await fleet.stop()
    assert stage.diary[-1] == "stopped a/1:0"
    stage.gate.set()  # the thread's outcome is ignored, and is not an error


async def test_a_reload_that_is_cancelled_while_calls_finish_stops_both_engines_at_the_end(stage: Stage) -> None:
    fleet = await stage.serving("a")
    (old,) = fleet.models
    stage.swapped.clear()
    with in_use(old):
        stage.put("a", "2")
        reload = asyncio.create_task(fleet.reload())
        await stage.swapped.wait()
        reload.cancel()
        await asyncio.wait({reload}, timeout=patient(5))
        stage.since()
        await fleet.stop()
    assert sorted(stage.since()) == ["stopped a/1:0", "stopped a/2:0"]


async def test_a_bundle_that_loads_for_long_is_told_of_again_and_again(
    stage: Stage, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fleet_module, "_STILL_LOADING_SECONDS", 0.01)
    folder = stage.put("a", "1")

    def told() -> list[str]:
        return [message for message in caplog.messages if message.startswith(f"still loading {folder} after ")]

    fleet = stage.fleet()
    stage.gate = threading.Event()
    start = asyncio.create_task(fleet.load())
    await asyncio.to_thread(eventually, lambda: len(told()) >= 2)
    stage.gate.set()
    await start
    assert told()


async def test_a_bundle_by_itself_is_followed_too(stage: Stage) -> None:
    directory = stage.put("a", "1")
    fleet = Fleet(directory, 1, stage.load, stage.try_out, stage, 5.0)
    await fleet.load()
    assert await fleet.reload() is UNCHANGED
    stage.since()
    stage.put("a", "1", "1")
    assert await fleet.reload() is CHANGED
    assert stage.since() == ["loaded a/:1", "serves a/:1", "stopped a/:0", "retired a/:0"]
    stage.refuses.add("2")
    stage.put("a", "1", "2")
    assert await fleet.reload() is FAILED
    (directory / "manifest.json").write_text("{", encoding="utf-8")
    assert await fleet.reload() is FAILED
    assert [called(model.bundle) for model in fleet.models] == ["a/:1"]
