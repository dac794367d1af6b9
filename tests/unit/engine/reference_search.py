"""Greedy and beam search written the slow, obvious way, one sequence at a time, to hold the engine's against."""

from collections.abc import Callable, Sequence

import numpy as np
from numpy import typing as npt

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
