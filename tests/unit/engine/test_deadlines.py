from service.engine.deadlines import Deadlines
from service.engine.sequence import SequenceStatus
from tests.unit.engine.recorder import new_sequence


def test_expired_sequences_come_once_and_earliest_first() -> None:
    deadlines = Deadlines()
    late, early, timeless = (new_sequence(deadline_seconds=deadline) for deadline in (3.0, 1.0, None))
    for sequence in (late, early, timeless):
        deadlines.add(sequence)
    assert deadlines.pop_expired(0.5) == []
    assert deadlines.pop_expired(1.0) == [early]
    assert deadlines.pop_expired(9.0) == [late]
    assert deadlines.pop_expired(99.0) == []


def test_who_has_finished_does_not_expire() -> None:
    deadlines = Deadlines()
    sequence = new_sequence(deadline_seconds=1.0)
    deadlines.add(sequence)
    sequence.status = SequenceStatus.FINISHED
    assert deadlines.pop_expired(2.0) == []


def test_far_deadlines_of_sequences_long_gone_are_not_kept() -> None:
    deadlines = Deadlines()
    waiting = [new_sequence(deadline_seconds=1e9) for _ in range(30)]
    for sequence in waiting:
        deadlines.add(sequence)
    for _ in range(2000):
        sequence = new_sequence(deadline_seconds=1e9)
        deadlines.add(sequence)
        sequence.status = SequenceStatus.FINISHED
    assert len(deadlines) < 200
    assert set(deadlines.pop_expired(2e9)) == set(waiting)
