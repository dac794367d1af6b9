from collections import Counter
from collections.abc import Hashable, Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from service.domain.call import Origin
from service.domain.translation import Priority
from service.engine.sequence import Sequence
from service.engine.waiting import WaitingQueue
from tests.unit.engine.recorder import new_sequence


def filled(*requests: tuple[str, int]) -> WaitingQueue:
    queue = WaitingQueue(10_000)
    for request_id, count in requests:
        queue.admit([new_sequence((number, 1), request_id) for number in range(count)])
    return queue


def of(*origin: Hashable, count: int = 1, request_id: str = "r") -> list[Sequence]:
    return [new_sequence((number, 1), request_id, origin=origin) for number in range(count)]


def calls_of(caller: str, num_calls: int, each: int = 1) -> list[Sequence]:
    return [sequence for call in range(num_calls) for sequence in of(caller, f"{caller}-1", call, count=each)]


def served(queue: WaitingQueue) -> Iterator[Sequence]:
    """Yield sequences as they are taken, one by one."""
    while queue.num_sequences:
        sequence = next(queue.candidates())
        queue.take([sequence])
        yield sequence


ORIGINS = st.tuples(st.sampled_from("ab"), st.sampled_from("wxyz"), st.integers(1, 3))


def test_no_more_are_admitted_than_there_is_room_for() -> None:
    queue = WaitingQueue(2)
    assert queue.room(("a",)) == 2
    queue.admit([new_sequence()])
    assert queue.room(("a",)) == 1
    with pytest.raises(AssertionError, match="without room"):
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
    assert taken[0].priority is Priority.HIGH, "it goes before those that came first"
    counts = Counter(sequence.priority for sequence in taken)
    assert counts == {Priority.HIGH: 320, Priority.NORMAL: 80, Priority.LOW: 20}
    gaps = [index for index, sequence in enumerate(taken) if sequence.priority is Priority.LOW]
    assert max(np.diff(gaps)) <= 21


def test_time_without_anybody_waiting_is_not_saved_up() -> None:
    queue = WaitingQueue(10_000)
    queue.admit([new_sequence((number, 1), "a") for number in range(100)])
    for _ in range(50):
        queue.take([next(queue.candidates())])
    queue.admit([new_sequence((number, 1), "low", priority=Priority.LOW) for number in range(50)])
    order = [sequence.priority for sequence, _ in zip(queue.candidates(), range(15), strict=False)]
    assert order.count(Priority.LOW) == 3


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(Priority)), max_size=40), st.integers(1, 5))
def test_candidates_are_the_order_of_taking(waiting: list[tuple[str, Priority]], at_once: int) -> None:
    """Repeatedly taking the first few equals taking them in the order offered, within each priority."""
    queue = WaitingQueue(100)
    queue.admit([new_sequence((n, 1), request, priority=priority) for n, (request, priority) in enumerate(waiting)])
    assert len(list(queue.candidates())) == queue.num_sequences == len(waiting)
    one_by_one, in_groups = [], list(queue.candidates())
    while queue.num_sequences:
        group = [sequence for sequence, _ in zip(queue.candidates(), range(at_once), strict=False)]
        queue.take(group)
        one_by_one += group
    assert sorted(map(id, one_by_one)) == sorted(map(id, in_groups))
    assert [sequence.priority for sequence in one_by_one] == [sequence.priority for sequence in in_groups]


def test_a_caller_with_a_thousand_calls_delays_another_by_one() -> None:
    queue = WaitingQueue(10_000)
    queue.admit([*calls_of("greedy", 1000), *calls_of("small", 1)])
    first = [sequence.origin[0] for _, sequence in zip(range(3), served(queue), strict=False)]
    assert first == ["greedy", "small", "greedy"]
    assert queue.num_ahead(Priority.NORMAL, ("third", "third-1", "new")) == 1
    assert queue.num_ahead(Priority.NORMAL, ("greedy", "greedy-1", "new")) == 998
    assert queue.num_ahead(Priority.NORMAL, ("greedy", "greedy-2", "new")) == 1, "connections of a host take turns"
    assert queue.num_calls_ahead(Priority.NORMAL) == 998


@given(st.lists(st.tuples(ORIGINS, st.integers(1, 6)), max_size=12), ORIGINS, st.integers(1, 8), st.integers(0, 9))
def test_nobody_has_more_ahead_than_estimated(
    calls: list[tuple[Origin, int]], caller: Origin, count: int, num_served: int
) -> None:
    queue = WaitingQueue(1000)
    for origin, size in calls:
        queue.admit(of(*origin, count=size))
    for _ in zip(range(num_served), served(queue), strict=False):
        pass
    newcomer = (*caller[:2], "new")
    is_new = all(sequence.origin[0] != caller[0] for sequence in queue.candidates())
    ahead = queue.num_ahead(Priority.NORMAL, newcomer, count)
    sequences = of(*newcomer, count=count)
    queue.admit(sequences)
    really = list(queue.candidates()).index(sequences[-1]) - (count - 1)
    assert really <= ahead
    assert really == ahead or not is_new


