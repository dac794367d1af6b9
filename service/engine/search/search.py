"""How a worker advances its sequences: the search in C++ chooses tokens, and those that have ended are read here."""

import dataclasses
from collections.abc import Collection
from dataclasses import dataclass, field

from service.bundle import fused_io
from service.engine.batch import Batch
from service.engine.integrity import expect
from service.engine.runner import RunLimits, Runner
from service.engine.search.certain import certain_of_beams, certain_of_row
from service.engine.search.hypotheses import decoded, decoded_row
from service.engine.sequence import DecodedHypothesis, Sequence

Finished = tuple[Sequence, tuple[DecodedHypothesis, ...]]


@dataclass(slots=True)
class Outcome:
    """What became of the sequences in one run: an entry for each that ended; no sequence has left the batch."""

    num_steps: int
    num_row_steps: int  # the rows of every step: one that ends within the run makes none after that
    num_generated: int  # tokens, one per sequence, however wide its beam, without forced ones
    finished: list[Finished] = field(default_factory=list)  # with the hypotheses, best first
    failed: list[Sequence] = field(default_factory=list)  # the model produced NaN for these


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
        """Append the tokens of one run to every sequence of the batch; none leaves it."""
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
                outcome.failed.append(sequence)
            elif sequence.num_slots > 1:
                outcome.finished.append((sequence, self._best(sequence)))
            else:
                excess = int(self._excesses[row]) if status == fused_io.REPEATING else 0
                hypothesis = decoded_row(batch, sequence, excess, self._eos_id)
                if sequence.wants_attention:
                    slots = [batch.state.slots.item(row)] * batch.state.lengths[row]
                    hypothesis = self._with_attention(hypothesis, sequence, slots)
                outcome.finished.append((sequence, (hypothesis,)))
        return outcome

    def interrupt(self) -> None:
        """Make a long run end soon (`Runner.interrupt`). Thread-safe."""
        self._runner.interrupt()

    def interrupt_for_newcomers(self) -> None:
        """Make a long run end once it has made enough steps (`Runner.interrupt_for_newcomers`). Thread-safe."""
        self._runner.interrupt_for_newcomers()

    def clear_interrupt(self) -> None:
        """Undo `interrupt` (`Runner.clear_interrupt`)."""
        self._runner.clear_interrupt()

    def certain(self, sequence: Sequence) -> tuple[int, ...]:
        """Return the tokens that the best hypothesis will begin with, without the model's prefix; it only grows."""
        if sequence.num_slots == 1:
            return certain_of_row(self._batch, sequence)
        ended = self._ended(sequence)
        best = None
        if ended:
            _, length, excess, output_ids = self._hypothesis(ended[0])
            best = output_ids[: length - excess]
        return certain_of_beams(self._batch, sequence, best)

    def check_integrity(self, running: Collection[Sequence]) -> None:
        """Check that the rows of sequences that go on are running, and know their beams' rows in their order."""
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
            hypothesis = decoded(sequence, score, output_ids, excess, self._eos_id)
            if sequence.wants_attention:
                slots = self._batch.state.history[self._batch.max_slots + place, :length].tolist()
                hypothesis = self._with_attention(hypothesis, sequence, slots)
            hypotheses.append(hypothesis)
        return tuple(hypotheses)

    def _with_attention(self, hypothesis: DecodedHypothesis, sequence: Sequence, slots: list[int]) -> DecodedHypothesis:
        """Add the attention of a hypothesis, whose steps were made by rows with these slots."""
        attention = self._runner.attention(slots, len(sequence.source_ids))
        if attention is None:
            return hypothesis
        first = len(sequence.target_prefix_ids)
        return dataclasses.replace(hypothesis, attention=attention[first : first + len(hypothesis.token_ids)])
