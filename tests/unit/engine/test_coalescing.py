"""Identical sequences are decoded once, and each gets its own answer at its own time."""

import pytest

from service.domain.errors import Cancelled, DeadlineExceeded, EngineFailure
from service.domain.translation import FinishReason
from service.engine.sequence import Sequence, SequenceStatus
from tests.unit.engine.fake_runner import BAD_SOURCE_ID, FakeRunner
from tests.unit.engine.recorder import new_sequence
from tests.unit.engine.test_engine import Rig


def twin(request_id: str = "r", max_output_tokens: int = 20, deadline_seconds: float | None = None) -> Sequence:
    return new_sequence((5, 6, 1), request_id, max_output_tokens=max_output_tokens, deadline_seconds=deadline_seconds)


def answer(rig: Rig, sequence: Sequence) -> tuple[int, ...]:
    update = rig.recorder.update(sequence)
    assert update.error is None
    assert sequence.status is SequenceStatus.FINISHED
    return update.hypotheses[0].token_ids


def test_waiting_twins_follow_the_first() -> None:
    with Rig() as rig:
        twins = [twin(str(number)) for number in range(10)]
        rig.engine.submit(twins)
        answers = {answer(rig, sequence) for sequence in twins}
    assert len(answers) == 1
    assert rig.runner.encoded == [[(5, 6, 1)]]
    assert set(rig.runner.batch_sizes) == {1}
    assert sum(turn.num_followers for turn in rig.recorder.turns) == 9
    assert sum(len(turn.queue_seconds) for turn in rig.recorder.turns) == 10
    assert sum(len(turn.first_token_seconds) for turn in rig.recorder.turns) == 10


def test_a_newcomer_follows_a_twin_at_work_without_waiting_for_a_slot() -> None:
    rig = Rig(FakeRunner(max_slots=1, eos_weight=-30.0))
    first, second = twin("a"), twin("b")
    rig.runner.before_step = lambda number: rig.engine.submit([second]) if number == 10 else None
    with rig:
        rig.engine.submit([first])
        assert answer(rig, first) == answer(rig, second)
    assert rig.runner.num_steps == 20


@pytest.mark.parametrize(
    "other",
    [
        new_sequence((5, 7, 1), max_output_tokens=20),
        new_sequence((5, 6, 1), max_output_tokens=19),
        new_sequence((5, 6, 1), max_output_tokens=20, target_prefix_ids=(3,)),
        new_sequence((5, 6, 1), max_output_tokens=20, output_prefix_ids=(3,)),
        new_sequence((5, 6, 1), max_output_tokens=20, max_repeats=5),
        new_sequence((5, 6, 1), max_output_tokens=20, max_length_ratio=5.0),
        new_sequence((5, 6, 1), max_output_tokens=20, temperature=1.0, seed=1),
        new_sequence((5, 6, 1), max_output_tokens=20, beam_size=2),
    ],
)
def test_who_asks_for_anything_else_is_no_twin(other: Sequence) -> None:
    with Rig() as rig:
        rig.engine.submit([twin(), other])
        rig.recorder.wait(2)
    assert max(rig.runner.batch_sizes) == 1 + other.num_slots


def test_a_leader_that_is_given_up_is_decoded_on_for_its_twins() -> None:
    rig = Rig()
    leader, follower = twin("a"), twin("b")
    rig.runner.before_step = lambda number: rig.engine.abort([leader]) if number == 3 else None
    with rig:
        rig.engine.submit([leader, follower])
        assert len(answer(rig, follower)) == 20
    assert isinstance(rig.error(leader), Cancelled)
    assert rig.recorder.updates[0].sequence is leader
    assert rig.runner.num_steps == 20


def test_when_all_twins_are_given_up_the_slot_is_free() -> None:
    rig = Rig()
    leader, follower, other = twin("a"), twin("b"), new_sequence((9, 1), max_output_tokens=30)

    def before_step(number: int) -> None:
        if number == 3:
            rig.engine.abort([leader])
        if number == 6:
            rig.engine.abort([follower])

    rig.runner.before_step = before_step
    with rig:
        rig.engine.submit([leader, follower, other])
        rig.recorder.wait(3)
        assert rig.engine.snapshot().slots_used == 0
    assert rig.runner.batch_sizes[5] == 2
    assert set(rig.runner.batch_sizes[7:]) == {1}


def test_each_twin_keeps_its_own_deadline() -> None:
    rig = Rig()
    leader, hasty, patient = twin("a", deadline_seconds=150.0), twin("b", deadline_seconds=120.0), twin("c")

    def before_step(number: int) -> None:
        rig.clock.now += 10.0

    rig.runner.before_step = before_step
    with rig:
        rig.engine.submit([leader, hasty, patient])
        assert len(answer(rig, patient)) == 20
    assert isinstance(rig.error(hasty), DeadlineExceeded)
    assert isinstance(rig.error(leader), DeadlineExceeded)
    assert [update.sequence for update in rig.recorder.updates] == [hasty, leader, patient]
    assert rig.recorder.update(leader).finish_reason is FinishReason.DEADLINE


def test_a_failure_is_that_of_all_twins_and_the_next_one_is_tried_anew() -> None:
    with Rig() as rig:
        twins = [new_sequence((BAD_SOURCE_ID, 1), str(number)) for number in range(3)]
        rig.engine.submit(twins)
        assert all(isinstance(rig.error(sequence), EngineFailure) for sequence in twins)
        rig.engine.submit([late := new_sequence((BAD_SOURCE_ID, 1))])
        assert isinstance(rig.error(late), EngineFailure)
    assert rig.runner.num_encodes == 2
