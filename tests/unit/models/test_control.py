"""Models loaded and unloaded by name, on real folders, with a loader controlled by the test."""

import asyncio
import shutil
import threading
from pathlib import Path

import pytest

from service.bundle.errors import BundleError
from service.domain.errors import NotFound, NotPossible
from service.models.control import ModelControl
from service.models.index import LoadState
from tests.patience import patient
from tests.unit.models.test_fleet import Stage, in_use


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path / "models")


async def explicit(stage: Stage, *loaded: str) -> ModelControl:
    """Return a control over version 1 of the models `a` and `b`."""
    for name in "ab":
        stage.put(name, "1")
    fleet = stage.fleet()
    await fleet.load(loaded)
    stage.since()
    return ModelControl(fleet, is_explicit=True)


async def states(control: ModelControl) -> dict[str, str]:
    return {f"{each.name}/{each.version}": each.state.value for each in await control.states()}


async def test_the_start_loads_what_is_named(stage: Stage) -> None:
    for named, diary in (
        ((), ["serves "]),
        (("b",), ["loaded b/1:0", "serves b/1:0"]),
        (("a", "b"), ["loaded a/1:0", "loaded b/1:0", "serves a/1:0 b/1:0"]),
        (("*",), ["loaded a/1:0", "loaded b/1:0", "serves a/1:0 b/1:0"]),
    ):
        for name in "ab":
            stage.put(name, "1")
        await stage.fleet().load(named)
        assert stage.since() == diary
    (stage.root / "a" / "2").mkdir()  # unreadable, but relevant only where it is wanted
    await stage.fleet().load(["b"])
    assert stage.since() == ["loaded b/1:0", "serves b/1:0"]
    await stage.fleet().load(["a"])
    assert stage.since() == ["loaded a/1:0", "refused a", "serves a/1:0"]
    with pytest.raises(BundleError, match=r"no model 'c'; it holds a, b"):
        await stage.fleet().load(["b", "c"])


async def test_a_model_comes_and_goes_by_call_and_others_stay(stage: Stage) -> None:
    control = await explicit(stage, "a")
    assert await states(control) == {"a/1": "ready", "b/1": "unavailable"}
    stage.put("a", "2")
    await control.load("b")
    assert stage.since() == ["loaded b/1:0", "serves a/1:0 b/1:0"]
    await control.load("b")
    assert stage.since() == []
    await control.load("a")
    assert stage.since() == ["loaded a/2:0", "serves a/2:0 b/1:0", "stopped a/1:0", "retired a/1:0"]
    shutil.rmtree(stage.root / "a")
    await control.unload("b")
    assert stage.since() == ["serves a/2:0", "stopped b/1:0", "retired b/1:0"]
    await control.unload("a")  # even the last one
    assert stage.since() == ["serves ", "stopped a/2:0", "retired a/2:0"]
    assert await states(control) == {"b/1": "unavailable"}


async def test_a_model_that_moved_is_served_once(stage: Stage) -> None:
    control = await explicit(stage, "a", "b")
    (stage.root / "a").rename(stage.root / "moved")
    await control.load("a")
    assert stage.since() == ["loaded a/1:0", "serves a/1:0 b/1:0", "stopped a/1:0", "retired a/1:0"]


async def test_what_fails_changes_nothing_and_is_tried_again_when_asked(stage: Stage) -> None:
    control = await explicit(stage, "a")
    stage.put("a", "2", "bad")
    stage.refuses.add("bad")
    for _ in range(2):
        with pytest.raises(NotPossible, match="a/2 is not to be"):
            await control.load("a")
        assert stage.since() == ["refused a"]
    (index,) = [each for each in await control.states() if each.version == "2"]
    assert index.state is LoadState.UNAVAILABLE
    assert "is not to be" in index.reason
    stage.refuses.clear()
    await control.load("a")
    assert stage.since()[-1] == "retired a/1:0"
    assert await states(control) == {"a/1": "unavailable", "a/2": "ready", "b/1": "unavailable"}
    (stage.root / "a" / "3").mkdir()
    with pytest.raises(NotPossible, match="a/3 holds no manifest"):
        await control.load("a")
    shutil.copytree(stage.root / "b", stage.root / "c")
    with pytest.raises(NotFound):
        await control.load("nobody")
    with pytest.raises(NotPossible, match=r"/c holds a model named 'b', as .*/b does"):
        await control.load("c")
    shutil.rmtree(stage.root)
    with pytest.raises(NotPossible, match="not a directory"):
        await control.load("a")
    assert await states(control) == {"a/2": "ready"}
    assert stage.since() == []


async def test_unknown_names_are_told_with_those_there_are(stage: Stage) -> None:
    control = await explicit(stage, "a")
    with pytest.raises(NotFound, match="no model 'c' on disk; there are a, b"):
        await control.load("c")
    with pytest.raises(NotFound, match="'b' is not loaded; loaded: a"):
        await control.unload("b")


async def test_callers_may_do_nothing_unless_control_is_explicit(stage: Stage) -> None:
    control = ModelControl(await stage.serving("a"), is_explicit=False)
    for work in (control.load("a"), control.unload("a")):
        with pytest.raises(NotPossible, match="--model-control explicit"):
            await work
    assert await states(control) == {"a/1": "ready"}


async def test_a_load_goes_on_without_its_caller_and_the_next_waits_for_it(stage: Stage) -> None:
    control = await explicit(stage, "a")
    stage.gate = threading.Event()
    caller = asyncio.create_task(control.load("b"))
    assert await asyncio.to_thread(stage.loading.wait, 10)
    assert (await states(control))["b/1"] == "loading"
    caller.cancel()
    await asyncio.wait({caller})
    unloading = asyncio.create_task(control.unload("b"))
    assert not (await asyncio.wait({unloading}, timeout=0.05))[0]
    stage.gate.set()
    await unloading
    assert stage.since() == ["loaded b/1:0", "serves a/1:0 b/1:0", "serves a/1:0", "stopped b/1:0", "retired b/1:0"]


async def test_unloading_waits_for_calls_and_says_so_meanwhile(stage: Stage) -> None:
    control = await explicit(stage, "a")
    (model,) = stage.fleets[-1].models
    stage.swapped.clear()
    with in_use(model):
        unloading = asyncio.create_task(control.unload("a"))
        await stage.swapped.wait()
        assert (await states(control))["a/1"] == "unloading"
        assert not (await asyncio.wait({unloading}, timeout=0.05))[0]
    await unloading
    assert (await states(control))["a/1"] == "unavailable"


async def test_closing_gives_up_what_is_being_done(stage: Stage) -> None:
    control = await explicit(stage, "a")
    stage.gate = threading.Event()
    caller = asyncio.create_task(control.load("b"))
    assert await asyncio.to_thread(stage.loading.wait, 10)
    control.close()
    await asyncio.wait({caller}, timeout=patient(5))
    assert caller.cancelled()
    stage.gate.set()
