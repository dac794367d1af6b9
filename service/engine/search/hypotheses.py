"""The score of a hypothesis, and the hypothesis that a caller gets of a row."""

import math

import numpy as np

from service.domain.translation import FinishReason
from service.engine.batch import Batch
from service.engine.sequence import DecodedHypothesis, Sequence


def normalized(log_prob: float, length: int, length_penalty: float) -> float:
    """Divide a summed log-probability by `length ** length_penalty`, in float32 as transformers does.

    `length` counts all tokens after the start token, including the model's forced prefix, such as M2M100's language
    token, and the end-of-sentence token. The caller's own prefix does not count, like transformers'
    `decoder_input_ids`.
    """
    return float(np.float32(log_prob) / np.float32(length**length_penalty))


def score(sequence: Sequence, log_prob: float, length: int) -> float:
    """Normalize the summed log-probability of an output of `length` tokens, forced ones included; the caller's own
    prefix does not count."""
    return normalized(log_prob, length - len(sequence.output_prefix_ids), sequence.options.length_penalty)


def decoded(
    sequence: Sequence, normalized_score: float, output_ids: tuple[int, ...], excess: int, eos_id: int
) -> DecodedHypothesis:
    """Strip the model's prefix, the end-of-sentence token, and the last `excess` tokens, which repeat too often."""
    chosen = output_ids[len(sequence.target_prefix_ids) :]
    if excess:
        return DecodedHypothesis(chosen[:-excess], normalized_score, FinishReason.REPETITION)
    if chosen[-1] == eos_id:
        return DecodedHypothesis(chosen[:-1], normalized_score, FinishReason.STOP)
    return DecodedHypothesis(chosen, normalized_score, sequence.limit_reason)


def decoded_row(batch: Batch, sequence: Sequence, excess: int, eos_id: int) -> DecodedHypothesis:
    """Return the hypothesis of an ended sequence of one row; `excess` counts only if it did not end by itself."""
    (row,) = sequence.slots
    output_ids = batch.state.output(row)
    own_score, options, is_cut = math.nan, sequence.options, output_ids[-1] != eos_id
    if options.return_scores:
        is_at_limit = len(output_ids) == batch.limits[row]
        length = len(output_ids) + (is_cut and is_at_limit and options.forces_end)
        own_score = score(sequence, float(batch.log_probs[row]), length)
    return decoded(sequence, own_score, output_ids, excess if is_cut else 0, eos_id)
