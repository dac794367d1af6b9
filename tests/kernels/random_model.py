"""A model of random numbers: its logits are a function of a sequence and its output so far."""

from collections.abc import Sequence as Several

import numpy as np
from numpy import typing as npt

from tests.kernels.native_search import Need, Projected

Logits = npt.NDArray[np.float32]

_NUM_ROWS = 509


class RandomModel:
    """Computes what the graphs do with logits."""

    def __init__(self, seed: int, num_tokens: int, *, has_ties: bool, suppressed: Several[int], renormalizes: bool,
                 ends: float, breaks: Several[int]) -> None:  # fmt: skip
        """`ends` is added to the logits of the end of the sentence, 1; `breaks` are sequences that become NaN."""
        rng = np.random.default_rng(seed)
        logits = rng.normal(scale=3.0, size=(_NUM_ROWS, num_tokens))
        logits[:, 1] += ends
        self._all = (logits.round() / 2 if has_ties else logits).astype(np.float32)
        self._allowed = self._all.copy()
        self._allowed[:, list(suppressed)] = -np.inf
        self._renormalizes, self._breaks = renormalizes, frozenset(breaks)
        self.num_tokens = num_tokens

    def of(self, number: int, output_ids: npt.NDArray[np.int64], need: Need) -> Projected:
        """Compute what a native search needs of one row; what it does not need is NaN or out of range."""
        if number in self._breaks and len(output_ids) == 3 + number % 3:
            nothing = np.full(self.num_tokens, np.nan, np.float32)
            return Projected(True, -7, np.nan, np.nan, np.zeros(0, np.int32), nothing, nothing)
        place = hash((number, *output_ids.tolist())) % _NUM_ROWS
        logits = self._allowed[place]
        largest = logits.max()
        log_share = np.log(np.exp(logits - largest).sum(dtype=np.float32)) + largest
        log_all = np.log(np.exp(self._all[place] - largest).sum(dtype=np.float32)) + largest
        norm = log_share if self._renormalizes and not need.logits else log_all
        ids = np.argsort(-logits, kind="stable")[: need.num_candidates].astype(np.int32)
        return Projected(
            is_broken=False,
            best_id=-7 if need.logits else int(logits.argmax()),
            best_logit=np.nan if need.logits else largest,
            log_total=norm if need.log_total else np.nan,
            candidate_ids=ids,
            candidate_logits=logits[ids],
            logits=logits.copy() if need.logits else np.full(self.num_tokens, np.nan, np.float32),
        )
