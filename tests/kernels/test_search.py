"""The choice of tokens in C++ against the one in Python, of mixed batches on the same logits."""

import random
from collections.abc import Sequence as Several
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.domain.translation import FinishReason
from tests.kernels.any_sequence import any_sequence
from tests.kernels.both_searches import Answer, decode_both
from tests.kernels.random_model import RandomModel
from tests.unit.engine.recorder import new_sequence


def reasons(answers: Several[Answer]) -> set[FinishReason]:
    return {each.finish_reason for answer in answers if answer for each in answer}


def plain_model(seed: int = 0, num_tokens: int = 12, **changed: Any) -> RandomModel:
    values: dict[str, Any] = {"has_ties": False, "suppressed": (), "renormalizes": False, "ends": 0.0, "breaks": ()}
    return RandomModel(seed, num_tokens, **(values | changed))


@settings(derandomize=True, deadline=None, max_examples=150)
@given(st.integers(0, 2**32))
def test_both_searches_choose_the_same(search_library: Path, seed: int) -> None:
    rng = random.Random(seed)
    num_tokens = rng.choice((4, 7, 20, 70))
    sequences = [any_sequence(rng, num_tokens) for _ in range(rng.randint(1, 12))]
    renormalizes = rng.random() < 0.3
    model = RandomModel(
        seed,
        num_tokens,
        has_ties=not renormalizes and rng.random() < 0.3,
        suppressed=rng.choice(((), (2,))),
        renormalizes=renormalizes,
        ends=rng.choice((-4.0, 0.0, 3.0)),
        breaks=[number for number in range(len(sequences)) if rng.random() < 0.1],
    )
    decode_both(search_library, sequences, model, num_steps=rng.randint(1, 9), renormalizes=renormalizes, seed=seed)


@pytest.mark.parametrize("beam_size", [1, 2, 4, 8])
def test_every_way_to_end_is_compared(search_library: Path, beam_size: int) -> None:
    rng = random.Random(beam_size)
    asked: dict[str, Any] = {"beam_size": beam_size, "return_scores": True, "num_hypotheses": beam_size}
    sequences = [
        new_sequence((5, 6, 1), max_output_tokens=rng.randint(1, 20), max_repeats=rng.choice((0, 1)), **asked)
        for _ in range(60)
    ]
    answers = decode_both(search_library, sequences, plain_model(num_tokens=4, ends=-2.0, breaks=range(0, 60, 3)))
    assert None in answers
    assert {FinishReason.STOP, FinishReason.LENGTH} <= reasons(answers)
    assert beam_size == 8 or FinishReason.REPETITION in reasons(answers), "of eight beams, enough end in other ways"
