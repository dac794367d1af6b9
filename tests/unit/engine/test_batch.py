"""The rows of beams; `tests.faults.engine_machine` moves those of all kinds of sequences."""

from service.engine.batch import Batch
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
