"""The supervisor's reaction to failing engines, on a simulated clock and with engines that only report a state.

`tests/faults` does it with real engines.
"""

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from service.models.fleet import Fleet
from service.models.supervisor import MAX_RESTARTS, Backoff, Supervisor
from tests.clock import Clock
from tests.servers import TIMEOUT_SECONDS

STUCK_TURN_SECONDS = 8.0


@dataclass
class FakeEngine:
    failure: BaseException | None = None
    has_threads: bool = False
    turn_seconds: float = 0.0

    def snapshot(self) -> Any:
        return SimpleNamespace(turn_seconds=self.turn_seconds)

    def fail(self, error: BaseException, reason: str) -> None:
        assert reason in str(error)
        self.failure = error


@dataclass(eq=False)
class FakeModel:
    engine: FakeEngine = field(default_factory=FakeEngine)
    bundle: Any = field(default_factory=lambda: SimpleNamespace(directory=Path("models/tiny/1")))


class FakeFleet:
    def __init__(self, *models: FakeModel) -> None:
        self.models = list(models)
        self.num_restarts = 0
        self.is_mended = True
        self.hangs = False

    async def restart(self, model: FakeModel) -> None:
        self.num_restarts += 1
        if self.hangs:
            await asyncio.Event().wait()
        if not self.is_mended:
            raise ValueError("the golden sentences came out otherwise")
        model.engine.failure = None


