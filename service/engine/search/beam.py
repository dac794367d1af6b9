"""Beam search with the semantics of transformers' `generate(num_beams=k, early_stopping=False, do_sample=False)`.

Each step ranks the 2 k most probable continuations of the k running beams. Those among the first k that end (with
the end-of-sentence token, or all of them at the length limit) become finished hypotheses, of which the k best by
normalised score are kept; the first k that don't end run on. The search is over when k hypotheses are finished and
the best running beam, normalised by its present length, does not beat the worst of them, or at the length limit.

One difference, on purpose: where transformers marks "impossible" with a score of -1e9, this uses minus infinity, so
that real scores below -1e9 (long outputs under a strongly negative length penalty) still count as what they are.
"""

from typing import NamedTuple

import numpy as np
from numpy import typing as npt

from service.engine.search.scores import normalized

Ids = npt.NDArray[np.int64]
Scores = npt.NDArray[np.float32]


class Continuation(NamedTuple):
    """One beam, one token longer."""

    parent: int  # which of the k beams it continues
    token_id: int
    log_prob: float  # summed over the hypothesis, a float32 value


class Ranking(NamedTuple):
    """The best continuations of one search of k beams, each best first."""

    top: list[Continuation]  # the k best, whether they end or not
    running: list[Continuation]  # the k best that don't end


def rank(log_probs: Scores, candidate_ids: Ids, candidate_log_probs: Scores, eos_id: int) -> list[Ranking]:
    """Rank the continuations of n searches: `log_probs` (n, k) of their beams, candidates (n, k, K) with K >= 2 k.

    2 k candidates hold at least k that don't end, as only one continuation of a beam does. Ties go to the earlier
    beam and, within a beam, to the earlier candidate.
    """
    num_searches, beam_size = log_probs.shape
    width = min(2 * beam_size, candidate_ids.shape[2])
    ids = candidate_ids[:, :, :width].reshape(num_searches, -1)  # (n, k * width)
    totals = (log_probs[:, :, None] + candidate_log_probs[:, :, :width]).reshape(num_searches, -1)
    order = np.argsort(-totals, axis=1, kind="stable")[:, : 2 * beam_size]  # (n, 2 k)
    ends = np.take_along_axis(ids, order, axis=1) == eos_id
    goes_on = np.take_along_axis(order, np.argsort(ends, axis=1, kind="stable")[:, :beam_size], axis=1)
    chosen = np.concatenate([order[:, :beam_size], goes_on], axis=1)  # (n, 2 k): top, then running
    parents, token_ids = (chosen // width).tolist(), np.take_along_axis(ids, chosen, axis=1).tolist()
    summed = np.take_along_axis(totals, chosen, axis=1).tolist()
    rankings = []
    for search in zip(parents, token_ids, summed, strict=True):
        continuations = [Continuation(*values) for values in zip(*search, strict=True)]
        rankings.append(Ranking(continuations[:beam_size], continuations[beam_size:]))
    return rankings


class Finished(NamedTuple):
    """A hypothesis that ended: `output_ids` with forced prefix and, unless it was cut, the end-of-sentence token."""

    score: float  # normalised
    output_ids: tuple[int, ...]


class BeamHypotheses:
    """The at most k best finished hypotheses of one search, best first in `finished`."""

    def __init__(self, beam_size: int, length_penalty: float) -> None:
        self._beam_size = beam_size
        self._length_penalty = length_penalty
        self.finished: list[Finished] = []

    def add(self, log_prob: float, length: int, output_ids: tuple[int, ...]) -> None:
        """Keep a hypothesis if it is among the best; `length` counts what the model chose, the end included."""
        self.finished.append(Finished(normalized(log_prob, length, self._length_penalty), output_ids))
        self.finished.sort(key=lambda hypothesis: -hypothesis.score)  # stable: of equals, the earlier one stays ahead
        del self.finished[self._beam_size :]

    def is_done(self, best_running_log_prob: float, length: int) -> bool:
        """Whether k hypotheses are finished and the best running beam, of `length`, does not beat the worst of them."""
        if len(self.finished) < self._beam_size:
            return False
        return not normalized(best_running_log_prob, length, self._length_penalty) > self.finished[-1].score


def inherit(slots: list[int], parents: list[int]) -> tuple[list[int], list[tuple[int, int]]]:
    """Place the next beams in rows with as few copies as possible.

    The first child of a beam stays in its row; further children take rows of beams that have none.

    Returns:
        The rows in the order of the next beams, and the copies (source row, target row) that this needs; no row is
        both a source and a target.
    """
    orphaned = [row for beam, row in enumerate(slots) if beam not in parents]
    rows, copies, seen = [], [], set()
    for parent in parents:
        if parent in seen:
            row = orphaned.pop()
            copies.append((slots[parent], row))
        else:
            row = slots[parent]
            seen.add(parent)
        rows.append(row)
    return rows, copies
