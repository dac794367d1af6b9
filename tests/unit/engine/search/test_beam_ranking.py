import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.engine.search.beam_ranking import BeamHypotheses, Continuations, inherit, rank
from service.engine.search.hypotheses import normalized

EOS_ID = 1


def first(continuations: Continuations) -> list[tuple[int, int, float]]:
    """Return parent, token and summed log-probability of each continuation of the first search."""
    return list(zip(*(part[0].tolist() for part in continuations), strict=True))


def test_rank_sums_sorts_and_parts_what_ends_from_what_goes_on() -> None:
    beams = np.array([[-1.0, -2.0]], np.float32)
    ids = np.array([[[1, 7, 8, 9], [5, 1, 6, 7]]])
    log_probs = np.array([[[-0.5, -1.0, -4.0, -9.0], [-0.25, -0.5, -4.0, -9.0]]], np.float32)
    top, running = rank(beams, ids, log_probs, EOS_ID)
    assert first(top) == [(0, 1, -1.5), (0, 7, -2.0)]
    assert first(running) == [(0, 7, -2.0), (1, 5, -2.25)]


def test_at_first_all_continuations_come_from_the_one_beam_that_counts() -> None:
    beams = np.array([[0.0, -np.inf]], np.float32)
    ids = np.array([[[EOS_ID, 5, 6, 7], [EOS_ID, 5, 6, 7]]])
    log_probs = np.array([[[-1, -2, -3, -4]] * 2], np.float32)
    top, running = rank(beams, ids, log_probs, EOS_ID)
    assert not top.parents.any()
    assert not running.parents.any()


def test_ties_go_to_the_earlier_beam_and_candidate() -> None:
    ids = np.array([[[4, 5, 6, 7], [8, 9, 10, 11]]])
    _, running = rank(np.zeros((1, 2), np.float32), ids, np.zeros((1, 2, 4), np.float32), EOS_ID)
    assert running.token_ids.tolist() == [[4, 5]]


def test_searches_are_ranked_each_by_itself() -> None:
    rng = np.random.default_rng(0)
    beams, log_probs = rng.normal(size=(5, 3)).astype(np.float32), rng.normal(size=(5, 3, 6)).astype(np.float32)
    ids = rng.integers(0, 9, (5, 3, 6))
    together = rank(beams, ids, log_probs, EOS_ID)
    for search in range(5):
        alone = rank(beams[search : search + 1], ids[search : search + 1], log_probs[search : search + 1], EOS_ID)
        for kind, parts in zip(alone, together, strict=True):
            assert [part[search].tolist() for part in parts] == [part[0].tolist() for part in kind]


def test_the_best_hypotheses_are_kept() -> None:
    hypotheses = BeamHypotheses(beam_size=2)
    hypotheses.add(-2.0, (7, 1))
    hypotheses.add(-1.0, (7, 8, 1))
    hypotheses.add(-1.3, (9, 8, 1))
    assert [finished.output_ids for finished in hypotheses.finished] == [(7, 8, 1), (9, 8, 1)]


def test_those_that_were_given_up_come_last() -> None:
    hypotheses = BeamHypotheses(beam_size=3)
    hypotheses.give_up(-0.2, (7, 7), excess=1)
    hypotheses.give_up(-0.1, (8, 8), excess=1)
    assert [finished.text_ids for finished in hypotheses.best(3)] == [(8,), (7,)]
    hypotheses.add(-9.0, (9, 1))
    assert [finished.text_ids for finished in hypotheses.best(2)] == [(9, 1), (8,)]
    assert not hypotheses.is_done(-100.0), "they don't count as finished"


def test_a_search_ends_when_the_best_beam_cannot_beat_the_worst_finished_one() -> None:
    hypotheses = BeamHypotheses(beam_size=2)
    hypotheses.add(-1.0, (7, 1))
    assert not hypotheses.is_done(-30.0), "too few are finished"
    hypotheses.add(-2.0, (8, 1))
    assert not hypotheses.is_done(-1.7)
    assert hypotheses.is_done(-2.0), "equal is not better"


@pytest.mark.parametrize("length_penalty", [-10.0, -1.0, 0.0, 0.6, 1.0, 10.0])
def test_normalized_stays_finite_at_the_extremes(length_penalty: float) -> None:
    assert np.isfinite(normalized(-5000.0, 512, length_penalty))


@st.composite
def families(draw: st.DrawFn) -> tuple[list[list[int]], list[list[int]]]:
    """Generate rows of a few searches, and the parents of their next beams."""
    num_searches, num_beams = draw(st.integers(1, 4)), draw(st.integers(2, 8))
    rows = draw(st.permutations(range(num_searches * num_beams)))
    slots = [rows[search * num_beams : (search + 1) * num_beams] for search in range(num_searches)]
    parent = st.integers(0, num_beams - 1)
    parents = [draw(st.lists(parent, min_size=num_beams, max_size=num_beams)) for _ in range(num_searches)]
    return slots, parents


@settings(derandomize=True, deadline=None)
@given(families())
def test_inherit_gives_each_beam_a_row_with_its_parents_content(case: tuple[list[list[int]], list[list[int]]]) -> None:
    slots, parents = case
    content = {row: row for search in slots for row in search}
    rows, sources, targets = inherit(np.array(slots), np.array(parents))
    assert [sorted(search) for search in rows.tolist()] == [sorted(search) for search in slots]
    assert not set(sources.tolist()) & set(targets.tolist())
    for source, target in zip(sources.tolist(), targets.tolist(), strict=True):
        content[target] = content[source]
    for search, placed in enumerate(rows.tolist()):
        assert [content[row] for row in placed] == [slots[search][parent] for parent in parents[search]]
    assert len(sources) == sum(len(each) - len(set(each)) for each in parents), "no copy more than needed"
