"""Options that change scores: the engine's functions, transformers' processors, and the same written the slow way."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy import typing as npt

from service.domain.options import OPTIONS, DecodingOptions
from service.engine.search.processors import process
from service.engine.search.rescoring import log_softmax, top
from tests.unit.engine.reference_search import processed

EOS_ID = 1
NUM_TOKENS = 12


def options(**changes: Any) -> DecodingOptions:
    return DecodingOptions(1, 1.0, 1, 64, **changes)


def changed(
    scores: npt.NDArray[np.float32], inputs: npt.NDArray[np.int64], asked: DecodingOptions, num_forced: int = 0
) -> npt.NDArray[np.float32]:
    """Return scores (n, V) after all options; the values of the spare column don't matter."""
    with_spare = np.concatenate([scores, np.full((len(scores), 1), 3.0, np.float32)], axis=1)
    process(with_spare, inputs, asked, EOS_ID, num_forced)
    return with_spare[:, :-1]


@settings(derandomize=True, deadline=None, max_examples=300)
@given(
    num_rows=st.integers(1, 4),
    length=st.integers(0, 15),
    num_forced=st.integers(0, 2),
    seed=st.integers(0, 2**32 - 1),
    asked=st.builds(
        options,
        repetition_penalty=st.sampled_from([1.0, 0.3, 1.2, 4.0]),
        no_repeat_ngram_size=st.integers(0, 5),
        min_output_tokens=st.integers(0, 15),
    ),
)
def test_scores_change_as_in_the_slow_reference(
    num_rows: int, length: int, num_forced: int, seed: int, asked: DecodingOptions
) -> None:
    """Some inputs are tokens that can't be chosen: the decoder reads more than it writes."""
    rng = np.random.default_rng(seed)
    scores = rng.normal(0, 3, (num_rows, NUM_TOKENS)).astype(np.float32)
    scores[:, 7] = -np.inf
    inputs = rng.choice([0, 2, 3, 4, 7, NUM_TOKENS + 1], (num_rows, length + 1))
    expected = [
        processed(row, ids, asked, EOS_ID, num_forced) for row, ids in zip(scores, inputs.tolist(), strict=True)
    ]
    np.testing.assert_array_equal(changed(scores, inputs, asked, num_forced), expected)


@pytest.mark.parametrize("size", [1, 2, 3, 7])
@pytest.mark.parametrize("penalty", [0.7, 1.0, 1.3])
@pytest.mark.parametrize("least", [0, 6, 30])
def test_scores_change_as_in_transformers(size: int, penalty: float, least: int) -> None:
    torch: Any = pytest.importorskip("torch")
    from transformers import generation

    rng = np.random.default_rng(size)
    for length in range(1, 20):
        scores = rng.normal(0, 3, (5, NUM_TOKENS)).astype(np.float32)
        inputs = rng.integers(2, 5, (5, length))
        processors = generation.LogitsProcessorList(
            [
                *([generation.RepetitionPenaltyLogitsProcessor(penalty)] if penalty != 1.0 else []),
                generation.NoRepeatNGramLogitsProcessor(size),
                generation.MinNewTokensLengthLogitsProcessor(1, least, EOS_ID),
            ]
        )
        theirs = processors(torch.from_numpy(inputs), torch.from_numpy(scores.copy())).numpy()
        asked = options(repetition_penalty=penalty, no_repeat_ngram_size=size, min_output_tokens=least)
        np.testing.assert_array_equal(changed(scores, inputs, asked), theirs)


def test_the_defaults_change_nothing() -> None:
    assert not options().changes_scores
    scores = np.arange(NUM_TOKENS, dtype=np.float32)[None]
    np.testing.assert_array_equal(changed(scores, np.array([[3, 3, 3]]), options()), scores)


@pytest.mark.parametrize("name", [name for name, option in OPTIONS.items() if option.changes_scores])
def test_each_option_that_changes_scores_does(name: str) -> None:
    asked = options(**{name: 2})
    assert asked.changes_scores
    scores = np.linspace(-3.0, 4.0, NUM_TOKENS, dtype=np.float32)[None]
    assert (changed(scores, np.array([[3, 4, 3]]), asked, num_forced=1) != scores).any()


@pytest.mark.parametrize("penalty", [1e-300, 1e-40, 10.0])
def test_an_extreme_penalty_leaves_scores_finite(penalty: float) -> None:
    scores = np.array([[40.0, -40.0, 0.0, 2.0]], np.float32)
    given = changed(scores, np.array([[0, 1, 2]]), options(repetition_penalty=penalty))
    assert np.isfinite(given).all()
    assert np.isfinite(log_softmax(given)[0, 0])


def test_the_best_come_first_and_of_equals_the_lower_id() -> None:
    scores = np.array([[1.0, 5.0, 5.0, -np.inf, 2.0], [0.0, 0.0, 3.0, 1.0, 3.0]], np.float32)
    ids, best = top(scores, 3)
    assert ids.tolist() == [[1, 2, 4], [2, 4, 3]]
    assert best.tolist() == [[5.0, 5.0, 2.0], [3.0, 3.0, 1.0]]
    assert top(scores, 9)[0].shape == (2, 5)


def test_probabilities_sum_to_one_and_what_is_forbidden_stays_so() -> None:
    scores = np.array([[1.0, 500.0, -np.inf], [-np.inf] * 3, [-900.0, -901.0, -np.inf]], np.float32)
    log_probs = log_softmax(scores)
    assert np.exp(log_probs[[0, 2]]).sum(axis=1) == pytest.approx([1.0, 1.0])
    assert np.isneginf(log_probs[1]).all()
    assert np.isneginf(log_probs[[0, 2], 2]).all()
