"""The searches written the slow, obvious way, one sequence at a time, to hold the engine's against."""

from collections.abc import Callable, Sequence

import numpy as np
from numpy import typing as npt

from service.engine.search.sampling import uniforms
from service.translation import DecodingOptions

LogProbs = Callable[[Sequence[int]], npt.NDArray[np.float32]]  # inputs (start token first) -> (V,)
Result = list[tuple[tuple[int, ...], float]]  # (token ids with their end-of-sentence token, score), best first


def greedy(log_probs: LogProbs, start: Sequence[int], eos_id: int, max_tokens: int, length_penalty: float) -> Result:
    """`start` is the start token and the forced prefix."""
    chosen: list[int] = []
    total = np.float32(0)
    while len(chosen) < max_tokens and (not chosen or chosen[-1] != eos_id):
        scores = log_probs([*start, *chosen])
        chosen.append(int(scores.argmax()))
        total += scores[chosen[-1]]
    return [(tuple(chosen), float(total / np.float32(len(chosen) ** length_penalty)))]


def beam(
    log_probs: LogProbs, start: Sequence[int], eos_id: int, max_tokens: int, length_penalty: float, beam_size: int
) -> Result:
    """Every continuation by every token is scored and sorted in each step."""
    running: list[tuple[np.float32, tuple[int, ...]]] = [(np.float32(0), ())]
    finished: Result = []
    for length in range(1, max_tokens + 1):
        penalty = np.float32(length**length_penalty)
        continued = [
            (total + score, (*ids, token_id))
            for total, ids in running
            for token_id, score in enumerate(log_probs([*start, *ids]))
            if np.isfinite(score)
        ]
        best = sorted(continued, key=lambda item: -item[0])[: 2 * beam_size]
        for total, ids in best[:beam_size]:
            if ids[-1] == eos_id or length == max_tokens:
                finished.append((ids, float(total / penalty)))
        finished = sorted(finished, key=lambda item: -item[1])[:beam_size]
        running = [item for item in best if item[1][-1] != eos_id][:beam_size]
        if len(finished) == beam_size and float(running[0][0] / penalty) <= finished[-1][1]:
            break
    return finished


def sample(log_probs: LogProbs, start: Sequence[int], eos_id: int, options: DecodingOptions) -> Result:
    """Sampling, one token and one candidate after the other; only the chances are the engine's own."""
    assert options.seed is not None
    inputs, total = list(start), np.float32(0)
    for position in range(1, options.max_output_tokens + 1):
        values = log_probs(tuple(inputs))
        order = np.argsort(-values, kind="stable")[: options.top_k]
        weights = np.exp((values[order].astype(np.float64) - values[order[0]]) / np.float64(options.temperature))
        threshold, kept = float(np.float32(options.top_p)) * weights.sum(), 0.0
        num_kept = 0
        while num_kept < len(order) and (not num_kept or kept < threshold) and weights[num_kept] > 0:
            kept += weights[num_kept]
            num_kept += 1
        (chance,) = uniforms(np.array([options.seed], np.uint64), np.array([position], np.int32))
        chosen, passed = 0, weights[0]
        while chosen < num_kept - 1 and passed <= chance * kept:
            chosen += 1
            passed += weights[chosen]
        inputs.append(int(order[chosen]))
        total += values[order[chosen]]
        if inputs[-1] == eos_id:
            break
    chosen_ids = tuple(inputs[len(start) :])
    return [(chosen_ids, float(total / np.float32(len(chosen_ids) ** options.length_penalty)))]
