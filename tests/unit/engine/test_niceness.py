"""Threads that compute go after those that talk to callers."""

import os
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from service.engine.niceness import STEPS_BACK, lower_priority
from tests.servers import InProcessServer

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a process has one niceness")


def own_niceness() -> int:
    return os.getpriority(os.PRIO_PROCESS, threading.get_native_id())


def in_thread(work: Callable[[], Any]) -> Any:
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(work).result()


def test_a_thread_and_its_children_are_lower_priority_and_no_other() -> None:
    def work() -> tuple[int, int]:
        lower_priority()
        lower_priority()  # counts from the process's
        return own_niceness(), in_thread(own_niceness)

    before = own_niceness()
    assert in_thread(work) == (before + STEPS_BACK, before + STEPS_BACK)
    assert in_thread(own_niceness) == own_niceness() == before


def test_the_main_thread_is_not_lower_priority() -> None:
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


def test_a_server_sets_back_its_lanes_and_what_calls_compute(serve: Callable[..., InProcessServer]) -> None:
    before = own_niceness()
    others = set(threading.enumerate())
    serve()
    threads = {
        thread.name.split("-")[0].split("_")[0]: os.getpriority(os.PRIO_PROCESS, thread.native_id) - before
        for thread in threading.enumerate()
        if thread not in others and thread.native_id is not None
    }
    assert threads["engine"] == threads["compute"] == STEPS_BACK
