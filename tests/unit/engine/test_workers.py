"""Several workers on one queue: each does its share, and events of a sequence reach the worker that decodes it."""

import threading

from service.domain.errors import Cancelled, EngineFailure, Unavailable
from service.engine.sequence import Sequence, SequenceProgress, SequenceUpdate
from tests.unit.engine.fake_runner import FakeRunner
from tests.unit.engine.recorder import WAIT_SECONDS, new_sequence
from tests.unit.engine.test_engine import Rig, endless


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


def test_a_failed_step_fails_its_own_workers_sequences_only() -> None:
    runners = fake_runners()
    meet(runners)
    first = runners[0]
    go_on = first.before_step
    assert go_on is not None

    def fails(number: int) -> None:
        go_on(number)
        if number == 3:
            raise RuntimeError("device error")

    first.before_step = fails
    sequences = [endless(number, str(number)) for number in range(2, 6)]
    with Rig(*runners) as rig:
        rig.engine.submit(sequences)
        errors = {sequence.source_ids: rig.error(sequence) for sequence in sequences}
    failed = set(map(tuple, first.encoded[0]))
    assert len(failed) == 2
    assert all(isinstance(error, EngineFailure) == (source in failed) for source, error in errors.items())
    assert all(error is None for source, error in errors.items() if source not in failed)


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
        rig.engine.workers[0].step = dies  # type: ignore[assignment, method-assign]
        rig.engine.submit(sequences)
        assert isinstance(rig.recorder.wait_for_failure(), MemoryError)
        rig.recorder.wait(4)
    assert len(rig.recorder.failures) == 1
    assert len(rig.recorder.updates) == 4
    assert sum(isinstance(update.error, Unavailable) for update in rig.recorder.updates) >= 1


def test_what_is_given_up_between_its_choice_and_its_first_run_harms_nobody() -> None:
    rig = Rig(*fake_runners())
    deadline_seconds = rig.clock.now + 1.0
    expired, victim = new_sequence((2, 1), "expired", deadline_seconds=deadline_seconds), endless(3)
    heard = rig.recorder.on_updates

    def on_updates(updates: list[SequenceUpdate], progress: list[SequenceProgress]) -> None:
        heard(updates, progress)
        if any(update.sequence is expired for update in updates):  # by the worker that has just chosen the victim
            rig.engine.abort([victim])
            rig.recorder.wait(1, [victim])  # the other worker processes it

    rig.recorder.on_updates = on_updates  # type: ignore[method-assign]
    with rig:
        rig.clock.now = deadline_seconds
        rig.engine.submit([expired, victim])
        assert isinstance(rig.error(victim), Cancelled)
        after = endless(4)
        rig.engine.submit([after])
        assert rig.error(after) is None
    assert not rig.recorder.failures
