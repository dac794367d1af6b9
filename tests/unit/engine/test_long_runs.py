"""Runs of many steps: the same answers, and runs that end when somebody needs it."""

import threading

import pytest

from service.domain.errors import Cancelled, Unavailable
from service.engine.config import EngineConfig
from tests.unit.engine.fake_runner import FakeRunner
from tests.unit.engine.recorder import WAIT_SECONDS, decode, new_sequence
from tests.unit.engine.test_engine import Rig, endless

CONFIG = EngineConfig(max_encode_tokens=60)


def test_a_run_ends_with_the_first_row_that_ends() -> None:
    """Those that go on are side by side again before the next run."""
    runner = FakeRunner(steps_per_run=64, eos_weight=-30.0)
    sequences = [new_sequence((5 + n, 1), str(n), max_output_tokens=5 * n) for n in range(1, 5)]
    updates = decode(runner, sequences, CONFIG)
    assert [len(update.hypotheses[0].token_ids) for update in updates] == [5, 10, 15, 20]
    assert (runner.num_runs, runner.num_steps, sum(runner.batch_sizes)) == (4, 20, 50)


def test_a_long_run_ends_when_a_sequence_comes_that_may_join() -> None:
    """Nothing is known of steps in the first run; later ones make some before (`scheduler.run_limits`)."""
    runner = FakeRunner(max_slots=3, eos_weight=-30.0, steps_per_run=64)
    newcomer = new_sequence((3, 1), max_output_tokens=2)
    rows = {}
    with Rig(runner) as rig:

        def before_step(number: int) -> None:
            rows[number] = rig.engine.workers[0].batch.num_rows
            if number == 5:
                rig.engine.submit([newcomer])

        runner.before_step = before_step
        rig.engine.submit([endless(2, beam_size=2)])
        rig.recorder.wait(2)
    assert [rows[number] for number in (5, 6, 7)] == [2, 3, 3], "it joins after the step under way"


def test_a_run_goes_on_when_a_sequence_comes_that_has_to_wait() -> None:
    runner = FakeRunner(max_slots=1, eos_weight=-30.0, steps_per_run=64)
    with Rig(runner) as rig:
        runner.before_step = lambda number: rig.engine.submit([endless(3)]) if number == 5 else None
        rig.engine.submit([endless(2)])
        rig.recorder.wait(2)
    assert (runner.num_runs, runner.num_steps) == (2, 76)


def test_one_that_is_cancelled_in_another_workers_run_leaves_it_soon() -> None:
    runners = tuple(FakeRunner(eos_weight=-30.0, steps_per_run=64) for _ in range(2))
    victims = [endless(2), endless(3)]
    rig = Rig(*runners)
    are_running, is_told = threading.Barrier(2), threading.Event()

    def before_step(number: int) -> None:
        if number == 3:
            are_running.wait(WAIT_SECONDS)
            rig.engine.abort(victims)

    for runner in runners:
        runner.before_step = before_step
    with rig:
        rig.engine.submit(victims)
        assert all(isinstance(rig.error(victim), Cancelled) for victim in victims)
        is_told.set()
    assert [runner.num_steps for runner in runners] == [3, 3]


def test_an_interrupt_between_a_turns_beginning_and_its_run_is_not_lost() -> None:
    runner = FakeRunner(max_slots=2, eos_weight=-30.0, steps_per_run=64)
    victim = endless(2)
    with Rig(runner) as rig:
        runner.before_run = lambda: rig.engine.abort([victim])
        rig.engine.submit([victim])
        assert isinstance(rig.error(victim), Cancelled)
    assert runner.num_steps == 0


@pytest.mark.parametrize("steps_per_run", [1, 64])
def test_stopping_ends_a_long_run(steps_per_run: int) -> None:
    runner = FakeRunner(eos_weight=-30.0, steps_per_run=steps_per_run)
    sequence, is_running = endless(2), threading.Event()
    rig = Rig(runner)

    def before_step(number: int) -> None:
        if number == 5:
            is_running.set()
            while not runner.is_terminated:
                threading.Event().wait(0.001)

    runner.before_step = before_step
    with rig:
        rig.engine.submit([sequence])
        assert is_running.wait(WAIT_SECONDS)
    assert isinstance(rig.error(sequence), Unavailable)
    assert runner.num_steps == 5


def test_first_tokens_and_steps_are_counted_within_a_long_run() -> None:
    runner = FakeRunner(eos_weight=-30.0, steps_per_run=64)
    rig = Rig(runner)
    one, prefixed = (
        new_sequence((number, 1), max_output_tokens=8, arrived_seconds=90.0, target_prefix_ids=prefix)
        for number, prefix in ((2, ()), (3, (9, 9)))
    )

    def before_step(_: int) -> None:
        rig.clock.now += 1.0

    runner.before_step = before_step
    with rig:
        rig.engine.submit([one, prefixed])
        rig.recorder.wait(2)
    first, last = rig.recorder.turns
    assert (first.num_steps, first.run_seconds, first.batch_size, first.num_generated) == (8, 8.0, 2, 14)
    assert (first.num_row_steps, last.num_row_steps) == (16, 2)
    assert (one.first_token_seconds, prefixed.first_token_seconds) == (101.0, 103.0)
    assert first.first_token_seconds == [11.0, 13.0]
