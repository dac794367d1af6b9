"""The searches in their slow, obvious form, one sequence at a time, as a reference for the engine's."""

from collections.abc import Callable, Sequence

import numpy as np
from numpy import typing as npt

from service.domain.options import DecodingOptions
from service.engine.sequence import mixed

LogProbs = Callable[[Sequence[int]], npt.NDArray[np.float32]]  # inputs (start token first) -> (V,)
Result = list[tuple[tuple[int, ...], float]]  # (token ids with their end-of-sentence token, score), best first


def search(
    log_probs: LogProbs,
    start: Sequence[int],
    eos_id: int,
    options: DecodingOptions,
    num_given: int = 0,
    log_total: float = 0.0,
    renormalizes: bool = False,
) -> Result:
    """Search as `options` ask; `start` is the start token and forced tokens, the last `num_given` given by the caller.

    `options.max_output_tokens` does not count those. An excess repetition is still included. Logits are the
    log-probabilities and `log_total`. Beams are scored by changed scores as they are, unless the model `renormalizes`.
    """
    how = sample if options.is_sampled else greedy if options.beam_size == 1 else beam
    counted = start[: len(start) - num_given]

    def of_given(inputs: Sequence[int]) -> npt.NDArray[np.float32]:
        seen = [*start, *inputs[len(counted) :]]
        if not options.changes_scores:
            return log_probs(seen)
        is_beam = options.beam_size > 1
        before = log_probs(seen) if is_beam else log_probs(seen) + np.float32(log_total)
        scores = processed(before, seen, options, eos_id, len(counted) - 1)
        if is_beam and (not renormalizes or np.isneginf(scores).all()):
            return scores
        if np.isneginf(scores).all():
            scores[eos_id] = 0.0
        with np.errstate(over="ignore", divide="ignore"):
            return np.asarray(scores - np.log(np.exp(scores.astype(np.float64)).sum()), np.float32)

    return how(of_given, counted, eos_id, options, start[1:])[: options.num_hypotheses]


def excess(output_ids: Sequence[int], num_forced: int, max_repeats: int) -> int:
    """Return the length of the shortest run at the end that the model repeats more than `max_repeats` times in a row.

    Its first occurrence may have been forced.
    """
    for period in range(1, 17):
        again = range(len(output_ids) - period * max_repeats, len(output_ids))
        is_chosen = max_repeats and again.start >= max(num_forced, period)
        if is_chosen and all(output_ids[index] == output_ids[index - period] for index in again):
            return period
    return 0


def most_repeats(ids: Sequence[int]) -> int:
    """Return the largest number of consecutive repetitions of up to 16 tokens anywhere in `ids`."""
    counts = [1]
    for start in range(len(ids)):
        for period in range(1, 17):
            run, count = tuple(ids[start : start + period]), 1
            while tuple(ids[start + count * period : start + (count + 1) * period]) == run and len(run) == period:
                count += 1
            counts.append(count)
    return max(counts)


def processed(
    scores: npt.NDArray[np.float32], inputs: Sequence[int], options: DecodingOptions, eos_id: int, num_forced: int
) -> npt.NDArray[np.float32]:
    """Return scores (V,) after a repetition penalty, without repeated n-grams and without an early end."""
    changed = scores.copy()
    for token_id in set(inputs):
        if options.repetition_penalty != 1.0 and token_id < len(scores):
            penalty, score = np.float32(options.repetition_penalty), scores[token_id]
            changed[token_id] = score * penalty if score < 0 else score / penalty
    size = options.no_repeat_ngram_size
    known = {tuple(inputs[start : start + size]) for start in range(len(inputs) + 1 - size)} if size else set()
    for token_id in range(len(scores)):
        if size and (*inputs[max(len(inputs) + 1 - size, 0) :], token_id) in known:
            changed[token_id] = -np.inf
    if len(inputs) - 1 - num_forced < options.min_output_tokens:
        changed[eos_id] = -np.inf
    return changed


