"""Applies a step's result to the batch: every running sequence goes one token on, in its own way of searching."""

import math
from collections.abc import Set
from dataclasses import dataclass, field

import numpy as np

from service.bundle.graph_io import NO_TOKEN
from service.domain.translation import FinishReason
from service.engine.batch import Batch
from service.engine.runner import StepOutput
from service.engine.search import beam, greedy, sampling
from service.engine.search.scores import normalized
from service.engine.sequence import DecodedHypothesis, Sequence


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

    @property
    def kept(self) -> Set[Sequence]:
        """The sequences for which something is kept."""
        return self._hypotheses.keys()

    def forget(self, sequence: Sequence) -> None:
        """Drop what is kept for a sequence that leaves the batch, however it ended."""
        self._hypotheses.pop(sequence, None)

    def advance(self, batch: Batch, output: StepOutput) -> Advance:
        """Move every running sequence one token on; rows are updated for the next step, but none leaves the batch."""
        result = Advance()
        live = slice(0, batch.num_rows)
        lengths = batch.lengths[live]
        is_forced = lengths < batch.forced_lengths[live] if batch.num_forced else None
        lengths += 1  # the step appended its input to the cache
        if output.next_ids is not None:
            self._advance_singles(batch, output, is_forced, result)
        for beam_size, sequences in batch.groups.items():
            if beam_size > 1:
                self._advance_beams(batch, sequences, output, is_forced, result)
        return result

    def certain(self, batch: Batch, sequence: Sequence) -> tuple[int, ...]:
        """The tokens with which a running sequence's best hypothesis will begin; with each step as many or more.

        Of a beam search that is what its beams, and the best hypothesis that is finished, have in common.
        """
        rows = sequence.slots
        start, end = len(sequence.target_prefix_ids), int(batch.lengths[rows[0]])
        if end <= batch.forced_lengths[rows[0]]:
            return ()
        if len(rows) > 1:
            alive = np.isfinite(batch.log_probs[rows])
            rows = [row for row, is_alive in zip(rows, alive.tolist(), strict=True) if is_alive]
        if sequence.options.max_repeats:
            end -= max(batch.repeats.doubtful(row, int(batch.max_repeats[row])) for row in rows)
        if len(sequence.slots) == 1:
            return tuple(batch.output_ids[rows[0], start:end].tolist())
        outputs = [tuple(batch.output_ids[row, start:end].tolist()) for row in rows]
        if sequence in self._hypotheses:
            outputs += [each.text_ids[start:] for each in self._hypotheses[sequence].best(1)]
        return _common_beginning(outputs)

    def _advance_singles(
        self, batch: Batch, output: StepOutput, is_forced: greedy.Mask | None, result: Advance
    ) -> None:
        """Sequences of one row each: the most probable token, or one by chance.

        This is Python's share of most steps, so whole arrays are views where there is no beam.
        """
        assert output.next_ids is not None
        all_rows = batch.row_numbers[: batch.num_rows]
        rows = slice(0, batch.num_rows) if len(batch.groups) == 1 else all_rows[batch.is_single[: batch.num_rows]]
        lengths, chosen = batch.lengths[rows], output.next_ids[rows]
        is_broken = chosen == NO_TOKEN
        log_probs = None if output.next_log_probs is None else output.next_log_probs[rows]
        if output.candidate_ids is not None:
            chosen, log_probs = _sampled(batch, all_rows[rows], output, chosen, log_probs)
        places = (all_rows[rows], lengths - 1)
        is_open = None if is_forced is None else ~is_forced[rows]
        if is_open is not None:
            chosen = np.where(is_open, chosen, batch.output_ids[places])
        batch.output_ids[places] = chosen
        batch.token_ids[rows] = chosen
        is_ended = greedy.ended(chosen, lengths, batch.limits[rows], self._eos_id)
        if batch.num_guarded:
            for row in batch.note_repeats(rows, chosen, is_open):
                is_ended |= all_rows[rows] == row
        if is_open is not None:
            is_ended &= is_open
        if log_probs is not None:
            is_broken |= np.isnan(log_probs)  # only the projection gave none
            batch.log_probs[rows] += log_probs if is_open is None else np.where(is_open, log_probs, 0)
        if is_broken.any():
            is_ended &= ~is_broken
            result.failed.extend(batch.owner(row) for row in all_rows[rows][is_broken].tolist())
        if is_ended.any():
            for row in all_rows[rows][is_ended].tolist():
                sequence = batch.owner(row)
                result.finished.append((sequence, (self._single_hypothesis(batch, sequence),)))

    def _single_hypothesis(self, batch: Batch, sequence: Sequence) -> DecodedHypothesis:
        (row,) = sequence.slots
        output_ids = tuple(batch.output_ids[row, : batch.lengths[row]].tolist())
        score, options, is_cut = math.nan, sequence.options, output_ids[-1] != self._eos_id
        if options.return_scores:
            is_at_limit = len(output_ids) == batch.limits[row]
            length = len(output_ids) + (is_cut and is_at_limit and options.forces_end)
            score = _score(sequence, float(batch.log_probs[row]), length)
        excess = batch.excess(row) if is_cut and options.max_repeats else 0
        return self._decoded(sequence, score, output_ids, excess)

    def _advance_beams(
        self,
        batch: Batch,
        sequences: list[Sequence],
        output: StepOutput,
        is_forced: greedy.Mask | None,
        result: Advance,
    ) -> None:
        assert output.candidate_ids is not None
        assert output.candidate_log_probs is not None
        if is_forced is not None:
            for forced in [sequence for sequence in sequences if is_forced[sequence.slots[0]]]:
                own = forced.slots
                # Looked at though nothing is chosen: what is no number would stay in the cache.
                if np.isnan(output.candidate_log_probs[own]).any():
                    result.failed.append(forced)
                    continue
                batch.token_ids[own] = batch.output_ids[own, batch.lengths[own] - 1]
                if forced.options.max_repeats:
                    batch.note_repeats(own, batch.token_ids[own], np.zeros(len(own), np.bool_))
            sequences = [sequence for sequence in sequences if not is_forced[sequence.slots[0]]]
        if not sequences:
            return
        rows: beam.Rows = np.array([sequence.slots for sequence in sequences])  # (n, k)
        log_probs = output.candidate_log_probs[rows]  # (n, k, K)
        top, running = beam.rank(batch.log_probs[rows], output.candidate_ids[rows], log_probs, self._eos_id)
        is_at_limit = batch.lengths[rows[:, 0]] >= batch.limits[rows[:, 0]]
        forces_end = np.array([sequence.options.forces_end for sequence in sequences])
        is_ending = (top.token_ids == self._eos_id) | (is_at_limit & ~forces_end)[:, None]  # (n, k)
        is_broken = np.isnan(log_probs.sum(axis=(1, 2)))
        looks = is_ending.any(axis=1) | is_at_limit | is_broken
        goes_on = np.ones(len(sequences), np.bool_)
        for index, sequence in enumerate(sequences):
            if not looks[index] and sequence not in self._hypotheses:
                continue
            if is_broken[index]:
                result.failed.append(sequence)
                goes_on[index] = False
                continue
            self._collect(batch, sequence, top.of((index, is_ending[index])))
            is_done = self._is_done(batch, sequence, float(running.log_probs[index, 0]))
            if is_at_limit[index] and forces_end[index] and not is_done:
                self._collect(batch, sequence, running.of(index), num_forced=1)
            if is_at_limit[index] or is_done:
                result.finished.append((sequence, self._beam_hypotheses(sequence)))
                goes_on[index] = False
        if not goes_on.all():
            sequences = [sequence for sequence, stays in zip(sequences, goes_on, strict=True) if stays]
            rows, running = rows[goes_on], running.of(goes_on)
        self._go_on(batch, sequences, rows, running, result)

    def _go_on(
        self, batch: Batch, sequences: list[Sequence], rows: beam.Rows, running: beam.Continuations, result: Advance
    ) -> None:
        """Let searches run on with other beams; `rows` are those of the present ones (n, k)."""
        rows, sources, targets = beam.inherit(rows, running.parents)
        if len(sources):
            batch.copy_outputs(sources, targets)
            result.copies.extend(zip(sources.tolist(), targets.tolist(), strict=True))
        for sequence, slots in zip(sequences, rows.tolist(), strict=True):
            sequence.slots = slots
        batch.token_ids[rows] = running.token_ids
        batch.log_probs[rows] = running.log_probs
        batch.output_ids[rows, batch.lengths[rows] - 1] = running.token_ids
        if batch.num_guarded and len(sequences):
            self._give_up(batch, batch.note_repeats(rows.ravel(), running.token_ids.ravel()), result)

    def _give_up(self, batch: Batch, rows: list[int], result: Advance) -> None:
        """Let beams that repeat themselves die: others take their places in the next step, if any is left."""
        for row in rows:
            sequence, length = batch.owner(row), int(batch.lengths[row])
            output_ids = tuple(batch.output_ids[row, :length].tolist())
            score = _score(sequence, float(batch.log_probs[row]), length)
            self._hypotheses_of(sequence).give_up(score, output_ids, batch.excess(row))
            batch.log_probs[row] = -np.inf
            if np.isneginf(batch.log_probs[sequence.slots]).all():
                result.finished.append((sequence, self._beam_hypotheses(sequence)))

    def _hypotheses_of(self, sequence: Sequence) -> beam.BeamHypotheses:
        hypotheses = self._hypotheses.get(sequence)
        if hypotheses is None:
            options = sequence.options
            hypotheses = self._hypotheses[sequence] = beam.BeamHypotheses(
                options.beam_size, stops_early=options.stops_early
            )
        return hypotheses

    def _collect(self, batch: Batch, sequence: Sequence, ending: beam.Continuations, num_forced: int = 0) -> None:
        """Keep the hypotheses of one search that end in this step, each (m,), or `num_forced` tokens later."""
        total, hypotheses = int(batch.lengths[sequence.slots[0]]), self._hypotheses_of(sequence)
        for parent, token_id, log_prob in zip(*(part.tolist() for part in ending), strict=True):
            begun = batch.output_ids[sequence.slots[parent], : total - 1].tolist()
            hypotheses.add(_score(sequence, log_prob, total + num_forced), (*begun, token_id))

    def _is_done(self, batch: Batch, sequence: Sequence, best_log_prob: float) -> bool:
        best_running_score = _score(sequence, best_log_prob, int(batch.lengths[sequence.slots[0]]))
        return self._hypotheses[sequence].is_done(best_running_score)

    def _beam_hypotheses(self, sequence: Sequence) -> tuple[DecodedHypothesis, ...]:
        best = self._hypotheses[sequence].best(sequence.options.num_hypotheses)
        return tuple(self._decoded(sequence, *hypothesis) for hypothesis in best)

    def _decoded(self, sequence: Sequence, score: float, output_ids: tuple[int, ...], excess: int) -> DecodedHypothesis:
        """Strip the model's prefix, the end-of-sentence token, and what came once too often."""
        chosen = output_ids[len(sequence.target_prefix_ids) :]
        if excess:
            return DecodedHypothesis(chosen[:-excess], score, FinishReason.REPETITION)
        if chosen[-1] == self._eos_id:
            return DecodedHypothesis(chosen[:-1], score, FinishReason.STOP)
        return DecodedHypothesis(chosen, score, sequence.limit_reason)


