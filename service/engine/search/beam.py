"""Beam search over all sequences of one beam size at once; `beam_ranking` defines the rules."""

from collections.abc import Iterable

import numpy as np

from service.engine.batch import Batch
from service.engine.runner import Fetch, RunOutput
from service.engine.search.beam_ranking import BeamHypotheses, Continuations, Rows, inherit, rank
from service.engine.search.certain import certain_of_beams
from service.engine.search.hypotheses import decoded, score
from service.engine.search.strategy import Outcome
from service.engine.sequence import DecodedHypothesis, Sequence


class BeamSearch:
    """A `Strategy`. Between runs it keeps the finished hypotheses of each sequence that has any."""

    def __init__(self, eos_id: int, beam_size: int) -> None:
        self._eos_id = eos_id
        self._beam_size = beam_size
        self._sequences: dict[Sequence, None] = {}
        self._hypotheses: dict[Sequence, BeamHypotheses] = {}

    @property
    def sequences(self) -> Iterable[Sequence]:
        """See `Strategy.sequences`."""
        return self._sequences.keys()

    def join(self, sequence: Sequence) -> None:
        """See `Strategy.join`."""
        self._sequences[sequence] = None

    def leave(self, sequence: Sequence) -> None:
        """See `Strategy.leave`."""
        del self._sequences[sequence]
        self._hypotheses.pop(sequence, None)

    def fetch(self, batch: Batch) -> Fetch:
        """See `Strategy.fetch`."""
        return Fetch(next_ids=False, next_log_probs=False, num_candidates=2 * self._beam_size)

    def max_steps(self, batch: Batch) -> int:
        """Return 1: each token's continuations are ranked here."""
        return 1

    def advance(self, batch: Batch, output: RunOutput, outcome: Outcome) -> None:
        """See `Strategy.advance`."""
        assert output.candidate_ids is not None
        assert output.candidate_log_probs is not None
        sequences = list(self._sequences)
        if batch.num_forced:
            sequences = self._advance_forced(batch, sequences, output, outcome)
        if not sequences:
            return
        outcome.num_generated += len(sequences)
        rows: Rows = np.array([sequence.slots for sequence in sequences])  # (n, k)
        log_probs = output.candidate_log_probs[rows]  # (n, k, K)
        top, running = rank(batch.log_probs[rows], output.candidate_ids[rows], log_probs, self._eos_id)
        is_at_limit = batch.lengths[rows[:, 0]] + 1 >= batch.limits[rows[:, 0]]
        forces_end = np.array([sequence.options.forces_end for sequence in sequences])
        is_ending = (top.token_ids == self._eos_id) | (is_at_limit & ~forces_end)[:, None]  # (n, k)
        is_broken = np.isnan(log_probs.sum(axis=(1, 2)))
        looks = is_ending.any(axis=1) | is_at_limit | is_broken
        goes_on = np.ones(len(sequences), np.bool_)
        for index, sequence in enumerate(sequences):
            if not looks[index] and sequence not in self._hypotheses:
                continue
            if is_broken[index]:
                outcome.failed.append(sequence)
                goes_on[index] = False
                continue
            self._collect(batch, sequence, top.of((index, is_ending[index])))
            is_done = self._is_done(batch, sequence, float(running.log_probs[index, 0]))
            if is_at_limit[index] and forces_end[index] and not is_done:
                self._collect(batch, sequence, running.of(index), num_forced=1)
            if is_at_limit[index] or is_done:
                outcome.finished.append((sequence, self._best(sequence)))
                goes_on[index] = False
        if not goes_on.all():
            sequences = [sequence for sequence, stays in zip(sequences, goes_on, strict=True) if stays]
            rows, running = rows[goes_on], running.of(goes_on)
        self._go_on(batch, sequences, rows, running, outcome)

    def certain(self, batch: Batch, sequence: Sequence) -> tuple[int, ...]:
        """See `Strategy.certain`."""
        hypotheses = self._hypotheses.get(sequence)
        return certain_of_beams(batch, sequence, hypotheses.best(1)[0].text_ids if hypotheses else None)

    def _advance_forced(
        self, batch: Batch, sequences: list[Sequence], output: RunOutput, outcome: Outcome
    ) -> list[Sequence]:
        """Append the forced tokens of sequences that have some left; returns the other sequences."""
        assert output.candidate_log_probs is not None
        others = []
        for sequence in sequences:
            own = sequence.slots
            length = int(batch.lengths[own[0]])
            if length >= batch.forced_lengths[own[0]]:
                others.append(sequence)
            # Checked although no token is chosen: NaN would stay in the cache.
            elif np.isnan(output.candidate_log_probs[own]).any():
                outcome.failed.append(sequence)
            else:
                batch.append(own, batch.output_ids[own, length])
                if sequence.options.max_repeats:
                    batch.note_repeats(own, np.zeros(len(own), np.bool_))
        return others

    def _go_on(
        self, batch: Batch, sequences: list[Sequence], rows: Rows, running: Continuations, outcome: Outcome
    ) -> None:
        """Continue searches with their next beams; `rows` (n, k) are those of the current ones."""
        rows, sources, targets = inherit(rows, running.parents)
        if len(sources):
            batch.copy_outputs(sources, targets)
            outcome.copies.extend(zip(sources.tolist(), targets.tolist(), strict=True))
        for sequence, slots in zip(sequences, rows.tolist(), strict=True):
            sequence.slots = slots
        batch.append(rows, running.token_ids)
        batch.log_probs[rows] = running.log_probs
        if batch.num_guarded and len(sequences):
            self._give_up(batch, batch.note_repeats(rows.ravel()), outcome)

    def _give_up(self, batch: Batch, rows: list[int], outcome: Outcome) -> None:
        """Give up beams that repeat themselves: in the next step others take their places, if any are left."""
        for row in rows:
            sequence, length = batch.owner(row), int(batch.lengths[row])
            output_ids = tuple(batch.output_ids[row, :length].tolist())
            own_score = score(sequence, float(batch.log_probs[row]), length)
            self._hypotheses_of(sequence).give_up(own_score, output_ids, batch.excess(row))
            batch.log_probs[row] = -np.inf
            if np.isneginf(batch.log_probs[sequence.slots]).all():
                outcome.finished.append((sequence, self._best(sequence)))

    def _hypotheses_of(self, sequence: Sequence) -> BeamHypotheses:
        hypotheses = self._hypotheses.get(sequence)
        if hypotheses is None:
            stops_early = sequence.options.stops_early
            hypotheses = self._hypotheses[sequence] = BeamHypotheses(self._beam_size, stops_early=stops_early)
        return hypotheses

    def _collect(self, batch: Batch, sequence: Sequence, ending: Continuations, num_forced: int = 0) -> None:
        """Keep the hypotheses of one search that end with the next token, each (m,), or `num_forced` tokens later."""
        length, hypotheses = int(batch.lengths[sequence.slots[0]]), self._hypotheses_of(sequence)
        for parent, token_id, log_prob in zip(*(part.tolist() for part in ending), strict=True):
            begun = batch.output_ids[sequence.slots[parent], :length].tolist()
            hypotheses.add(score(sequence, log_prob, length + 1 + num_forced), (*begun, token_id))

    def _is_done(self, batch: Batch, sequence: Sequence, best_log_prob: float) -> bool:
        best_running_score = score(sequence, best_log_prob, int(batch.lengths[sequence.slots[0]]) + 1)
        return self._hypotheses[sequence].is_done(best_running_score)

    def _best(self, sequence: Sequence) -> tuple[DecodedHypothesis, ...]:
        best = self._hypotheses[sequence].best(sequence.options.num_hypotheses)
        return tuple(decoded(sequence, *hypothesis, self._eos_id) for hypothesis in best)
