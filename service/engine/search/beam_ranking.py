"""Beam search with the semantics of transformers' `generate(num_beams=k, do_sample=False)`.

Each step ranks the 2 k most probable continuations of the k running beams. Those among the first k that end (with the
end-of-sentence token, or all of them at the length limit) become finished hypotheses, of which the k best by normalized
score are kept; the first k that don't end continue. The search is over when k hypotheses are finished and the best
running beam, normalized by its current length, does not beat the worst of them (with `stops_early`, i.e.
`early_stopping=True`, whether it does or not), or at the length limit.

One deliberate difference: where transformers marks "impossible" with a score of -1e9, this uses minus infinity, so that
real scores below -1e9 (long outputs under a strongly negative length penalty) keep their order.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy import typing as npt

Ids = npt.NDArray[np.int64]
Rows = npt.NDArray[np.intp]
Scores = npt.NDArray[np.float32]


class Continuations(NamedTuple):
    """Beams of n searches, one token longer, best first; all (n, k)."""

    parents: Rows  # which of the k beams each continues
    token_ids: Ids
    log_probs: Scores  # summed over the hypothesis

    def of(self, which: Any) -> "Continuations":
        """Return a selection, by a NumPy index."""
        return Continuations(self.parents[which], self.token_ids[which], self.log_probs[which])


class Ranking(NamedTuple):
    """The best continuations of n searches of k beams."""

    top: Continuations  # the k best, whether they end or not
    running: Continuations  # the k best that don't end


def rank(log_probs: Scores, candidate_ids: Ids, candidate_log_probs: Scores, eos_id: int) -> Ranking:
    """Rank the continuations of n searches: `log_probs` (n, k) of their beams, candidates (n, k, K) with K >= 2 k.

    2 k candidates include at least k that don't end, as only one continuation of a beam does. Ties go to the earlier
    beam and, within a beam, to the earlier candidate.
    """
    num_searches, beam_size = log_probs.shape
    width = min(2 * beam_size, candidate_ids.shape[2])
    ids = candidate_ids[:, :, :width].reshape(num_searches, -1)  # (n, k * width)
    totals = (log_probs[:, :, None] + candidate_log_probs[:, :, :width]).reshape(num_searches, -1)
    searches = np.arange(num_searches)[:, None]
    order = (-totals).argsort(axis=1, kind="stable")[:, : 2 * beam_size]  # (n, 2 k)
    ends = ids[searches, order] == eos_id
    goes_on = order[searches, ends.argsort(axis=1, kind="stable")[:, :beam_size]]

    def continuations(chosen: Rows) -> Continuations:
        return Continuations(chosen // width, ids[searches, chosen], totals[searches, chosen])

    return Ranking(continuations(order[:, :beam_size]), continuations(goes_on))


class Finished(NamedTuple):
    """A hypothesis that ended: `output_ids` include forced tokens and, unless it was cut, the end-of-sentence token.

    The last `excess` of them repeat once too often.
    """

    score: float  # normalised
    output_ids: tuple[int, ...]
    excess: int = 0

    @property
    def text_ids(self) -> tuple[int, ...]:
        """Return the output without the excess."""
        return self.output_ids[: len(self.output_ids) - self.excess]


class BeamHypotheses:
    """The at most k best finished hypotheses of one search, best first in `finished`."""

    def __init__(self, beam_size: int, *, stops_early: bool = False) -> None:
        self._beam_size = beam_size
        self._stops_early = stops_early
        self.finished: list[Finished] = []
        self._given_up: list[Finished] = []

    def add(self, score: float, output_ids: tuple[int, ...]) -> None:
        """Keep a hypothesis if it is among the k best."""
        self._keep(self.finished, Finished(score, output_ids))

    def give_up(self, score: float, output_ids: tuple[int, ...], excess: int) -> None:
        """Keep a hypothesis that repeats itself; it counts only if too few others end."""
        self._keep(self._given_up, Finished(score, output_ids, excess))

    def best(self, num_hypotheses: int) -> list[Finished]:
        """Return the best finished hypotheses, best first, followed by those that were given up."""
        return (self.finished + self._given_up)[:num_hypotheses]

    def is_done(self, best_running_score: float) -> bool:
        """Return whether k hypotheses are finished and the best running beam does not beat the worst of them."""
        if len(self.finished) < self._beam_size:
            return False
        if self._stops_early:
            return True
        return not best_running_score > self.finished[-1].score

    def _keep(self, hypotheses: list[Finished], hypothesis: Finished) -> None:
        hypotheses.append(hypothesis)
        hypotheses.sort(key=lambda each: -each.score)  # stable: of equals, the earlier one stays ahead
        del hypotheses[self._beam_size :]


def inherit(rows: Rows, parents: Rows) -> tuple[Rows, Rows, Rows]:
    """Assign the next beams to their search's rows with as few copies as possible; `rows` and `parents` are (n, k).

    The first child of a beam stays in its row; further children take rows of beams that have none.

    Returns:
        The rows of the next beams (n, k), and the copies needed: (source rows, target rows), each (m,). No row is both
        a source and a target.
    """
    numbers, searches = np.arange(rows.shape[1]), np.arange(len(rows))[:, None]
    is_same = parents[:, :, None] == parents[:, None, :]  # (n, k, k)
    is_first = ~(is_same & (numbers < numbers[:, None])).any(axis=2)
    is_orphaned = (parents[:, None, :] != numbers[:, None]).all(axis=2)
    placed = rows[searches, parents]
    sources, targets = placed[~is_first], rows[is_orphaned]  # equally many of each per search, in the order of searches
    placed[~is_first] = targets
    return placed, sources, targets
