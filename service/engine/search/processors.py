"""The options that change scores before a token is chosen, with the semantics of transformers' logits processors.

A processor changes `scores` (n, V + 1) of a sequence's n rows in place: logits in greedy search and sampling,
log-probabilities in beam search, as in transformers. The last column stands for tokens that a decoder reads but can't
choose; its values mean nothing. `inputs` (n, T) are the decoder's inputs so far: the start token, the model's prefix,
the caller's, and the tokens chosen. Adding an option means adding a function to `_PROCESSORS`.
"""

from collections.abc import Callable
from typing import Final

import numpy as np
from numpy import typing as npt

from service.domain.options import DecodingOptions

Scores = npt.NDArray[np.float32]
Ids = npt.NDArray[np.int64]

_LEAST_PENALTY: Final = 1e-30  # lower ones would make scores infinite


def process(scores: Scores, inputs: Ids, options: DecodingOptions, eos_id: int, num_forced: int) -> None:
    """Apply all options in transformers' order; `num_forced` tokens after the start are the model's own prefix."""
    for processor in _PROCESSORS:
        processor(scores, inputs, options, eos_id, num_forced)


def penalize_repetition(scores: Scores, inputs: Ids, options: DecodingOptions, eos_id: int, num_forced: int) -> None:
    """Divide the positive scores of all tokens in `inputs` by the penalty and multiply the negative ones by it."""
    if options.repetition_penalty != 1.0:
        penalty = np.float32(max(options.repetition_penalty, _LEAST_PENALTY))
        columns = _columns(scores, inputs)
        found = np.take_along_axis(scores, columns, axis=1)
        np.put_along_axis(scores, columns, np.where(found < 0, found * penalty, found / penalty), axis=1)


def forbid_repeated_ngrams(scores: Scores, inputs: Ids, options: DecodingOptions, eos_id: int, num_forced: int) -> None:
    """Forbid each token that would complete a run of `no_repeat_ngram_size` tokens that `inputs` already contain."""
    size, length = options.no_repeat_ngram_size, inputs.shape[1]
    if not 0 < size <= length:
        return
    runs = np.lib.stride_tricks.sliding_window_view(inputs, size, axis=1)  # (n, length + 1 - size, size)
    begun = inputs[:, length + 1 - size :]
    rows, places = (runs[:, :, :-1] == begun[:, None, :]).all(axis=2).nonzero()
    scores[rows, _columns(scores, runs[rows, places, -1])] = -np.inf


def forbid_early_end(scores: Scores, inputs: Ids, options: DecodingOptions, eos_id: int, num_forced: int) -> None:
    """Forbid the end-of-sentence token before the output has `min_output_tokens`, the model's prefix not counted."""
    if inputs.shape[1] - 1 - num_forced < options.min_output_tokens:
        scores[:, eos_id] = -np.inf


def _columns(scores: Scores, token_ids: Ids) -> Ids:
    columns: Ids = np.minimum(token_ids, scores.shape[1] - 1)
    return columns


_PROCESSORS: Final[tuple[Callable[[Scores, Ids, DecodingOptions, int, int], None], ...]] = (
    penalize_repetition,
    forbid_repeated_ngrams,
    forbid_early_end,
)
