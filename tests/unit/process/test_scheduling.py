"""Tests of service.process.event_loop."""

import os
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from service.process.event_loop import patient_threads

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="threads have such a policy on Linux only")


def own_policy() -> int:
    return os.sched_getscheduler(0)


def policies(pool: ThreadPoolExecutor) -> tuple[int, int]:
    """Return the policy of a thread of `pool`, and of a thread that it starts."""

    def of_child() -> int:
        with ThreadPoolExecutor(1) as children:
            return children.submit(own_policy).result(timeout=10)

    return pool.submit(own_policy).result(timeout=10), pool.submit(of_child).result(timeout=10)


def test_threads_started_inside_are_patient_with_their_children_and_no_others() -> None:
    with ThreadPoolExecutor(1) as inside, ThreadPoolExecutor(1) as outside:
        with patient_threads():
            inside.submit(own_policy).result(timeout=10)  # starts it
        assert own_policy() == os.SCHED_OTHER
        assert policies(inside) == (os.SCHED_BATCH, os.SCHED_BATCH)
        assert policies(outside) == (os.SCHED_OTHER, os.SCHED_OTHER)


def test_the_policy_comes_back_after_an_error() -> None:
    def fail() -> None:
        with patient_threads():
            assert own_policy() == os.SCHED_BATCH
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert own_policy() == os.SCHED_OTHER


def test_another_policy_of_the_operator_stays() -> None:
    """A thread can't leave SCHED_IDLE again without privileges, and whoever chose it meant it."""

    def work() -> tuple[int, int]:
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
        with patient_threads():
            inside = own_policy()
        return inside, own_policy()

    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(work).result(timeout=10) == (os.SCHED_IDLE, os.SCHED_IDLE)


def test_a_sandbox_may_forbid_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr("os.sched_setscheduler", refuse)
    with patient_threads():
        assert own_policy() == os.SCHED_OTHER
