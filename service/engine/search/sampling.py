"""Sampling: draws one of a row's most probable tokens, with reproducible random numbers."""

from typing import Any

import numpy as np
from numpy import typing as npt

from service.engine.batch import Batch
from service.engine.repeats import Ids
from service.engine.runner import Fetch, RunOutput
from service.engine.search.single_rows import Scores, SingleRows

Rows = npt.NDArray[np.intp]
Counts = npt.NDArray[np.int32]
Seeds = npt.NDArray[np.uint64]
Floats = npt.NDArray[np.float32]

_COLDEST = np.finfo(np.float32).tiny  # lower temperatures are 0 in float32
_GAMMA = np.uint64(0x9E3779B97F4A7C15)


class Sampling(SingleRows):
    """A `Strategy` that draws one of the most probable tokens in each step."""

    def fetch(self, batch: Batch) -> Fetch:
        """See `Strategy.fetch`."""
        most = max(sequence.options.top_k for sequence in self._sequences)
        return super().fetch(batch)._replace(num_candidates=most)

    def max_steps(self, batch: Batch) -> int:
        """Return 1: each token is chosen here."""
        return 1

    def choose(self, batch: Batch, rows: Any, output: RunOutput, step: int) -> tuple[Ids, Scores | None]:
        """See `SingleRows.choose`."""
        assert output.candidate_ids is not None
        assert output.candidate_log_probs is not None
        candidates = output.candidate_log_probs[rows]
        positions = batch.lengths[rows] + 1 - batch.forced_lengths[rows]
        columns = choose(
            candidates,
            batch.temperatures[rows],
            batch.top_ks[rows],
            batch.top_ps[rows],
            uniforms(batch.seeds[rows], positions),
        )
        within = np.arange(len(columns))
        return output.candidate_ids[rows][within, columns], candidates[within, columns]


def stream_seed(seed: int, sample: int) -> int:
    """Return the seed of one sample's own random stream; `seed` and `sample` are taken modulo 2 ** 64."""
    words = np.array([seed, sample], dtype=object) % 2**64
    seeds, samples = words[:1].astype(np.uint64), words[1:].astype(np.uint64)
    return int(_mixed(_mixed(seeds + _GAMMA) + samples)[0])


def uniforms(seeds: Seeds, positions: Counts) -> npt.NDArray[np.float64]:
    """Return random numbers in [0, 1), one per row, each a function only of its row's seed and position; all (n,).

    SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014), accessed by position instead
    of in order: a row has no state that would have to move with it.
    """
    bits = _mixed(seeds + (positions.astype(np.uint64) + np.uint64(1)) * _GAMMA)
    return (bits >> np.uint64(11)).astype(np.float64) * 2.0**-53


def choose(
    log_probs: npt.NDArray[np.float32],
    temperatures: Floats,
    top_ks: Counts,
    top_ps: Floats,
    chances: npt.NDArray[np.float64],
) -> Rows:
    """Choose one of each row's candidates: `log_probs` (n, K), best first; all else, and the result, (n,).

    The semantics are those of transformers' `generate(do_sample=True)`: temperature, then the `top_k` best, then the
    fewest of these that hold `top_p` of the probability. A candidate of probability 0 is never chosen.
    """
    log_probs = log_probs.astype(np.float64)
    divisors = np.maximum(temperatures, _COLDEST)[:, None].astype(np.float64)
    weights = np.exp((log_probs - log_probs[:, :1]) / divisors)
    weights[np.arange(weights.shape[1]) >= top_ks[:, None]] = 0.0
    mass = weights.cumsum(axis=1)
    is_kept = (weights > 0.0) & (mass - weights < top_ps[:, None].astype(np.float64) * mass[:, -1:])
    num_kept = np.maximum(is_kept.sum(axis=1), 1)  # a prefix, as the best come first
    kept_mass = np.take_along_axis(mass, num_kept[:, None] - 1, axis=1)
    passed = (mass <= chances[:, None] * kept_mass).sum(axis=1)
    chosen: Rows = np.minimum(passed, num_kept - 1)
    return chosen


def _mixed(words: Seeds) -> Seeds:
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))