def _score(sequence: Sequence, log_prob: float, length: int) -> float:
    """Of what the model chose, in an output of `length` tokens with forced ones; the caller's own don't count."""
    return normalized(log_prob, length - len(sequence.output_prefix_ids), sequence.options.length_penalty)


def _common_beginning(outputs: list[tuple[int, ...]]) -> tuple[int, ...]:
    """The tokens with which all begin."""
    for place, tokens in enumerate(zip(*outputs, strict=False)):
        if any(token != tokens[0] for token in tokens):
            return outputs[0][:place]
    return min(outputs, key=len)


def _sampled(
    batch: Batch, rows: sampling.Rows, output: StepOutput, chosen: greedy.Ids, log_probs: beam.Scores | None
) -> tuple[greedy.Ids, beam.Scores | None]:
    """What is chosen in `rows`, and its log-probabilities, with chance where a row is sampled; all (n,)."""
    assert output.candidate_ids is not None
    assert output.candidate_log_probs is not None
    places = np.flatnonzero(batch.top_ks[rows])
    if not len(places):
        return chosen, log_probs
    chosen = chosen.copy()
    log_probs = np.zeros(len(rows), np.float32) if log_probs is None else log_probs.copy()
    rows = rows[places]
    candidates = output.candidate_log_probs[rows]
    columns = sampling.choose(
        candidates,
        batch.temperatures[rows],
        batch.top_ks[rows],
        batch.top_ps[rows],
        sampling.uniforms(batch.seeds[rows], batch.lengths[rows] - batch.forced_lengths[rows]),
    )
    chosen[places] = output.candidate_ids[rows, columns]
    log_probs[places] = candidates[np.arange(len(rows)), columns]
    return chosen, log_probs
