"""Reloads from any state of the fleet to any state of the disk, with bundles that may fail; states of versions."""

import dataclasses
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from service.models.index import LoadState, ModelState, list_states
from service.models.reload_plan import plan_reload
from service.models.repository import FoundBundle, ModelDirectory, Stamp
from tests.unit.models.bare_manifest import MANIFEST

READY, LOADING, UNLOADING, UNAVAILABLE = LoadState


def bundle(name: str, version: int, content: int = 0) -> FoundBundle:
    """Return a bundle; each content has a different manifest."""
    manifest = dataclasses.replace(MANIFEST, name=name, checkpoint_sha256=str(content))
    return FoundBundle(
        Path("root", name, str(version)), str(version), manifest, frozenset({("file", content, content)})
    )


def folder(name: str, *bundles: FoundBundle, faults: tuple[str, ...] = ()) -> ModelDirectory:
    return ModelDirectory(Path("root", name), bundles, faults)


def test_a_model_that_left_the_disk_goes_when_its_heirs_are_there() -> None:
    left, heir = bundle("a", 1), bundle("b", 1)
    assert plan_reload([left], [folder("b", heir)], {}).retire == []
    assert plan_reload([left, heir], [folder("b", heir)], {}).retire == [left]
    waiting = [folder("b", heir), folder("c", bundle("c", 1))]  # c may be the new name of a
    assert plan_reload([left, heir], waiting, {}).retire == []


# A disk: per model and version either nothing, a fault (None) or one of a few contents. No models: gone.
_contents = st.one_of(st.none(), st.integers(0, 3))
_disks = st.dictionaries(st.sampled_from("abc"), st.dictionaries(st.integers(1, 4), _contents, max_size=3), max_size=3)


def read(disk: dict[str, dict[int, int | None]], max_versions: int) -> list[ModelDirectory]:
    models = []
    for name, versions in sorted(disk.items()):
        wanted = sorted(versions.items(), reverse=True)[:max_versions]
        found = [bundle(name, version, content) for version, content in wanted if content is not None]
        models.append(folder(name, *found, faults=("fault",) * (len(wanted) - len(found))))
    return models


@given(
    st.lists(_disks, min_size=1, max_size=5),
    st.integers(1, 3),
    st.sets(st.tuples(st.sampled_from("abc"), st.integers(1, 4), st.integers(0, 3)), max_size=24),
)
def test_nothing_good_goes_before_its_successor(disks: Any, max_versions: int, bad: set[tuple[str, int, int]]) -> None:
    served: list[FoundBundle] = []
    refused: dict[Path, Stamp] = {}

    def settle(served: list[FoundBundle], on_disk: list[ModelDirectory]) -> list[FoundBundle]:
        plan = plan_reload(served, on_disk, refused)
        wanted = [each for model in on_disk for each in model.bundles]
        stay = [each for each in served if each not in plan.retire]
        assert all(each in served and each not in wanted for each in plan.retire)
        assert stay or not served
        for model in on_disk:
            had = {each.name for each in served if each.model_directory == model.path}
            assert had == {each.name for each in stay if each.model_directory == model.path}, "a model lost its last"
            if any(each not in stay for each in model.bundles) or model.faults or not model.bundles:
                replaced = [each for each in plan.retire if each.model_directory == model.path]
                assert all(any(each.directory == other.directory for other in stay) for each in replaced)
        places = [(each.name, each.version) for each in stay]
        assert len(places) == len(set(places))
        return stay

    for disk in disks:
        on_disk = read(disk, max_versions)
        for repetition in range(2):
            load = plan_reload(served, on_disk, refused).load
            if repetition:
                assert load == []
                assert settle(served, on_disk) == served
            for each in load:
                assert each not in served
                if (each.name, int(each.version), int(each.manifest.checkpoint_sha256)) in bad:
                    refused[each.directory] = each.stamp
                else:
                    served = settle([*served, each], on_disk)
            served = settle(served, on_disk)
        for model in on_disk:
            good = [each for each in model.bundles if refused.get(each.directory) != each.stamp]
            assert all(each in served for each in good)
            if good == list(model.bundles) and good and not model.faults:
                assert [each for each in served if each.model_directory == model.path and each not in good] == []
        gone = [each for each in served if each.model_directory not in {model.path for model in on_disk}]
        assert not gone or not any(each in served for model in on_disk for each in model.bundles)


def test_every_version_on_disk_and_in_memory_is_listed_once() -> None:
    a1, a2, a10, b1, c1 = bundle("a", 1), bundle("a", 2), bundle("a", 10), bundle("b", 1), bundle("c", 1)
    on_disk = [folder("a", a10, a2, a1), folder("b", b1)]
    states = list_states(on_disk, {a10.directory: "it is damaged"}, [a1], b1, [a2, c1])
    assert states == [
        ModelState("a", "1", UNLOADING),
        ModelState("a", "2", READY),
        ModelState("a", "10", UNAVAILABLE, "it is damaged"),
        ModelState("b", "1", LOADING),
        ModelState("c", "1", READY),  # gone from the disk
    ]


def test_what_is_replaced_in_place_is_ready_all_the_time() -> None:
    old, new = bundle("a", 1, content=0), bundle("a", 1, content=1)
    for retiring, loading, served in (([], new, [old]), ([old], None, [new])):
        assert list_states([folder("a", new)], {}, retiring, loading, served) == [ModelState("a", "1", READY)]


def test_a_folder_that_can_t_be_read_is_told() -> None:
    broken = ModelDirectory(Path("root", "a"), (), ("a/1 holds no manifest.", "a/2 neither."))
    assert list_states([broken], {}, [], None, []) == [
        ModelState("a", "", UNAVAILABLE, "a/1 holds no manifest. a/2 neither.")
    ]
