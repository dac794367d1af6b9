from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from service.engine.sequence import Sequence
from service.engine.waiting import WaitingQueue
from service.translation import Priority
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


def test_source_tokens_are_counted_as_long_as_they_wait() -> None:
    queue = filled(("a", 2), ("b", 3))
    assert queue.num_tokens == 10
    first, second, *_ = queue.candidates()
    queue.take([first])
    queue.drop(second)
    assert queue.num_tokens == 6
    queue.drop(next(queue.candidates()))
    queue.take(list(queue.candidates()))
    assert queue.num_tokens == 0


def test_can_admit_knows_the_bound() -> None:
    queue = WaitingQueue(2)
    assert queue.can_admit(2)
    assert not queue.can_admit(3)
    queue.admit([new_sequence()])
    assert not queue.can_admit(2)
    with pytest.raises(AssertionError, match="can_admit"):
        queue.admit([new_sequence(), new_sequence()])


def test_priorities_share_the_turns_and_none_starves() -> None:
    queue = WaitingQueue(10_000)
    for priority in (Priority.LOW, Priority.NORMAL, Priority.HIGH):
        queue.admit([new_sequence(request_id=priority.value, priority=priority) for _ in range(1000)])
    taken: list[Sequence] = []
    for _ in range(420):
        sequence = next(queue.candidates())
        queue.take([sequence])
        taken.append(sequence)
    counts = Counter(sequence.priority for sequence in taken)
    assert counts == {Priority.HIGH: 320, Priority.NORMAL: 80, Priority.LOW: 20}
    gaps = [index for index, sequence in enumerate(taken) if sequence.priority is Priority.LOW]
    assert max(np.diff(gaps)) <= 21


def test_a_high_priority_goes_before_those_that_came_first() -> None:
    queue = filled(("normal", 3))
    urgent = new_sequence((9, 1), "urgent", priority=Priority.HIGH)
    queue.admit([urgent])
    assert next(queue.candidates()) is urgent


def test_time_without_anybody_waiting_is_not_saved_up() -> None:
    queue = WaitingQueue(10_000)
    queue.admit([new_sequence((number, 1), "a") for number in range(100)])
    for _ in range(50):
        queue.take([next(queue.candidates())])
    queue.admit([new_sequence((number, 1), "low", priority=Priority.LOW) for number in range(50)])
    order = [sequence.priority for sequence, _ in zip(queue.candidates(), range(15), strict=False)]
    assert order.count(Priority.LOW) == 3


@settings(derandomize=True, deadline=None, max_examples=60)
@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(Priority)), max_size=40), st.integers(1, 5))
def test_candidates_are_the_order_of_taking(waiting: list[tuple[str, Priority]], at_once: int) -> None:
    """Taking the first few again and again is taking them in the order that was offered, within each priority."""
    queue = WaitingQueue(100)
    queue.admit([new_sequence((n, 1), request, priority=priority) for n, (request, priority) in enumerate(waiting)])
    assert len(list(queue.candidates())) == len(queue) == len(waiting)
    one_by_one, in_groups = [], list(queue.candidates())
    while queue:
        group = [sequence for sequence, _ in zip(queue.candidates(), range(at_once), strict=False)]
        queue.take(group)
        one_by_one += group
    assert sorted(map(id, one_by_one)) == sorted(map(id, in_groups))
    assert [sequence.priority for sequence in one_by_one] == [sequence.priority for sequence in in_groups]


class QueueMachine(RuleBasedStateMachine):
    """The queue against lists: requests in a list in turn order, each a list of its sequences."""

    def __init__(self) -> None:
        super().__init__()
        self.queue = WaitingQueue(20)
        self.model: list[list[Sequence]] = []

    @rule(request=st.sampled_from("abcde"), count=st.integers(1, 6))
    def admit(self, request: str, count: int) -> None:
        if not self.queue.can_admit(count):
            assert sum(map(len, self.model)) + count > 20
            return
        sequences = [new_sequence(request_id=request) for _ in range(count)]
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

    @invariant()
    def same_content(self) -> None:
        assert len(self.queue) == sum(map(len, self.model))
        assert set(self.queue.candidates()) == {sequence for waiting in self.model for sequence in waiting}


TestQueueMachine = QueueMachine.TestCase
TestQueueMachine.settings = settings(max_examples=60, stateful_step_count=30, derandomize=True, deadline=None)
