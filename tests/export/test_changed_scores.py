"""Scores that options change, against transformers' own processors and the reference of the engine's tests."""

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers import generation

from export.fidelity import changed_scores
from service.domain.options import DecodingOptions
from tests.unit.engine.reference_search import processed

EOS_ID = 1
NUM_TOKENS = 12


def options(**changes: Any) -> DecodingOptions:
    return DecodingOptions(1, 1.0, 1, 64, **changes)


@given(
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
def test_scores_change_as_in_the_reference(length: int, num_forced: int, seed: int, asked: DecodingOptions) -> None:
    """Some inputs are tokens that can't be chosen: the decoder reads more than it writes."""
    rng = np.random.default_rng(seed)
    scores = rng.normal(0, 3, NUM_TOKENS).astype(np.float32)
    scores[7] = -np.inf
    inputs = rng.choice([0, 2, 3, 4, 7, NUM_TOKENS + 1], length + 1).tolist()
    found = changed_scores(scores, inputs, asked, EOS_ID, num_forced)
    np.testing.assert_allclose(found, processed(scores, inputs, asked, EOS_ID, num_forced), rtol=1e-6)


@pytest.mark.parametrize("size", [1, 2, 3, 7])
@pytest.mark.parametrize("penalty", [0.7, 1.0, 1.3])
@pytest.mark.parametrize("least", [0, 6, 30])
def test_scores_change_as_in_transformers(size: int, penalty: float, least: int) -> None:
    rng = np.random.default_rng(size)
    asked = options(repetition_penalty=penalty, no_repeat_ngram_size=size, min_output_tokens=least)
    for length in range(1, 20):
        scores, inputs = rng.normal(0, 3, NUM_TOKENS), rng.integers(2, 5, length).tolist()
        processors = generation.LogitsProcessorList(
            [
                *([generation.RepetitionPenaltyLogitsProcessor(penalty)] if penalty != 1.0 else []),
                generation.NoRepeatNGramLogitsProcessor(size),
                generation.MinNewTokensLengthLogitsProcessor(1, least, EOS_ID),
            ]
        )
        theirs = processors(torch.tensor([inputs]), torch.from_numpy(scores[None].copy()))[0]
        np.testing.assert_allclose(changed_scores(scores, inputs, asked, EOS_ID, 0), theirs.numpy(), rtol=1e-12)
