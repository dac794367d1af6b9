"""The pool for calls' computations: who goes first, and what ends work."""

import asyncio
import functools
import gc
import threading
import time
import weakref
from collections.abc import Iterator
from pathlib import Path

import pytest

from service.domain.checkpoint import checkpoint
from service.domain.errors import DeadlineExceeded, Overloaded, Unavailable
from service.translation import compute_pool
from service.translation.compute_pool import ComputePool
from tests.patience import patient

BOUND_SECONDS = patient(60.0)
LARGE = 1_000_000


@pytest.fixture
def pool() -> Iterator[ComputePool]:
    running = ComputePool()
    yield running
    running.close()


class Long:
    """Work that continues until the test ends it."""

    def __init__(self) -> None:
        self.began, self.ended = threading.Event(), threading.Event()
        self._stopped = threading.Event()

    def __call__(self) -> str:
        self.began.set()
        try:
            while not self._stopped.is_set():
                checkpoint()
        finally:
            self.ended.set()
        return "long"

    def stop(self) -> None:
        self._stopped.set()


async def begun(work: Long) -> None:
    assert await asyncio.to_thread(work.began.wait, BOUND_SECONDS)


async def ended(work: Long) -> None:
    assert await asyncio.to_thread(work.ended.wait, BOUND_SECONDS)


async def test_results_and_errors_come_back(pool: ComputePool) -> None:
    def fail() -> None:
        raise KeyError("x")

    assert await pool.run(lambda: 7, 10) == 7
    with pytest.raises(KeyError):
        await pool.run(fail, 10)
    assert await pool.run(lambda: 8, 10) == 8


async def test_work_that_nobody_waits_for_ends_at_its_next_checkpoint(pool: ComputePool) -> None:
    work = Long()
    task = asyncio.ensure_future(pool.run(work, LARGE))
    await begun(work)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await ended(work)


async def test_work_ends_with_its_deadline(pool: ComputePool) -> None:
    work = Long()
    with pytest.raises(DeadlineExceeded):
        await pool.run(work, LARGE, time.monotonic() + 0.05)
    await ended(work)
    never = Long()
    with pytest.raises(DeadlineExceeded):
        await pool.run(never, LARGE, time.monotonic() - 1.0)
    assert await pool.run(lambda: 1, 1) == 1
    assert not never.began.is_set()


@pytest.mark.parametrize("caller", ["the same", "another"])
async def test_short_work_does_not_wait_for_long_work(pool: ComputePool, caller: str) -> None:
    longs = [Long() for _ in range(40)]
    tasks = [asyncio.ensure_future(pool.run(work, LARGE, caller="the same")) for work in longs]
    await begun(longs[0])
    for _ in range(20):
        assert await pool.run(lambda: "short", 100, caller=caller) == "short"
    assert not any(task.done() for task in tasks)
    for work in longs:
        work.stop()
    assert await asyncio.gather(*tasks) == ["long"] * 40


async def test_a_caller_with_much_long_work_does_not_keep_anothers_waiting(pool: ComputePool) -> None:
    longs = [Long() for _ in range(40)]
    tasks = [asyncio.ensure_future(pool.run(work, LARGE, caller="greedy")) for work in longs]
    await begun(longs[0])
    other = Long()
    other.stop()
    assert await pool.run(other, LARGE, caller="modest") == "long"
    assert not any(task.done() for task in tasks)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def test_turns_are_shared_by_what_has_run(pool: ComputePool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of four runs about as long as the others."""
    monkeypatch.setattr(compute_pool, "_SLICE_SECONDS", 0.001)
    seconds = [0.0] * 4
    done = threading.Event()

    def spin(number: int) -> None:
        last = time.thread_time()
        while not done.is_set():
            checkpoint()
            now = time.thread_time()
            seconds[number] += now - last
            last = now
            if sum(seconds) > 0.4:
                done.set()

    tasks = [asyncio.ensure_future(pool.run(lambda number=number: spin(number), LARGE)) for number in range(4)]  # type: ignore[misc]
    await asyncio.gather(*tasks)
    assert min(seconds) > 0.2 * max(seconds)


def num_switches() -> int:
    """Return how often the threads of all pools have waited so far, for a turn or for the interpreter."""
    waits = 0
    for task in Path("/proc/self/task").iterdir():
        if (task / "comm").read_text() == "compute\n":
            lines = (task / "status").read_text().splitlines()
            waits += sum(int(line.split()[1]) for line in lines if line.startswith("voluntary_ctxt_switches"))
    return waits


async def test_a_turn_wakes_no_thread_but_its_own(pool: ComputePool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each that wakes takes the interpreter from the event loop."""
    monkeypatch.setattr(compute_pool, "_SLICE_SECONDS", 0.001)
    turns: list[int] = []
    done = threading.Event()

    def spin(number: int) -> None:
        while not done.is_set():
            checkpoint()
            if not turns or turns[-1] != number:
                turns.append(number)
                if len(turns) == 300:
                    done.set()

    before = num_switches()
    works = [(functools.partial(spin, number), f"caller {number % 2}") for number in range(8)]
    await asyncio.gather(*(pool.run(work, 10, caller=caller) for work, caller in works))
    assert len(set(turns)) == 8
    assert num_switches() - before < 3.5 * len(turns), "two for each: its turn, and the interpreter"


async def test_work_that_is_given_up_while_it_waits_gives_its_thread_back(pool: ComputePool) -> None:
    longs = [Long() for _ in range(4)]
    tasks = [asyncio.ensure_future(pool.run(work, LARGE)) for work in longs]
    for work in longs:
        await begun(work)
    for task, work in zip(tasks[:3], longs[:3], strict=True):
        task.cancel()
        await ended(work)
    assert not longs[3].ended.is_set()
    longs[3].stop()
    assert await tasks[3] == "long"


async def test_a_closed_pool_ends_all_work_and_takes_none(pool: ComputePool) -> None:
    longs = [Long() for _ in range(20)]
    tasks = [asyncio.ensure_future(pool.run(work, LARGE)) for work in longs]
    await begun(longs[0])
    pool.close()
    outcomes = await asyncio.gather(*tasks, return_exceptions=True)
    assert all(isinstance(outcome, Unavailable) for outcome in outcomes), outcomes
    for work in longs:
        assert work.ended.is_set() or not work.began.is_set()
    with pytest.raises(Unavailable):
        await pool.run(lambda: 1, 1)


async def test_too_much_that_waits_is_refused(pool: ComputePool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compute_pool, "_MAX_QUEUED_OF_ONE_CALLER", 3)
    longs = [Long() for _ in range(7)]
    tasks = []
    for work in longs[:4]:
        tasks.append(asyncio.ensure_future(pool.run(work, LARGE, caller="greedy")))
        await begun(work)
    tasks += [asyncio.ensure_future(pool.run(work, LARGE, caller="greedy")) for work in longs[4:]]
    await asyncio.sleep(0)
    with pytest.raises(Overloaded):
        await pool.run(lambda: 1, LARGE, caller="greedy")
    assert await pool.run(lambda: 1, LARGE, caller="modest") == 1
    for work in longs:
        work.stop()
    await asyncio.gather(*tasks)


async def test_a_thread_that_waits_holds_nothing_of_a_call(pool: ComputePool) -> None:
    class Held:
        pass

    held = Held()
    known = weakref.ref(held)

    def use(held: Held = held) -> str:
        return type(held).__name__

    assert await pool.run(use, 10) == "Held"
    del held, use
    gc.collect()
    assert known() is None
