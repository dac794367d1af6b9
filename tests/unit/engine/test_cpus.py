import os
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from service.engine.cpus import STEPS_BACK, available_cpus, lower_priority, show_thread_name
from tests.servers import InProcessServer


@pytest.fixture
def eight_cpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _: set(range(8)), raising=False)


@pytest.mark.usefixtures("eight_cpus")
@pytest.mark.parametrize(
    ("quota", "expected"),
    [("200000 100000", 2), ("50000 100000", 1), ("1600000 100000", 8), ("max 100000", 8), ("", 8), (None, 8)],
)
def test_the_smaller_of_affinity_and_quota(tmp_path: Path, quota: str | None, expected: int) -> None:
    path = tmp_path / "cpu.max"
    if quota is not None:
        path.write_text(quota)
    assert available_cpus(path) == expected


pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a process has one niceness")


def own_niceness() -> int:
    return os.getpriority(os.PRIO_PROCESS, threading.get_native_id())


def in_thread(work: Callable[[], Any]) -> Any:
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(work).result()


def test_a_thread_and_its_children_are_set_back_and_no_other() -> None:
    def work() -> tuple[int, int]:
        lower_priority()
        lower_priority()  # counts from the process's
        return own_niceness(), in_thread(own_niceness)

    before = own_niceness()
    assert in_thread(work) == (before + STEPS_BACK, before + STEPS_BACK)
    assert in_thread(own_niceness) == own_niceness() == before


def test_the_main_thread_is_not_set_back() -> None:
    """Else each time would count from the last."""
    assert threading.current_thread() is threading.main_thread()
    before = own_niceness()
    lower_priority()
    assert own_niceness() == before


def test_a_sandbox_may_forbid_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: int) -> None:
        raise PermissionError

    def work() -> int:
        lower_priority()
        return own_niceness()

    monkeypatch.setattr("os.setpriority", refuse)
    assert in_thread(work) == own_niceness()


def test_a_server_lowers_the_priority_of_its_workers_and_of_what_calls_compute(
    serve: Callable[..., InProcessServer],
) -> None:
    before = own_niceness()
    others = set(threading.enumerate())
    serve()
    threads = {
        thread.name.split("-")[0].split("_")[0]: os.getpriority(os.PRIO_PROCESS, thread.native_id) - before
        for thread in threading.enumerate()
        if thread not in others and thread.native_id is not None
    }
    assert threads["engine"] == threads["compute"] == STEPS_BACK


def test_the_system_shows_a_threads_name_and_that_of_the_threads_it_starts() -> None:
    def seen() -> str:
        return Path(f"/proc/self/task/{threading.get_native_id()}/comm").read_text().strip()

    def named() -> tuple[str, str]:
        threading.current_thread().name = "engine-17-of-many-workers"
        show_thread_name()
        return seen(), in_thread(seen)

    before = seen()
    own, of_child = in_thread(named)
    assert own == "engine-17-of-ma"
    assert sys.version_info >= (3, 14) or of_child == own
    assert seen() == before
