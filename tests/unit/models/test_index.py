"""The states of versions."""

from pathlib import Path

from service.models.index import LoadState, ModelState, list_states
from service.models.repository import ModelDirectory
from tests.unit.models.test_reload_plan import bundle, folder

READY, LOADING, UNLOADING, UNAVAILABLE = LoadState


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