class Scene:
    """A supervisor of one model, and what it reported."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.model = FakeModel()
        self.engine = self.model.engine
        self.fleet = FakeFleet(self.model)
        self.told: list[bool | str] = []
        fleet = cast(Fleet, self.fleet)
        self.supervisor = Supervisor(fleet, self, STUCK_TURN_SECONDS, self.clock)

    def on_recovering(self, recovering: bool) -> None:
        self.told.append(recovering)

    def on_lost(self, reason: str) -> None:
        self.told.append(reason)

    async def after(self, seconds: float) -> None:
        """Advance the clock, and run the supervisor until a restart has ended, or hangs."""
        self.clock.now += seconds
        self.supervisor.wake()
        for _ in range(3):
            await asyncio.sleep(0)


@pytest.fixture
def scene() -> Scene:
    return Scene()


def run(work: Coroutine[Any, Any, None]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(TIMEOUT_SECONDS):
            await work

    asyncio.run(bounded())


def test_who_is_well_is_left_alone(scene: Scene) -> None:
    scene.engine.has_threads = True
    scene.engine.turn_seconds = STUCK_TURN_SECONDS
    run(scene.after(1.0))
    assert scene.engine.failure is None
    assert scene.told == []


def test_a_turn_that_takes_too_long_is_ended(scene: Scene) -> None:
    scene.engine.has_threads = True
    scene.engine.turn_seconds = STUCK_TURN_SECONDS + 0.1
    run(scene.after(1.0))
    assert str(scene.engine.failure) == "a run of the model took more than 8 s and was ended"
    assert scene.told == [True]


async def test_what_failed_is_restarted_once_its_threads_have_ended_and_the_delay_is_over(scene: Scene) -> None:
    scene.engine.failure, scene.engine.has_threads = RuntimeError("a bug"), True
    await scene.after(0.0)
    assert scene.told == [True]
    await scene.after(1.0)
    assert scene.fleet.num_restarts == 0  # two engines must not share runners
    scene.engine.has_threads = False
    await scene.after(0.0)
    assert scene.fleet.num_restarts == 1
    assert scene.told == [True, False]
    scene.engine.failure = RuntimeError("again")
    for seconds, num_restarts in ((0.0, 1), (0.19, 1), (0.02, 2)):
        await scene.after(seconds)
        assert scene.fleet.num_restarts == num_restarts
    assert scene.told == [True, False] * 2


async def test_threads_that_do_not_end_are_beyond_help(scene: Scene) -> None:
    scene.engine.failure, scene.engine.has_threads = RuntimeError("a bug"), True
    await scene.after(0.0)
    await scene.after(4.9)
    assert scene.told == [True]
    await scene.after(0.2)
    await scene.after(9.0)
    assert scene.told == [True, "a thread of the engine of models/tiny/1 hangs in native code."]
    assert scene.fleet.num_restarts == 0


async def test_so_is_a_restart_that_hangs(scene: Scene) -> None:
    scene.fleet.hangs = True
    scene.engine.failure = RuntimeError("a bug")
    for seconds in (0.0, 0.2, STUCK_TURN_SECONDS + 4.9):
        await scene.after(seconds)
    assert (scene.told, scene.fleet.num_restarts) == ([True], 1)
    await scene.after(0.2)
    assert scene.told == [True, "the engine of models/tiny/1 hangs during its restart."]


async def test_so_are_many_failures_in_a_row(scene: Scene) -> None:
    scene.fleet.is_mended = False
    scene.engine.failure = RuntimeError("a bug")
    for _ in range(2 * MAX_RESTARTS):
        await scene.after(31.0)
    assert scene.fleet.num_restarts == MAX_RESTARTS
    assert scene.told[0] is True
    (reason,) = scene.told[1:]
    assert "could not be restarted (ValueError: the golden sentences came out otherwise), 11 times in a row" in str(
        reason
    )


async def test_who_is_served_no_more_is_forgotten(scene: Scene) -> None:
    scene.engine.failure = RuntimeError("a bug")
    await scene.after(0.0)
    scene.fleet.models = []
    await scene.after(9.0)
    assert scene.told == [True, False]
    assert scene.fleet.num_restarts == 0


async def test_it_watches_by_itself_until_an_engine_is_lost(scene: Scene) -> None:
    watching = asyncio.create_task(scene.supervisor.watch())
    await asyncio.sleep(0)
    scene.fleet.is_mended = False
    scene.engine.failure = RuntimeError("a bug")
    scene.supervisor.wake()
    while not watching.done():
        scene.clock.now += 10.0
        await asyncio.wait({watching}, timeout=0.001)
    await watching
    assert isinstance(scene.told[-1], str)


async def test_engines_of_other_models_are_looked_after_each_for_itself(scene: Scene) -> None:
    other = FakeModel()
    scene.fleet.models.append(other)
    scene.engine.failure, scene.engine.has_threads = RuntimeError("a bug"), True
    other.engine.failure = RuntimeError("another")
    await scene.after(0.0)
    await scene.after(0.2)
    assert scene.told == [True]  # one is still down
    assert [model.engine.failure is None for model in scene.fleet.models] == [False, True]


def fail_at_once(backoff: Backoff, clock: Clock) -> float:
    """Fail, wait as long as one should, restart; how long that was."""
    backoff.failed()
    delay = backoff.seconds_left
    clock.now += delay
    assert backoff.seconds_left == 0
    backoff.restarted()
    return delay


def test_each_failure_in_a_row_doubles_the_delay_up_to_half_a_minute() -> None:
    clock = Clock()
    backoff = Backoff(clock)
    delays = [round(fail_at_once(backoff, clock), 6) for _ in range(MAX_RESTARTS)]
    assert delays == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30.0]
    before = backoff.has_given_up
    backoff.failed()
    assert (before, backoff.has_given_up) == (False, True)
    assert backoff.num_failures == MAX_RESTARTS + 1


def test_a_restart_that_fails_is_one_more_failure() -> None:
    backoff = Backoff(Clock())
    for _ in range(MAX_RESTARTS + 1):
        assert not backoff.has_given_up
        backoff.failed()
    assert backoff.has_given_up


def test_a_minute_of_work_ends_the_row() -> None:
    clock = Clock()
    backoff = Backoff(clock)
    for seconds, delay in ((59.9, 0.1), (60.0, 0.2), (61.0, 0.1), (1.0, 0.1), (1.0, 0.2), (1.0, 0.4)):
        assert round(fail_at_once(backoff, clock), 6) == delay
        clock.now += seconds


def test_time_in_a_run_that_hangs_is_no_work() -> None:
    clock = Clock()
    backoff = Backoff(clock)
    for number in range(3):
        assert backoff.num_failures == number
        backoff.failed(stuck_seconds=60.0)
        backoff.restarted()
        clock.now += 60.5


def test_many_days_of_a_failure_now_and_then() -> None:
    clock = Clock()
    backoff = Backoff(clock)
    for _ in range(1000):
        assert round(fail_at_once(backoff, clock), 6) == 0.1
        clock.now += 3600
    assert not backoff.has_given_up
