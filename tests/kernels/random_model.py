"""A model of random numbers: its logits are a function of a sequence and its output so far."""

from collections.abc import Sequence as Several

import numpy as np
from numpy import typing as npt

from service.bundle.graph_io import NO_TOKEN
from service.engine.batch import Batch
from service.engine.runner import Fetch, RunOutput
from tests.kernels.native_search import Need, Projected

Logits = npt.NDArray[np.float32]

_NUM_ROWS = 509


class RandomModel:
    """Computes what the graphs do with logits, with the same bits for both searches."""

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

    def run(self, batch: Batch, numbers: Several[int], fetch: Fetch) -> RunOutput:
        """Compute a step of all rows of a batch; `numbers` are the rows' sequences."""
        count = batch.num_rows
        next_ids = np.full((count, 1), NO_TOKEN)
        next_log_probs = np.full((count, 1), np.nan, np.float32)
        num_candidates = min(fetch.num_candidates, self.num_tokens)
        candidate_ids = np.zeros((count, num_candidates), np.int64)
        candidate_log_probs = np.full((count, num_candidates), np.nan, np.float32)
        logits = np.full((count, self.num_tokens), np.nan, np.float32)
        log_totals = np.full(count, np.nan, np.float32)
        for row, number in enumerate(numbers):
            output_ids = batch.output_ids[row, : batch.lengths[row]]
            scored = self.of(number, output_ids, Need(log_total=True, num_candidates=num_candidates, logits=False))
            if scored.is_broken:
                continue
            next_ids[row], next_log_probs[row] = scored.best_id, np.float32(scored.best_logit) - scored.log_total
            candidate_ids[row] = scored.candidate_ids
            candidate_log_probs[row] = scored.candidate_logits - np.float32(scored.log_total)
            whole = self.of(number, output_ids, Need(log_total=True, num_candidates=0, logits=True))
            logits[row], log_totals[row] = whole.logits, whole.log_total
        of_next = next_log_probs if fetch.next_log_probs else None
        return RunOutput(next_ids, of_next, candidate_ids, candidate_log_probs, 1, logits, log_totals)
