"""Advances a worker's sequences: the search in C++ chooses tokens, and its outcome is read here."""

import dataclasses
import math
from collections.abc import Collection
from dataclasses import dataclass, field

import numpy as np

from service.bundle import fused_io
from service.domain.errors import EngineFailure, Public
from service.domain.translation import FinishReason
from service.engine.batch import Batch
from service.engine.integrity import expect
from service.engine.runner import RunLimits, Runner
from service.engine.sequence import DecodedHypothesis, Sequence


@dataclass(slots=True)
class Outcome:
    """The sequences that ended in one run, and those that got a first token."""

    num_steps: int = 0
    num_row_steps: int = 0  # the rows of every step: one that ends within the run makes none after that
    num_generated: int = 0  # tokens, one per sequence, however wide its beam, without forced ones
    finished: list[tuple[Sequence, tuple[DecodedHypothesis, ...]]] = field(default_factory=list)  # best first
    failed: list[tuple[Sequence, EngineFailure]] = field(default_factory=list)
    first_tokens: list[tuple[Sequence, float]] = field(default_factory=list)  # with the part of the run until then
    has_run_failed: bool = False  # it raised, or produced NaN for all sequences


class Search:
    """Continues the sequences of a batch on a runner. It keeps nothing: all that is known of one is in its rows."""

    def __init__(self, runner: Runner, batch: Batch) -> None:
        self._runner = runner
        self._batch = batch
        self._eos_id = runner.spec.eos_id
        self._statuses = batch.state.rows["status"].data
        self._excesses = batch.state.rows["excess"]
        self._num_finished = batch.state.rows["num_finished"]
        self._num_given_up = batch.state.rows["num_given_up"]
        runner.attach(batch.state)

    def run(self, limits: RunLimits) -> Outcome:
        """Append the tokens of one run to every sequence of the batch; none leaves it. First tokens are not noted."""
        batch = self._batch
        run = self._runner.search(batch.num_rows, limits)
        outcome = Outcome(run.num_steps, run.num_row_steps, run.num_generated)
        if not run.num_ended:
            return outcome
        for row, status in enumerate(self._statuses[: batch.num_rows].tolist()):
            if status == fused_io.RUNNING:
                continue
            sequence = batch.owner(row)
            if row != sequence.slots[0]:
                continue
            if status == fused_io.BROKEN:
                outcome.failed.append((sequence, produced_nan("decoder")))
            elif sequence.num_slots > 1:
                outcome.finished.append((sequence, self._best(sequence)))
            else:
                excess = int(self._excesses[row]) if status == fused_io.REPEATING else 0
                hypothesis = _decoded_row(batch, sequence, excess, self._eos_id)
                if sequence.wants_attention:
                    slots = [batch.state.slots.item(row)] * batch.state.lengths[row]
                    hypothesis = self._with_attention(hypothesis, sequence, slots)
                outcome.finished.append((sequence, (hypothesis,)))
        outcome.has_run_failed = len(outcome.failed) == batch.num_sequences
        return outcome

    def certain(self, sequence: Sequence) -> tuple[int, ...]:
        """Return the tokens that the best hypothesis will begin with, without the model's prefix; it only grows."""
        if sequence.num_slots == 1:
            return _certain_of_row(self._batch, sequence)
        ended = self._ended(sequence)
        best = None
        if ended:
            _, length, excess, output_ids = self._hypothesis(ended[0])
            best = output_ids[: length - excess]
        return _certain_of_beams(self._batch, sequence, best)

    def check_integrity(self, running: Collection[Sequence]) -> None:
        beam_rows = self._batch.state.rows["beam_rows"]
        for sequence in running:
            own = sequence.slots
            expect(not self._statuses[own[0]], f"row {own[0]} has ended and has not left")
            found = beam_rows[own[0], : len(own)].tolist()
            expect(found == own, f"the rows {own} of a beam are known as {found}")

    def _ended(self, sequence: Sequence) -> list[int]:
        """Return where the hypotheses of a beam are, best first: the finished ones, then those it gave up."""
        leader, num_slots = sequence.slots[0], self._batch.max_slots
        finished = sequence.slots[: self._num_finished[leader]]
        return finished + [num_slots + row for row in sequence.slots[: self._num_given_up[leader]]]

    def _hypothesis(self, place: int) -> tuple[float, int, int, tuple[int, ...]]:
        state = self._batch.state
        score, length, excess, _ = state.hypotheses[place].item()
        return score, length, excess, tuple(state.hypothesis_ids[place, :length].tolist())

    def _best(self, sequence: Sequence) -> tuple[DecodedHypothesis, ...]:
        hypotheses = []
        for place in self._ended(sequence)[: sequence.options.num_hypotheses]:
            score, length, excess, output_ids = self._hypothesis(place)
            hypothesis = _decoded(sequence, score, output_ids, excess, self._eos_id)
            if sequence.wants_attention:
                slots = self._batch.state.history[self._batch.max_slots + place, :length].tolist()
                hypothesis = self._with_attention(hypothesis, sequence, slots)
            hypotheses.append(hypothesis)
        return tuple(hypotheses)

    def _with_attention(self, hypothesis: DecodedHypothesis, sequence: Sequence, slots: list[int]) -> DecodedHypothesis:
        attention = self._runner.attention(slots, len(sequence.source_ids))
        if attention is None:
            return hypothesis
        first = len(sequence.target_prefix_ids)
        return dataclasses.replace(hypothesis, attention=attention[first : first + len(hypothesis.token_ids)])


