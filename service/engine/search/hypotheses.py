"""Converts a strategy's result into the hypothesis that its caller gets."""

from service.domain.translation import FinishReason
from service.engine.search.scores import normalized
from service.engine.sequence import DecodedHypothesis, Sequence


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
