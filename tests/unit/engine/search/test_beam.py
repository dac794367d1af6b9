import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.engine.search.beam import BeamHypotheses, Continuation, inherit, rank
from service.engine.search.scores import normalized

EOS_ID = 1


def test_rank_sums_sorts_and_parts_what_ends_from_what_goes_on() -> None:
    beams = np.array([[-1.0, -2.0]], np.float32)
    ids = np.array([[[1, 7, 8, 9], [5, 1, 6, 7]]])
    log_probs = np.array([[[-0.5, -1.0, -4.0, -9.0], [-0.25, -0.5, -4.0, -9.0]]], np.float32)
    (ranking,) = rank(beams, ids, log_probs, EOS_ID)
    assert ranking.top == [Continuation(0, 1, -1.5), Continuation(0, 7, -2.0)]
    assert ranking.running == [Continuation(0, 7, -2.0), Continuation(1, 5, -2.25)]


def test_at_first_all_continuations_come_from_the_one_beam_that_counts() -> None:
    beams = np.array([[0.0, -np.inf]], np.float32)
    ids = np.array([[[EOS_ID, 5, 6, 7], [EOS_ID, 5, 6, 7]]])
    log_probs = np.array([[[-1, -2, -3, -4]] * 2], np.float32)
    (ranking,) = rank(beams, ids, log_probs, EOS_ID)
    assert [continuation.parent for continuation in (*ranking.top, *ranking.running)] == [0, 0, 0, 0]


def test_ties_go_to_the_earlier_beam_and_candidate() -> None:
    ids = np.array([[[4, 5, 6, 7], [8, 9, 10, 11]]])
    (ranking,) = rank(np.zeros((1, 2), np.float32), ids, np.zeros((1, 2, 4), np.float32), EOS_ID)
    assert [continuation.token_id for continuation in ranking.running] == [4, 5]


def test_the_best_hypotheses_are_kept_by_normalised_score() -> None:
    hypotheses = BeamHypotheses(beam_size=2, length_penalty=1.0)
    hypotheses.add(-4.0, 2, (7, 1))
    hypotheses.add(-3.0, 3, (7, 8, 1))
    hypotheses.add(-3.9, 3, (9, 8, 1))
    assert [finished.output_ids for finished in hypotheses.finished] == [(7, 8, 1), (9, 8, 1)]
    assert hypotheses.finished[0].score == -1.0


def test_a_search_ends_when_the_best_beam_cannot_beat_the_worst_finished_one() -> None:
    hypotheses = BeamHypotheses(beam_size=2, length_penalty=1.0)
    hypotheses.add(-2.0, 2, (7, 1))
    assert not hypotheses.is_done(-100.0, 3), "too few are finished"
    hypotheses.add(-4.0, 2, (8, 1))
    assert not hypotheses.is_done(-5.0, 3)
    assert hypotheses.is_done(-6.0, 3), "equal is not better"


@pytest.mark.parametrize("length_penalty", [-10.0, -1.0, 0.0, 0.6, 1.0, 10.0])
def test_normalized_stays_finite_at_the_extremes(length_penalty: float) -> None:
    assert np.isfinite(normalized(-5000.0, 512, length_penalty))


@settings(derandomize=True, deadline=None)
@given(
    st.integers(2, 8).flatmap(
        lambda k: st.tuples(st.permutations(range(k)), st.lists(st.integers(0, k - 1), min_size=k, max_size=k))
    )
)
def test_inherit_gives_each_beam_a_row_with_its_parents_content(case: tuple[list[int], list[int]]) -> None:
    slots, parents = case
    content = {row: row for row in slots}
    rows, copies = inherit(slots, parents)
    assert sorted(rows) == sorted(slots)
    assert not {source for source, _ in copies} & {target for _, target in copies}
    for source, target in copies:
        content[target] = content[source]
    assert [content[row] for row in rows] == [slots[parent] for parent in parents]
    assert len(copies) == len(parents) - len(set(parents)), "no copy more than needed"