def greedy(
    log_probs: LogProbs, start: Sequence[int], eos_id: int, options: DecodingOptions, forced: Sequence[int]
) -> Result:
    """Choose one token after the other."""
    chosen: list[int] = []
    total = np.float32(0)
    while (
        len(chosen) < options.max_output_tokens
        and (not chosen or chosen[-1] != eos_id)
        and not excess([*forced, *chosen], len(forced), options.max_repeats)
    ):
        scores = log_probs([*start, *chosen])
        chosen.append(int(scores.argmax()))
        total += scores[chosen[-1]]
    return [(tuple(chosen), _score(total, start, chosen, eos_id, options))]


def beam(
    log_probs: LogProbs, start: Sequence[int], eos_id: int, options: DecodingOptions, forced: Sequence[int]
) -> Result:
    """Score and sort every continuation by every token in each step, and keep the best of each beam, then of all."""
    beam_size, limit = options.beam_size, options.max_output_tokens
    running: list[tuple[np.float32, tuple[int, ...]]] = [(np.float32(0), ())]
    finished: Result = []
    given_up: Result = []
    for length in range(1, limit + 1):
        continued = []
        for total, ids in running:
            totals = total + log_probs([*start, *ids])
            order = np.argsort(-totals, kind="stable")[: 2 * beam_size].tolist()
            continued += [(totals[token_id], (*ids, token_id)) for token_id in order if np.isfinite(totals[token_id])]
        best = sorted(continued, key=lambda item: -item[0])[: 2 * beam_size]
        is_cut = length == limit and not options.forces_end
        width = beam_size - len(finished) if options.narrows else beam_size
        ending = [item for item in best[:width] if is_cut or item[1][-1] == eos_id]
        finished = _kept(finished, ending, start, eos_id, options)
        width = beam_size - len(finished) if options.narrows else beam_size
        running = [item for item in best if item[1][-1] != eos_id][:width]
        if len(finished) == beam_size:
            penalty = np.float32((len(start) - 1 + length) ** options.length_penalty)
            if options.stops_early or options.narrows or float(running[0][0] / penalty) <= finished[-1][1]:
                return finished
        over = [item for item in running if excess([*forced, *item[1]], len(forced), options.max_repeats)]
        if length < limit and over:
            given_up = _kept(given_up, over, start, eos_id, options)
            running = [item for item in running if item not in over]
            if not running:
                return finished + given_up
    return _kept(finished, running, start, eos_id, options) if options.forces_end else finished


def _kept(
    finished: Result,
    ending: Sequence[tuple[np.float32, tuple[int, ...]]],
    start: Sequence[int],
    eos_id: int,
    options: DecodingOptions,
) -> Result:
    scored = [(ids, _score(total, start, ids, eos_id, options)) for total, ids in ending]
    return sorted([*finished, *scored], key=lambda item: -item[1])[: options.beam_size]


def _score(total: np.float32, start: Sequence[int], ids: Sequence[int], eos_id: int, options: DecodingOptions) -> float:
    """Return the score; a forced end counts as a token, and so does the forced prefix."""
    has_forced_end = options.forces_end and ids[-1] != eos_id and len(ids) == options.max_output_tokens
    length = len(start) - 1 + len(ids) + has_forced_end
    return float(total / np.float32(length**options.length_penalty))


def sample(
    log_probs: LogProbs, start: Sequence[int], eos_id: int, options: DecodingOptions, forced: Sequence[int]
) -> Result:
    """Sample one token and one candidate after the other; only the random numbers are the engine's own."""
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
        chance = uniform(options.seed, position)
        chosen, passed = 0, weights[0]
        while chosen < num_kept - 1 and passed <= chance * kept:
            chosen += 1
            passed += weights[chosen]
        inputs.append(int(order[chosen]))
        total += values[order[chosen]]
        if inputs[-1] == eos_id or excess([*forced, *inputs[len(start) :]], len(forced), options.max_repeats):
            break
    chosen_ids = tuple(inputs[len(start) :])
    return [(chosen_ids, _score(total, start, chosen_ids, eos_id, options))]


def uniform(seed: int, position: int) -> float:
    """Return a random number in [0, 1), by SplitMix64, accessed by position instead of in order."""
    return (mixed((seed + (position + 1) * 0x9E3779B97F4A7C15) % 2**64) >> 11) * 2.0**-53
