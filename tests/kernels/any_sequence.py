"""Sequences of random options."""

import random
from typing import Any, Final

from service.engine.sequence import Sequence
from tests.unit.engine.recorder import new_sequence

PENALTIES: Final = (0.0, 1.0, 0.75, -1.5, 2.0)  # exact in float32


def any_sequence(rng: random.Random, num_tokens: int) -> Sequence:
    """Return a sequence of random options; small vocabularies make repetitions likely."""
    beam_size = rng.choice((1, 1, 1, 2, 3, 4, 8))
    asked: dict[str, Any] = {}
    if beam_size == 1 and rng.random() < 0.5:
        asked |= {"temperature": rng.choice((0.0009765625, 0.5, 1.0, 4.0)), "top_k": rng.choice((1, 2, 5, 64))}
        asked |= {"top_p": rng.choice((1.0, 0.5, 0.0625)), "seed": rng.getrandbits(64)}
    if rng.random() < 0.3:
        asked["repetition_penalty"] = rng.choice((0.5, 1.25, 2.0))
    if rng.random() < 0.3:
        asked["no_repeat_ngram_size"] = rng.choice((1, 2, 3))
    if rng.random() < 0.3:
        asked["min_output_tokens"] = rng.choice((1, 4, 12))
    prefix = tuple(rng.choices(range(num_tokens + 3), k=rng.choice((0, 0, 1, 4))))  # some can't be chosen
    return new_sequence(
        (*rng.choice(((5, 6, 7), (5, 5, 5, 5), (3, 4, 3, 4, 3, 4))), 1),
        beam_size=beam_size,
        num_hypotheses=rng.randint(1, beam_size),
        max_output_tokens=rng.randint(1, 24) + len(prefix),
        length_penalty=rng.choice(PENALTIES),
        return_scores=rng.random() < 0.5,
        target_prefix_ids=rng.choice(((), (), (9,), (9, 1))),
        output_prefix_ids=prefix,
        max_repeats=rng.choice((0, 1, 1, 2, 4)),
        stops_early=rng.random() < 0.3,
        narrows=rng.random() < 0.3,
        forces_end=rng.random() < 0.3,
        **asked,
    )
