"""Turns of workers on one queue: each does its share, runs end when somebody needs it, and events of a sequence reach
the worker that decodes it."""

import threading

import pytest

from service.domain.errors import Cancelled, Unavailable
from service.engine.config import EngineConfig
from service.engine.engine import Engine
from service.engine.sequence import Sequence
from tests.clock import Clock
from tests.unit.engine.fake_runner import FakeRunner
from tests.unit.engine.recorder import WAIT_SECONDS, Recorder, decode, new_sequence
from tests.unit.engine.test_engine import Rig, endless
from tests.unit.engine.timed_runner import TimedRunner

CONFIG = EngineConfig(max_encode_tokens=60)
ENCODE_SECONDS = 0.5
STEP_SECONDS = 0.25


def fake_runners(count: int = 2, max_slots: int = 8) -> tuple[FakeRunner, ...]:
    return tuple(FakeRunner(max_slots=max_slots, eos_weight=-30.0) for _ in range(count))


def meet(runners: tuple[FakeRunner, ...]) -> None:
    """Delay every runner's first step until all have reached theirs, so that no worker can do all the work alone."""
    barrier = threading.Barrier(len(runners))

    def before_step(number: int) -> None:
        if number == 1:
            barrier.wait(WAIT_SECONDS)

    for runner in runners:
        runner.before_step = before_step


def test_what_comes_together_is_shared_evenly() -> None:
    runners = fake_runners()
    meet(runners)
    with Rig(*runners) as rig:
        rig.engine.submit([new_sequence((number, 1), str(number), max_output_tokens=9) for number in range(2, 10)])
        rig.recorder.wait(8)
    assert [runner.batch_sizes for runner in runners] == [[4] * 9] * 2
    assert all(update.error is None for update in rig.recorder.updates)


def test_every_second_one_of_those_sorted_by_length_goes_to_either_worker() -> None:
    runners = fake_runners()
    meet(runners)
    sequences = [new_sequence((5,) * length, str(length), max_output_tokens=5) for length in range(10, 18)]
    with Rig(*runners, max_encode_tokens=500) as rig:
        rig.engine.submit(sequences)
        rig.recorder.wait(8)
    shares = sorted([len(source) for source in runner.encoded[0]] for runner in runners)
    assert shares == [[10, 12, 14, 16], [11, 13, 15, 17]]


def test_a_worker_without_work_leaves_the_machine_to_the_other() -> None:
    runners = fake_runners()
    at_work: list[int] = []
    for runner in runners:
        runner.before_step = lambda number: at_work.append(sum(each.is_at_work for each in runners))
    with Rig(*runners) as rig:
        rig.engine.submit([endless()])
        rig.recorder.wait(1)
        rig.engine.submit([new_sequence((2, 1), max_output_tokens=2), new_sequence((3, 1), max_output_tokens=2)])
        rig.recorder.wait(3)
    assert at_work[:38] == [1] * 38
    assert max(runner.num_steps for runner in runners) >= 38
    assert not any(runner.is_at_work for runner in runners), "who has nothing to do says so"


def test_when_one_worker_dies_all_are_told_once() -> None:
    runners = fake_runners()
    rig = Rig(*runners)
    sequences: list[Sequence] = [endless(number, str(number)) for number in range(2, 6)]
    dying = threading.Event()

    def dies(*_: object) -> None:
        dying.set()
        raise MemoryError("no more")

    def waits(_: int) -> None:  # otherwise this worker might do all the work before
        assert dying.wait(WAIT_SECONDS)

    runners[1].before_step = waits
    with rig:
        rig.engine.turns.workers[0].step = dies  # type: ignore[assignment, method-assign]
        rig.engine.submit(sequences)
        assert isinstance(rig.recorder.wait_for_failure(), MemoryError)
        rig.recorder.wait(4)
    assert len(rig.recorder.failures) == 1
    assert len(rig.recorder.updates) == 4
    assert sum(isinstance(update.error, Unavailable) for update in rig.recorder.updates) >= 1


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
            rows[number] = rig.engine.turns.workers[0].batch.num_rows
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
    are_running = threading.Barrier(2)

    def before_step(number: int) -> None:
        if number == 3:
            are_running.wait(WAIT_SECONDS)
            rig.engine.abort(victims)

    for runner in runners:
        runner.before_step = before_step
    with rig:
        rig.engine.submit(victims)
        assert all(isinstance(rig.error(victim), Cancelled) for victim in victims)
    assert [runner.num_steps for runner in runners] == [3, 3]


def test_an_interrupt_between_a_turns_beginning_and_its_run_is_not_lost() -> None:
    runner = FakeRunner(max_slots=2, eos_weight=-30.0, steps_per_run=64)
    victim = endless(2)
    with Rig(runner) as rig:
        runner.before_run = lambda: rig.engine.abort([victim])
        rig.engine.submit([victim])
        assert isinstance(rig.error(victim), Cancelled)
    assert runner.num_steps == 0


def test_stopping_ends_a_long_run() -> None:
    runner = FakeRunner(eos_weight=-30.0, steps_per_run=64)
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


def test_a_batch_is_busy_for_as_long_as_it_is_worked_on() -> None:
    clock, recorder = Clock(), Recorder()
    runner = TimedRunner(clock, 8, ENCODE_SECONDS, lambda num_rows: STEP_SECONDS, lambda: None)
    engine = Engine([runner], EngineConfig(), recorder, clock=clock)
    engine.open()
    (worker,) = engine.turns.workers
    for num_sequences in (1, 4):  # four together take as many steps as one
        engine.submit([new_sequence((3, 10 + n), arrived_seconds=clock.now) for n in range(num_sequences)])
        while engine.turns.has_work(worker):
            engine.turns.run_turn(worker)
        clock.now += 100.0  # nothing to do
    busy = sum(turn.busy_seconds for turn in recorder.turns)
    assert busy == pytest.approx(5 * ENCODE_SECONDS + 2 * 3 * STEP_SECONDS)
