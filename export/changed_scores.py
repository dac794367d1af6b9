"""The options that change scores before a token is chosen, in their obvious form; `kernels/src/search/processors.cpp`
is what serves."""

from collections.abc import Sequence

import numpy as np
from numpy import typing as npt

from service.domain.options import DecodingOptions

_LEAST_PENALTY = 1e-30  # lower ones would make scores infinite


def changed_scores(
    scores: npt.NDArray[np.floating], inputs: Sequence[int], options: DecodingOptions, eos_id: int, num_forced: int
) -> npt.NDArray[np.floating]:
    """Return the scores (V,) of what follows `inputs`: the start token, `num_forced` tokens of the model's own prefix,
    and the output. With the semantics of transformers' logits processors."""
    changed = scores.copy()
    if options.repetition_penalty != 1.0:
        seen = sorted({token_id for token_id in inputs if token_id < len(scores)})
        penalty = max(options.repetition_penalty, _LEAST_PENALTY)
        changed[seen] = np.where(scores[seen] < 0, scores[seen] * penalty, scores[seen] / penalty)
    if size := options.no_repeat_ngram_size:
        begun = tuple(inputs[len(inputs) + 1 - size :]) if size > 1 else ()
        for start in range(len(inputs) + 1 - size):
            *before, last = inputs[start : start + size]
            if tuple(before) == begun and last < len(scores):
                changed[last] = -np.inf
    if len(inputs) - 1 - num_forced < options.min_output_tokens:
        changed[eos_id] = -np.inf
    return changed
