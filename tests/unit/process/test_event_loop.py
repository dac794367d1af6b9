"""Deadlines that are moved."""

import asyncio

import pytest

from service.process.event_loop import Deadline
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
