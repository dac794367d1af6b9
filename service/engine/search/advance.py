"""Applies a step's result to the batch: every running sequence goes one token on, in its own way of searching."""

import math
from dataclasses import dataclass, field

import numpy as np

from service.engine.batch import Batch
from service.engine.runner import StepOutput
from service.engine.search import beam, greedy, sampling
from service.engine.search.scores import normalized
from service.engine.sequence import DecodedHypothesis, Sequence
from service.translation import FinishReason


@dataclass(slots=True)
class Advance:
    """What a step led to.

    `failed` are sequences for which the model gave no numbers. `copies` (source row, target row) are beams that go on
    from another beam: their cache must follow before the next step.
    """

    finished: list[tuple[Sequence, tuple[DecodedHypothesis, ...]]] = field(default_factory=list)
    failed: list[Sequence] = field(default_factory=list)
    copies: list[tuple[int, int]] = field(default_factory=list)


class Search:
    """The searches of all running sequences; between steps it keeps the finished hypotheses of beams."""

    def __init__(self, eos_id: int) -> None:
        self._eos_id = eos_id
        self._hypotheses: dict[Sequence, beam.BeamHypotheses] = {}

    def forget(self, sequence: Sequence) -> None:
        """Drop what is kept for a sequence that leaves the batch, however it ended."""
        self._hypotheses.pop(sequence, None)

    def advance(self, batch: Batch, output: StepOutput) -> Advance:
        """Move every running sequence one token on; rows are updated for the next step, but none leaves the batch."""
        result = Advance()
        lengths = batch.lengths[: batch.num_rows]
        is_forced = lengths < batch.prefix_lengths[: batch.num_rows]
        lengths += 1  # the step appended its input to the cache
        for beam_size, sequences in batch.groups.items():
            if beam_size == 1:
                self._advance_singles(batch, sequences, output, is_forced, result)
            else:
                self._advance_beams(batch, sequences, output, is_forced, result)
        return result

    def _advance_singles(
        self, batch: Batch, sequences: list[Sequence], output: StepOutput, is_forced: greedy.Mask, result: Advance
    ) -> None:
        """Sequences of one row each: the most probable token, or one by chance."""
        assert output.next_ids is not None
        rows = np.fromiter((sequence.slots[0] for sequence in sequences), np.intp, len(sequences))
        lengths, chosen, is_open = batch.lengths[rows], output.next_ids[rows], ~is_forced[rows]
        log_probs = None if output.next_log_probs is None else output.next_log_probs[rows]
        if batch.top_ks[rows].any():
            log_probs = np.zeros(len(rows), np.float32) if log_probs is None else log_probs
            _sample(batch, rows, output, chosen, log_probs)
        places = (rows, lengths - 1)
        if not is_open.all():
            chosen = np.where(is_open, chosen, batch.output_ids[places])
        batch.output_ids[places] = chosen
        batch.token_ids[rows] = chosen
        is_ended = is_open & greedy.ended(chosen, lengths, batch.limits[rows], self._eos_id)
        if log_probs is not None:
            is_broken = np.isnan(log_probs)
            batch.log_probs[rows] += np.where(is_open, log_probs, 0)
            is_ended &= ~is_broken
            result.failed.extend(sequences[index] for index in np.flatnonzero(is_broken))
        for index in np.flatnonzero(is_ended):
            result.finished.append((sequences[index], (self._single_hypothesis(batch, sequences[index]),)))

    def _single_hypothesis(self, batch: Batch, sequence: Sequence) -> DecodedHypothesis:
        (row,) = sequence.slots
        output_ids = tuple(batch.output_ids[row, : batch.lengths[row]].tolist())
        score, options = math.nan, sequence.options
        if options.return_scores:
            length = len(output_ids) - len(sequence.target_prefix_ids)
            score = normalized(float(batch.log_probs[row]), length, options.length_penalty)
        return self._decoded(sequence, score, output_ids)

    def _advance_beams(
        self, batch: Batch, sequences: list[Sequence], output: StepOutput, is_forced: greedy.Mask, result: Advance
    ) -> None:
        assert output.candidate_ids is not None
        assert output.candidate_log_probs is not None
        for forced in [sequence for sequence in sequences if is_forced[sequence.slots[0]]]:
            rows = forced.slots
            batch.token_ids[rows] = batch.output_ids[rows, batch.lengths[rows] - 1]
        sequences = [sequence for sequence in sequences if not is_forced[sequence.slots[0]]]
        if not sequences:
            return
        all_rows = np.array([sequence.slots for sequence in sequences])  # (n, k)
        log_probs = output.candidate_log_probs[all_rows]  # (n, k, K)
        is_broken = np.isnan(log_probs).any(axis=(1, 2))
        rankings = beam.rank(batch.log_probs[all_rows], output.candidate_ids[all_rows], log_probs, self._eos_id)
        going_on, running = [], []
        for sequence, ranking, broken in zip(sequences, rankings, is_broken.tolist(), strict=True):
            if broken:
                result.failed.append(sequence)
            elif self._is_over(batch, sequence, ranking):
                result.finished.append((sequence, self._beam_hypotheses(sequence)))
            else:
                rows, copies = beam.inherit(sequence.slots, [parent for parent, _, _ in ranking.running])
                for source, target in copies:
                    batch.copy_output(source, target)
                result.copies.extend(copies)
                sequence.slots = rows
                going_on.extend(rows)
                running.extend(ranking.running)
        if going_on:
            _, token_ids, log_probs = zip(*running, strict=True)
            batch.token_ids[going_on] = token_ids
            batch.log_probs[going_on] = log_probs
            batch.output_ids[going_on, batch.lengths[going_on] - 1] = token_ids

    def _is_over(self, batch: Batch, sequence: Sequence, ranking: beam.Ranking) -> bool:
        """Collect the hypotheses that end in this step, and say whether the search is over."""
        slots, options = sequence.slots, sequence.options
        total = int(batch.lengths[slots[0]])
        length = total - len(sequence.target_prefix_ids)
        at_limit = length >= options.max_output_tokens
        ending = [beam_ for beam_ in ranking.top if at_limit or beam_.token_id == self._eos_id]
        if ending and sequence not in self._hypotheses:
            self._hypotheses[sequence] = beam.BeamHypotheses(options.beam_size, options.length_penalty)
        hypotheses = self._hypotheses.get(sequence)
        if hypotheses is None:
            return False
        for parent, token_id, log_prob in ending:
            begun = batch.output_ids[slots[parent], : total - 1].tolist()
            hypotheses.add(log_prob, length, (*begun, token_id))
        return at_limit or hypotheses.is_done(ranking.running[0].log_prob, length)

    def _beam_hypotheses(self, sequence: Sequence) -> tuple[DecodedHypothesis, ...]:
        best = self._hypotheses[sequence].finished[: sequence.options.num_hypotheses]
        return tuple(self._decoded(sequence, score, output_ids) for score, output_ids in best)

    def _decoded(self, sequence: Sequence, score: float, output_ids: tuple[int, ...]) -> DecodedHypothesis:
        """Strip the forced prefix and the end-of-sentence token."""
        chosen = output_ids[len(sequence.target_prefix_ids) :]
        if chosen[-1] == self._eos_id:
            return DecodedHypothesis(chosen[:-1], score, FinishReason.STOP)
        return DecodedHypothesis(chosen, score, FinishReason.LENGTH)


def _sample(batch: Batch, rows: sampling.Rows, output: StepOutput, chosen: greedy.Ids, log_probs: beam.Scores) -> None:
    """Overwrite, in `chosen` and `log_probs` (both of `rows`), what those rows get that are sampled."""
    assert output.candidate_ids is not None
    assert output.candidate_log_probs is not None
    places = np.flatnonzero(batch.top_ks[rows])
    rows = rows[places]
    candidates = output.candidate_log_probs[rows]
    columns = sampling.choose(
        candidates,
        batch.temperatures[rows],
        batch.top_ks[rows],
        batch.top_ps[rows],
        sampling.uniforms(batch.seeds[rows], batch.lengths[rows] - batch.prefix_lengths[rows]),
    )
    chosen[places] = output.candidate_ids[rows, columns]
    log_probs[places] = candidates[np.arange(len(rows)), columns]