def test_who_fills_the_queue_leaves_room_for_others_and_less_for_each_next() -> None:
    queue = WaitingQueue(1000)
    greedy = ("A", 1)
    while queue.room((*greedy, "next")):
        queue.admit(of(*greedy, queue.num_sequences))
    assert queue.num_sequences == 876
    assert queue.room(("A", 2, "new")) == 116, "another connection of the host"
    assert queue.room(("B", 1, "new")) == 124, "whoever has nobody waiting may have all that is free"
    while queue.room(("B", 1, "next")):
        queue.admit(of("B", 1, queue.num_sequences))
    assert queue.num_sequences == 984
    assert queue.room(("C", 1, "new")) == 16
    assert not queue.room((*greedy, "next"))
    assert WaitingQueue(1000).room((*greedy, "first")) == 1000, "a single call may be as large as the queue"


@pytest.mark.parametrize("max_waiting", [3, 10, 40, 4096])
def test_nobody_alone_fills_a_queue_with_single_calls(max_waiting: int) -> None:
    queue, greedy = WaitingQueue(max_waiting), ("A", 1)
    while queue.room((*greedy, "next")):
        queue.admit(of(*greedy, queue.num_sequences))
    assert queue.num_sequences >= max_waiting // 2
    assert queue.room(("A", 2, "new"))
    assert queue.room(("B", 1, "new"))


@given(st.lists(st.tuples(ORIGINS, st.integers(1, 30), st.sampled_from(Priority)), max_size=40))
def test_room_keeps_the_bound(calls: list[tuple[Origin, int, Priority]]) -> None:
    queue = WaitingQueue(50)
    for origin, count, priority in calls:
        room = queue.room(origin)
        assert 0 <= room <= 50 - queue.num_sequences
        queue.admit([new_sequence((1,), origin=origin, priority=priority) for _ in range(min(count, room))])
        queue.check_integrity()


class QueueMachine(RuleBasedStateMachine):
    """The queue compared with a nested list of those who take turns, each a key and such a list, or a sequence."""

    def __init__(self) -> None:
        super().__init__()
        self.queue = WaitingQueue(20)
        self.model: list[tuple[Hashable, list]] = []  # type: ignore[type-arg]

    @rule(origin=ORIGINS, count=st.integers(1, 6), request_id=st.sampled_from("abc"))
    def admit(self, origin: Origin, count: int, request_id: str) -> None:
        """No id that a caller chooses matters."""
        if len(_sequences(self.model)) + count > 20:
            return
        sequences = of(*origin, count=count, request_id=request_id)
        self.queue.admit(sequences)
        parts = self.model
        for key in origin:
            found = [part for each, part in parts if each == key]
            if not found:
                found = [[]]
                parts.append((key, found[0]))
            (parts,) = found
        parts += [(sequence, []) for sequence in sequences]

    @precondition(lambda self: self.model)
    @rule(count=st.integers(1, 5))
    def take(self, count: int) -> None:
        sequences = [sequence for sequence, _ in zip(self.queue.candidates(), range(count), strict=False)]
        expected = [_take(self.model) for _ in range(min(count, len(_sequences(self.model))))]
        assert sequences == expected
        self.queue.take(sequences)

    @precondition(lambda self: self.model)
    @rule(data=st.data())
    def drop(self, data: st.DataObject) -> None:
        sequence = data.draw(st.sampled_from(_sequences(self.model)))
        self.queue.drop(sequence)
        self.model = _without(self.model, sequence)

    @invariant()
    def same_content(self) -> None:
        waiting = _sequences(self.model)
        assert self.queue.num_sequences == len(waiting)
        assert sorted(map(id, self.queue.candidates())) == sorted(map(id, waiting))
        assert all(sequence in self.queue for sequence in waiting)
        self.queue.check_integrity()


def _sequences(parts: list) -> list[Sequence]:  # type: ignore[type-arg]
    return [sequence for key, part in parts for sequence in ([key] if isinstance(key, Sequence) else _sequences(part))]


def _take(parts: list) -> Sequence:  # type: ignore[type-arg]
    """Take from the first entry, which goes to the end if it has anything left."""
    key, part = parts.pop(0)
    if isinstance(key, Sequence):
        return key
    sequence = _take(part)
    if part:
        parts.append((key, part))
    return sequence


def _without(parts: list, sequence: Sequence) -> list:  # type: ignore[type-arg]
    left = [(key, _without(part, sequence)) for key, part in parts if key is not sequence]
    return [(key, part) for key, part in left if part or isinstance(key, Sequence)]


TestQueueMachine = QueueMachine.TestCase
TestQueueMachine.settings = settings(max_examples=60, stateful_step_count=30, derandomize=True, deadline=None)
