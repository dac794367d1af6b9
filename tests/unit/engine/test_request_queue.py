"""Deadlines and cancellations of the sequences that the engine has accepted."""

import gc

from service.domain.errors import Cancelled, DeadlineExceeded
from service.domain.translation import FinishReason
from service.engine.request_queue import RequestQueue
from service.engine.sequence import Sequence
from tests.unit.engine.recorder import new_sequence


def queue_of(*sequences: Sequence) -> RequestQueue:
    queue = RequestQueue(10_000, lambda: 0.0)
    queue.admit(sequences)
    return queue


def unwanted(queue: RequestQueue, now_seconds: float) -> list[Sequence]:
    return [sequence for sequence, _, _ in queue.take_unwanted(now_seconds)]


def test_expired_sequences_come_once_and_earliest_first() -> None:
    late, early, timeless = (new_sequence(deadline_seconds=deadline) for deadline in (3.0, 1.0, None))
    queue = queue_of(late, early, timeless)
    assert queue.next_deadline() == 1.0
    assert unwanted(queue, 0.5) == []
    assert unwanted(queue, 1.0) == [early]
    assert queue.next_deadline() == 3.0
    assert unwanted(queue, 9.0) == [late]
    assert unwanted(queue, 99.0) == []
    assert queue.next_deadline() is None


def test_who_is_given_up_comes_first_and_why_is_said() -> None:
    expired, given_up, unknown = (new_sequence(deadline_seconds=1.0) for _ in range(3))
    queue = queue_of(expired, given_up)
    assert not queue.abort([unknown])
    assert queue.abort([given_up, unknown])
    for sequence, error, reason in queue.take_unwanted(2.0):
        queue.drop(sequence, error, reason)
    told = [(update.sequence, type(update.error), update.finish_reason) for update in queue.take_updates()]
    assert told == [
        (given_up, Cancelled, FinishReason.CANCELLED),
        (expired, DeadlineExceeded, FinishReason.DEADLINE),
    ]


def test_who_has_ended_does_not_expire() -> None:
    sequence = new_sequence(deadline_seconds=1.0)
    queue = queue_of(sequence)
    queue.drop(sequence, Cancelled("enough"), FinishReason.CANCELLED)
    assert queue.next_deadline() is None
    assert unwanted(queue, 2.0) == []


def test_far_deadlines_of_sequences_long_gone_are_not_kept() -> None:
    waiting = [new_sequence(deadline_seconds=1e9) for _ in range(30)]
    queue = queue_of(*waiting)
    for _ in range(2000):
        sequence = new_sequence(deadline_seconds=1e9)
        queue.admit([sequence])
        queue.drop(sequence, Cancelled("enough"), FinishReason.CANCELLED)
        queue.take_updates()
    kept = [each for each in gc.get_objects() if isinstance(each, Sequence) and each.deadline_seconds == 1e9]
    assert len(kept) < 200
    assert set(unwanted(queue, 2e9)) == set(waiting)
