"""Search with changed scores: takes the whole vocabulary's scores from a run, changes them, and gives the best of them
to an ordinary search. Only sequences whose options ask for that pay for it."""

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
from numpy import typing as npt

from service.bundle.graph_io import NO_TOKEN
from service.engine.batch import Batch
from service.engine.runner import Fetch, RunnerSpec, RunOutput
from service.engine.search.processors import Ids, Scores, process
from service.engine.search.strategy import Outcome, Strategy
from service.engine.sequence import Sequence

Rows = npt.NDArray[np.intp]


class Rescoring:
    """A `Strategy` around another one. Its run's output for the inner one has values only in its own rows."""

    def __init__(self, inner: Strategy, spec: RunnerSpec, *, is_beam: bool) -> None:
        """Wrap the strategy of sequences that all have options that change scores."""
        self._inner = inner
        self._spec = spec
        self._is_beam = is_beam

    @property
    def sequences(self) -> Iterable[Sequence]:
        """See `Strategy.sequences`."""
        return self._inner.sequences

    def join(self, sequence: Sequence) -> None:
        """See `Strategy.join`."""
        self._inner.join(sequence)

    def leave(self, sequence: Sequence) -> None:
        """See `Strategy.leave`."""
        self._inner.leave(sequence)

    def fetch(self, batch: Batch) -> Fetch:
        """See `Strategy.fetch`. The graph's own choice says which rows have NaN."""
        return Fetch(next_ids=True, next_log_probs=False, num_candidates=0, logits=True, log_totals=self._is_beam)

    def max_steps(self, batch: Batch) -> int:
        """Return 1: each token is chosen here."""
        return 1

    def certain(self, batch: Batch, sequence: Sequence) -> tuple[int, ...]:
        """See `Strategy.certain`."""
        return self._inner.certain(batch, sequence)

    def advance(self, batch: Batch, output: RunOutput, outcome: Outcome) -> None:
        """See `Strategy.advance`."""
        assert output.next_ids is not None
        wanted = self._inner.fetch(batch)
        rows, scores = self._changed(batch, output)
        is_broken = output.next_ids[rows, 0] == NO_TOKEN
        if self._spec.renormalizes if self._is_beam else wanted.num_candidates or wanted.next_log_probs:
            scores = log_softmax(scores)
        if wanted.num_candidates:
            ids, best = top(scores, wanted.num_candidates)
            best[is_broken] = np.nan
            candidate_ids = np.zeros((batch.num_rows, ids.shape[1]), np.int64)
            candidate_log_probs = np.zeros((batch.num_rows, ids.shape[1]), np.float32)
            candidate_ids[rows], candidate_log_probs[rows] = ids, best
            changed = replace(output, candidate_ids=candidate_ids, candidate_log_probs=candidate_log_probs)
        else:
            chosen = scores.argmax(axis=1)
            next_ids = output.next_ids.copy()
            next_ids[rows, 0] = np.where(is_broken, NO_TOKEN, chosen)
            changed = replace(output, next_ids=next_ids)
            if wanted.next_log_probs:
                next_log_probs = np.zeros((batch.num_rows, 1), np.float32)
                next_log_probs[rows, 0] = scores[np.arange(len(rows)), chosen]
                changed = replace(changed, next_log_probs=next_log_probs)
        self._inner.advance(batch, changed, outcome)

    def _changed(self, batch: Batch, output: RunOutput) -> tuple[Rows, Scores]:
        """Return the sequences' rows (n,) and their changed scores (n, V)."""
        assert output.logits is not None
        rows: Rows = np.array([row for sequence in self.sequences for row in sequence.slots])
        num_tokens = output.logits.shape[1]
        with_spare: Scores = np.zeros((len(rows), num_tokens + 1), np.float32)  # as `processors` expect
        scores = with_spare[:, :num_tokens]
        np.take(output.logits, rows, axis=0, out=scores)
        if self._is_beam:
            assert output.log_totals is not None
            scores -= output.log_totals[rows, None]
        start = 0
        for sequence in self.sequences:
            own = slice(start, start + len(sequence.slots))
            inputs = self._inputs(batch, rows[own])
            process(with_spare[own], inputs, sequence.options, self._spec.eos_id, len(sequence.target_prefix_ids))
            start = own.stop
        if not self._is_beam:
            scores[np.isneginf(scores.max(axis=1)), self._spec.eos_id] = 0.0  # all tokens are forbidden: it ends
        return rows, scores

    def _inputs(self, batch: Batch, rows: Rows) -> Ids:
        """Return the decoder's inputs so far in rows of equal length, (n, T)."""
        length = int(batch.lengths[rows[0]])
        inputs = np.empty((len(rows), length + 1), np.int64)
        inputs[:, 0] = self._spec.decoder_start_id
        inputs[:, 1:] = batch.output_ids[rows, :length]
        return inputs


def log_softmax(scores: Scores) -> Scores:
    """Return log-probabilities of (n, V); a row of which all tokens are forbidden stays as it is."""
    largest = scores.max(axis=1, keepdims=True)
    largest[np.isneginf(largest)] = 0.0
    with np.errstate(divide="ignore"):
        totals = np.log(np.exp(scores - largest).sum(axis=1, keepdims=True))
    totals[np.isneginf(totals)] = 0.0
    normalized: Scores = scores - largest - totals
    return normalized


def top(scores: Scores, num_candidates: int) -> tuple[Ids, Scores]:
    """Return the ids and scores of each row's best tokens, best first, the lower id among equals; both (n, K)."""
    size = scores.shape[1]
    num_candidates = min(num_candidates, size)
    ids = np.sort(np.argpartition(scores, size - num_candidates, axis=1)[:, size - num_candidates :], axis=1)
    best = np.take_along_axis(scores, ids, axis=1)
    order = np.argsort(-best, axis=1, kind="stable")
    return np.take_along_axis(ids, order, axis=1), np.take_along_axis(best, order, axis=1)
