import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from service.bundle import fused_io
from service.engine.batch import Batch
from service.engine.sequence import Sequence, SequenceStatus
from tests.unit.engine.recorder import new_sequence

NUM_SLOTS, CAPACITY = 10, 16


def test_the_last_row_closes_the_gap() -> None:
    batch = Batch(NUM_SLOTS, CAPACITY)
    first, second, third = (new_sequence((number, 1)) for number in range(3))
    for sequence in (first, second, third):
        batch.join(sequence, 0)
    batch.lengths[:3] = [5, 6, 7]
    assert batch.leave(first) == [(2, 0, 7)]
    assert (third.slots, second.slots, first.slots) == ([0], [1], [])
    assert batch.lengths[:2].tolist() == [7, 6]


def test_a_leaving_beam_moves_no_row_twice_and_none_of_its_own() -> None:
    batch = Batch(NUM_SLOTS, CAPACITY)
    beam, single = new_sequence(beam_size=3), new_sequence()
    batch.join(beam, 0)
    batch.join(single, 0)
    assert batch.leave(beam) == [(3, 0, 0)]
    assert single.slots == [0]
    batch.check_integrity()


def test_check_integrity_sees_a_row_owned_twice() -> None:
    batch = Batch(NUM_SLOTS, CAPACITY)
    one, other = new_sequence(), new_sequence()
    batch.join(one, 0)
    batch.join(other, 0)
    batch.check_integrity()
    other.slots = [0]
    with pytest.raises(AssertionError, match="owned rows"):
        batch.check_integrity()


def test_a_row_says_all_that_an_operator_must_know() -> None:
    batch = Batch(NUM_SLOTS, CAPACITY)
    batch.join(new_sequence(), 0)
    sequence = new_sequence(
        (5, 6, 1), beam_size=2, max_output_tokens=9, length_penalty=0.5, return_scores=True, stops_early=True,
        target_prefix_ids=(7,), output_prefix_ids=(8, 9), max_repeats=3, repetition_penalty=1.5,
        no_repeat_ngram_size=2, min_output_tokens=4,
    )  # fmt: skip
    batch.join(sequence, 3)
    expected = {
        "token_id": 3, "seed": 0, "length": 0, "source_length": 3, "forced_length": 3, "limit": 10, "source_slot": 1,
        "max_repeats": 3, "top_k": 64, "temperature": 0.0, "top_p": 1.0, "width": 2, "caller_prefix": 2,
        "model_prefix": 1, "no_repeat_ngram_size": 2, "min_output_tokens": 4, "length_penalty": 0.5,
        "repetition_penalty": 1.5, "flags": fused_io.WANTS_SCORE | fused_io.STOPS_EARLY, "status": fused_io.RUNNING,
        "excess": 0, "num_finished": 0, "num_given_up": 0, "runs": [0] * 16,
    }  # fmt: skip
    of_rank: dict[str, list[object]] = {"rank": [0, 1], "slot": [1, 2], "log_prob": [0.0, -np.inf]}
    for rank, row in enumerate(sequence.slots):
        found = {name: batch.state.rows[name][row].tolist() for name in fused_io.ROW.names or ()}
        assert found.pop("beam_rows")[:2] == [1, 2]
        assert {name: found.pop(name) for name in of_rank} == {name: values[rank] for name, values in of_rank.items()}
        assert found == expected
        assert batch.output_ids[row, :3].tolist() == [7, 8, 9]


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


@pytest.mark.parametrize(
    ("field", "row", "problem"),
    [("slot", 0, "no permutation"), ("source_slot", 1, "have the sources"), ("rank", 1, "have the ranks")],
)
def test_check_integrity_sees_a_field_of_a_row_that_is_another_rows(field: str, row: int, problem: str) -> None:
    batch = Batch(NUM_SLOTS, CAPACITY)
    batch.join(new_sequence(beam_size=2), 0)
    batch.check_integrity()
    batch.state.rows[field][row] = batch.state.rows[field][row - 1] + (field == "source_slot")
    with pytest.raises(AssertionError, match=problem):
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
        for source, target, length in self.batch.leave(sequence):
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