def produced_nan(part: str) -> EngineFailure:
    return EngineFailure("the {part} produced NaN for this text", part=Public(part), advice="report it")


def normalized(log_prob: float, length: int, length_penalty: float) -> float:
    """Divide a summed log-probability by `length ** length_penalty`, in float32 as transformers does.

    `length` counts all tokens after the start token, including a forced prefix, such as M2M100's language token, and
    the end-of-sentence token, but not the caller's own prefix, like transformers' `decoder_input_ids`.
    """
    return float(np.float32(log_prob) / np.float32(length**length_penalty))


def _decoded(
    sequence: Sequence, normalized_score: float, output_ids: tuple[int, ...], excess: int, eos_id: int
) -> DecodedHypothesis:
    """Strip the model's prefix, the end-of-sentence token, and the last `excess` tokens, which repeat too often."""
    chosen = output_ids[len(sequence.target_prefix_ids) :]
    if excess:
        return DecodedHypothesis(chosen[:-excess], normalized_score, FinishReason.REPETITION)
    if chosen[-1] == eos_id:
        return DecodedHypothesis(chosen[:-1], normalized_score, FinishReason.STOP)
    return DecodedHypothesis(chosen, normalized_score, sequence.limit_reason)


def _decoded_row(batch: Batch, sequence: Sequence, excess: int, eos_id: int) -> DecodedHypothesis:
    """Return the hypothesis of an ended sequence of one row; `excess` counts only if it did not end by itself."""
    (row,) = sequence.slots
    output_ids = batch.state.output(row)
    own_score, options, is_cut = math.nan, sequence.options, output_ids[-1] != eos_id
    if options.return_scores:
        is_at_limit = len(output_ids) == batch.limits[row]
        length = len(output_ids) - len(sequence.output_prefix_ids) + (is_cut and is_at_limit and options.forces_end)
        own_score = normalized(float(batch.log_probs[row]), length, options.length_penalty)
    return _decoded(sequence, own_score, output_ids, excess if is_cut else 0, eos_id)


def _certain_of_row(batch: Batch, sequence: Sequence) -> tuple[int, ...]:
    """Return the output of a sequence of one row so far, without the model's prefix and what may be an excess."""
    (row,) = sequence.slots
    end = int(batch.lengths[row])
    if end <= batch.forced_lengths[row]:
        return ()
    if sequence.options.max_repeats:
        end -= _doubtful(batch, row)
    return tuple(batch.output_ids[row, len(sequence.target_prefix_ids) : end].tolist())


def _certain_of_beams(batch: Batch, sequence: Sequence, best_finished: tuple[int, ...] | None) -> tuple[int, ...]:
    """Return the common prefix of a sequence's beams and its best finished hypothesis, which has the model's prefix."""
    rows = sequence.slots
    start, end = len(sequence.target_prefix_ids), int(batch.lengths[rows[0]])
    if end <= batch.forced_lengths[rows[0]]:
        return ()
    alive = np.isfinite(batch.log_probs[rows])
    rows = [row for row, is_alive in zip(rows, alive.tolist(), strict=True) if is_alive or not alive.any()]
    if sequence.options.max_repeats:
        end -= max(_doubtful(batch, row) for row in rows)
    outputs = [tuple(batch.output_ids[row, start:end].tolist()) for row in rows]
    if best_finished is not None:
        outputs.append(best_finished[start:])
    return _common_beginning(outputs)


def _doubtful(batch: Batch, row: int) -> int:
    """Return how many tokens at the end of a row may turn out to be an excess."""
    runs: list[int] = batch.runs[row].tolist()
    allowed = int(batch.max_repeats[row]) - 1
    return max(0, *(run - allowed * period for period, run in enumerate(runs, 1)))


def _common_beginning(outputs: list[tuple[int, ...]]) -> tuple[int, ...]:
    for place, tokens in enumerate(zip(*outputs, strict=False)):
        if any(token != tokens[0] for token in tokens):
            return outputs[0][:place]
    return min(outputs, key=len)
