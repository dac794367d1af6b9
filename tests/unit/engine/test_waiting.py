import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from service.engine.sequence import Sequence
from service.engine.waiting import WaitingQueue
from tests.unit.engine.recorder import new_sequence


def names(sequences: list[Sequence]) -> list[str]:
    return [f"{sequence.request_id}{sequence.source_ids[0]}" for sequence in sequences]


def filled(*requests: tuple[str, int]) -> WaitingQueue:
    queue = WaitingQueue(10_000)
    for request_id, count in requests:
        queue.admit([new_sequence((number, 1), request_id) for number in range(count)])
    return queue


def test_requests_take_turns_and_each_is_first_come_first_served() -> None:
    assert names(list(filled(("a", 3), ("b", 1), ("c", 2)).candidates())) == ["a0", "b0", "c0", "a1", "c1", "a2"]


def test_a_call_with_a_thousand_sentences_delays_a_single_one_by_one_sentence() -> None:
    queue = filled(("big", 1000), ("single", 1))
    assert names(list(queue.candidates()))[:3] == ["big0", "single0", "big1"]


def test_taken_requests_go_to_the_back_and_passed_over_ones_stay_in_front() -> None:
    queue = filled(("a", 2), ("b", 2), ("c", 2))
    a0, _b0, c0 = list(queue.candidates())[:3]
    queue.take([a0, c0])
    assert names(list(queue.candidates())) == ["b0", "a1", "c1", "b1"]


def test_a_dropped_sequence_does_not_cost_its_request_the_turn() -> None:
    queue = filled(("a", 2), ("b", 1))
    queue.drop(next(queue.candidates()))
    assert names(list(queue.candidates())) == ["a1", "b0"]


def test_can_admit_knows_the_bound() -> None:
    queue = WaitingQueue(2)
    assert queue.can_admit(2)
    assert not queue.can_admit(3)
    queue.admit([new_sequence()])
    assert not queue.can_admit(2)
    with pytest.raises(AssertionError, match="can_admit"):
        queue.admit([new_sequence(), new_sequence()])


def test_expired_sequences_are_dropped_earliest_first() -> None:
    queue = WaitingQueue(10)
    late, early, timeless = (new_sequence(deadline_seconds=deadline) for deadline in (3.0, 1.0, None))
    queue.admit([late, early, timeless])
    assert queue.drop_expired(0.5) == []
    assert queue.drop_expired(1.0) == [early]
    assert queue.drop_expired(9.0) == [late]
    assert list(queue.candidates()) == [timeless]


def test_far_deadlines_of_sequences_long_gone_are_not_kept() -> None:
    queue = WaitingQueue(10)
    for _ in range(1000):
        sequence = new_sequence(deadline_seconds=1e9)
        queue.admit([sequence])
        queue.take([sequence])
    assert len(queue._deadlines) < 100


class QueueMachine(RuleBasedStateMachine):
    """The queue against lists: requests in a list in turn order, each a list of its sequences."""

    def __init__(self) -> None:
        super().__init__()
        self.queue = WaitingQueue(20)
        self.model: list[list[Sequence]] = []

    @rule(request=st.sampled_from("abcde"), count=st.integers(1, 6), deadline=st.none() | st.integers(0, 9))
    def admit(self, request: str, count: int, deadline: int | None) -> None:
        if not self.queue.can_admit(count):
            assert sum(map(len, self.model)) + count > 20
            return
        sequences = [new_sequence(request_id=request, deadline_seconds=deadline) for _ in range(count)]
        self.queue.admit(sequences)
        for waiting in self.model:
            if waiting[0].request_id == request:
                waiting.extend(sequences)
                return
        self.model.append(sequences)

    @precondition(lambda self: self.model)
    @rule(count=st.integers(1, 5))
    def take(self, count: int) -> None:
        sequences = [sequence for sequence, _ in zip(self.queue.candidates(), range(count), strict=False)]
        expected = []
        for _ in range(min(count, sum(map(len, self.model)))):
            waiting = self.model.pop(0)
            expected.append(waiting.pop(0))
            if waiting:
                self.model.append(waiting)
        assert sequences == expected
        self.queue.take(sequences)

    @precondition(lambda self: self.model)
    @rule(data=st.data())
    def drop(self, data: st.DataObject) -> None:
        waiting = data.draw(st.sampled_from(self.model))
        sequence = data.draw(st.sampled_from(waiting))
        self.queue.drop(sequence)
        waiting.remove(sequence)
        self.model = [waiting for waiting in self.model if waiting]

    @rule(now=st.integers(0, 9))
    def expire(self, now: int) -> None:
        def is_expired(sequence: Sequence) -> bool:
            return sequence.deadline_seconds is not None and sequence.deadline_seconds <= now

        expected = {sequence for waiting in self.model for sequence in waiting if is_expired(sequence)}
        assert set(self.queue.drop_expired(now)) == expected
        self.model = [[sequence for sequence in waiting if not is_expired(sequence)] for waiting in self.model]
        self.model = [waiting for waiting in self.model if waiting]

    @invariant()
    def same_content(self) -> None:
        assert len(self.queue) == sum(map(len, self.model))
        assert set(self.queue.candidates()) == {sequence for waiting in self.model for sequence in waiting}


TestQueueMachine = QueueMachine.TestCase
TestQueueMachine.settings = settings(max_examples=60, stateful_step_count=30, derandomize=True, deadline=None)
