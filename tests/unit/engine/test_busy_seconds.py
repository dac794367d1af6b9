"""The busy time that turns report: all of the time in which a batch is worked on, and none in which it waits."""

import pytest

from service.engine.config import EngineConfig
from service.engine.engine import Engine
from tests.clock import Clock
from tests.unit.engine.recorder import Recorder, new_sequence
from tests.unit.engine.timed_runner import TimedRunner

ENCODE_SECONDS = 0.5
STEP_SECONDS = 0.25


def test_a_batch_is_busy_for_as_long_as_it_is_worked_on() -> None:
    clock, recorder = Clock(), Recorder()
    runner = TimedRunner(clock, 8, ENCODE_SECONDS, lambda num_rows: STEP_SECONDS, lambda: None)
    engine = Engine([runner], EngineConfig(), recorder, clock=clock)
    engine.open()
    (worker,) = engine.workers
    for num_sequences in (1, 4):  # four together take as many steps as one
        engine.submit([new_sequence((3, 10 + n), arrived_seconds=clock.now) for n in range(num_sequences)])
        while engine.has_work(worker):
            engine.run_turn(worker)
        clock.now += 100.0  # nothing to do
    busy = sum(turn.busy_seconds for turn in recorder.turns)
    assert busy == pytest.approx(5 * ENCODE_SECONDS + 2 * 3 * STEP_SECONDS)
