"""Deadlines that are moved, and threads that wait for a CPU."""

import asyncio
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
import pytest

from service.process import event_loop
from service.process.event_loop import Deadline, patient_threads
from tests.patience import patient

SOON, LATER = 0.02, 3600.0


def play(*steps: tuple[str, float, float]) -> float | None:
    """Take steps with a new deadline; return when it came, or `None` if it never will."""

    async def run() -> float | None:
        loop = asyncio.get_running_loop()
        came: asyncio.Future[float] = loop.create_future()
        deadline = Deadline(lambda: came.set_result(loop.time()))
        began = loop.time()
        for step, seconds, most_seconds in steps:
            if step == "set":
                deadline.set(seconds, most_seconds)
            elif step == "prolong":
                deadline.prolong(seconds)
            else:
                deadline.cancel()
        is_due = any(seconds < LATER for step, seconds, _ in steps[-1:])
        try:
            return await asyncio.wait_for(came, patient(10.0) if is_due else 3 * SOON) - began
        except TimeoutError:
            return None

    return asyncio.run(run())


@pytest.mark.parametrize(
    ("steps", "least_seconds"),
    [
        ([("set", SOON, LATER)], SOON),
        ([("set", LATER, LATER), ("set", SOON, LATER)], SOON),
        ([("set", SOON / 2, LATER), ("prolong", SOON, 0.0)], SOON),
        ([("set", SOON / 2, SOON), ("prolong", 100 * SOON, 0.0)], SOON),  # the end stays
        ([("set", SOON / 2, LATER), ("set", SOON, LATER)], SOON),
        ([("set", SOON, LATER), ("set", LATER, LATER)], None),
        ([("set", SOON, LATER), ("prolong", LATER, 0.0)], None),
        ([("set", SOON, LATER), ("cancel", LATER, 0.0)], None),
    ],
)
def test_it_comes_when_it_was_last_set_to(steps: list[tuple[str, float, float]], least_seconds: float | None) -> None:
    found = play(*steps)
    assert (found is None) is (least_seconds is None)
    assert found is None or found >= (least_seconds or 0.0) - 0.002  # the loop's clock counts milliseconds


on_linux = pytest.mark.skipif(sys.platform != "linux", reason="threads have such a policy on Linux only")


def own_policy() -> int:
    return os.sched_getscheduler(0)


def policies(pool: ThreadPoolExecutor) -> tuple[int, int]:
    """Return the policy of a thread of `pool`, and of a thread that it starts."""

    def of_child() -> int:
        with ThreadPoolExecutor(1) as children:
            return children.submit(own_policy).result(timeout=10)

    return pool.submit(own_policy).result(timeout=10), pool.submit(of_child).result(timeout=10)


@on_linux
def test_threads_started_inside_are_patient_with_their_children_and_no_others() -> None:
    with ThreadPoolExecutor(1) as inside, ThreadPoolExecutor(1) as outside:
        with patient_threads():
            inside.submit(own_policy).result(timeout=10)  # starts it
        assert own_policy() == os.SCHED_OTHER
        assert policies(inside) == (os.SCHED_BATCH, os.SCHED_BATCH)
        assert policies(outside) == (os.SCHED_OTHER, os.SCHED_OTHER)


@on_linux
def test_the_policy_comes_back_after_an_error() -> None:
    def fail() -> None:
        with patient_threads():
            assert own_policy() == os.SCHED_BATCH
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert own_policy() == os.SCHED_OTHER


@on_linux
def test_another_policy_of_the_operator_stays() -> None:
    """A thread can't leave SCHED_IDLE again without privileges, and whoever chose it meant it."""

    def work() -> tuple[int, int]:
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
        with patient_threads():
            inside = own_policy()
        return inside, own_policy()

    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(work).result(timeout=10) == (os.SCHED_IDLE, os.SCHED_IDLE)


@on_linux
def test_a_sandbox_may_forbid_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr("os.sched_setscheduler", refuse)
    with patient_threads():
        assert own_policy() == os.SCHED_OTHER


@pytest.mark.skipif(sys.platform == "win32", reason="gRPC uses no socket there")
def test_all_bytes_that_wake_the_loop_for_grpc_are_read_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Notices, too, if a release of gRPC wakes the loop in another way."""
    woken: list[bytes] = []
    read = event_loop._WakeSocket.recv

    def recorded(sock: Any, *_: object) -> bytes:
        woken.append(read(sock))
        return woken[-1]

    monkeypatch.setattr(event_loop._WakeSocket, "recv", recorded)

    async def run() -> None:
        server = grpc.aio.server()
        port = server.add_insecure_port("127.0.0.1:0")
        await server.start()
        async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
            call: Any = channel.unary_unary("/none/Of", None, None)
            with pytest.raises(grpc.aio.AioRpcError, match="UNIMPLEMENTED"):
                await asyncio.wait_for(call(b""), patient(5))
        await server.stop(None)

    event_loop.run(run())
    assert all(woken)
    assert woken
