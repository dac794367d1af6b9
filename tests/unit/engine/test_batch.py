from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from service.engine.batch import Batch
from service.engine.sequence import Sequence, SequenceStatus
from tests.unit.engine.recorder import new_sequence

NUM_SLOTS, CAPACITY = 10, 16


def test_the_hypotheses_of_a_beam_move_with_its_rows_and_its_slots_stay() -> None:
    batch = Batch(NUM_SLOTS, CAPACITY)
    first, beam = new_sequence(), new_sequence(beam_size=2)
    for sequence in (first, beam):
        batch.join(sequence, 0)
    state = batch.state
    batch.lengths[1:3] = 4
    state.history[1:3, :4] = [[1, 2, 1, 2], [1, 1, 1, 2]]
    state.cache_ranks[1:3] = [1, 0]
    state.hypotheses["score"][[1, 2, NUM_SLOTS + 2]] = [1.0, 2.0, 3.0]
    state.hypothesis_ids[[1, 2, NUM_SLOTS + 2], 0] = [11, 12, 13]
    assert batch.leave(first) == [(2, 0, 4)]
    assert beam.slots == [1, 0]
    assert state.rows["slot"][:3].tolist() == [2, 1, 0]
    assert state.rows["source_slot"][:2].tolist() == [1, 1]
    assert state.rows["beam_rows"][1, :2].tolist() == [1, 0]
    assert state.history[:2, :4].tolist() == [[1, 1, 1, 2], [1, 2, 1, 2]]
    assert state.cache_ranks[:2].tolist() == [0, 1]
    assert state.hypotheses["score"][[1, 0, NUM_SLOTS]].tolist() == [1.0, 2.0, 3.0]
    assert state.hypothesis_ids[[1, 0, NUM_SLOTS], 0].tolist() == [11, 12, 13]
    batch.check_integrity()


class BatchMachine(RuleBasedStateMachine):
    """Every sequence's rows compared with what was written into them while they were its own."""

    def __init__(self) -> None:
        super().__init__()
        self.batch = Batch(NUM_SLOTS, CAPACITY)
        self.written: dict[Sequence, list[list[int]]] = {}  # per beam, its output
        self.num_written = 1000  # no token twice, nor one of the forced tokens

    @rule(
        beam_size=st.integers(1, 4),
        prefix=st.lists(st.integers(2, 9), max_size=2),
        given=st.lists(st.integers(2, 9), max_size=2),
        max_repeats=st.integers(0, 2),
    )
    def join(self, beam_size: int, prefix: list[int], given: list[int], max_repeats: int) -> None:
        sequence = new_sequence(
            beam_size=beam_size,
            target_prefix_ids=tuple(prefix),
            output_prefix_ids=tuple(given),
            max_repeats=max_repeats,
        )
        if not self.batch.can_join(sequence):
            assert NUM_SLOTS - sum(map(len, self.written.values())) < beam_size
            return
        self.batch.join(sequence, 0)
        self.written[sequence] = [[*prefix, *given] for _ in range(beam_size)]

    @precondition(lambda self: self.written)
    @rule(data=st.data())
    def write(self, data: st.DataObject) -> None:
        sequence = data.draw(st.sampled_from(list(self.written)))
        if self.batch.lengths[sequence.slots[0]] >= self.batch.limits[sequence.slots[0]]:
            return
        for beam, row in enumerate(sequence.slots):
            length = int(self.batch.lengths[row])
            self.num_written += 1
            if length >= len(sequence.forced_ids):
                self.batch.output_ids[row, length] = self.num_written
                self.written[sequence][beam].append(self.num_written)
            self.batch.lengths[row] += 1

    @precondition(lambda self: self.written)
    @rule(data=st.data())
    def leave(self, data: st.DataObject) -> None:
        sequence = data.draw(st.sampled_from(list(self.written)))
        content = {row: self.batch.output_ids[row].tolist() for row in range(self.batch.num_rows)}
        moves = self.batch.leave(sequence)
        assert len(moves) <= sequence.num_slots
        for source, target, length in moves:
            content[target][:length] = content[source][:length]
        assert sequence.status is SequenceStatus.FINISHED
        del self.written[sequence]

    @invariant()
    def books_are_right(self) -> None:
        self.batch.check_integrity()
        assert self.batch.num_rows == sum(map(len, self.written.values()))
        for sequence, beams in self.written.items():
            for row, output in zip(sequence.slots, beams, strict=True):
                assert self.batch.output_ids[row, : len(output)].tolist() == output
                assert self.batch.owner(row) is sequence


TestBatchMachine = BatchMachine.TestCase
TestBatchMachine.settings = settings(max_examples=40, stateful_step_count=40, derandomize=True, deadline=None)
